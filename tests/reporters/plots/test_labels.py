from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from normbench.records import Cell, DType, Status
from normbench.reporters import colours
from normbench.reporters.plots.figure import renderer
from normbench.reporters.plots.labels import spread
from tests.reporters.plots.looking import labels, panels
from tests.runs import NAMES, TIMES, Times, make_info, make_plan, make_run

WIDTHS = (256, 512, 1024)


def leaders(panel: object) -> list[Line2D]:
    return [line for line in panel.lines if line.get_linewidth() == 0.6]  # type: ignore[attr-defined]


@given(st.lists(st.floats(0, 10), min_size=1, max_size=12), st.floats(0.1, 2))
def test_positions_keep_their_distance_their_order_and_the_bounds(targets: list[float], gap: float) -> None:
    found = spread(targets, gap, 0, 10)
    if (len(targets) - 1) * gap > 10:
        assert found is None
        return
    assert found is not None
    assert min(found) >= 0
    assert max(found) <= 10 + 1e-9
    assert all(b - a >= gap - 1e-9 for a, b in pairwise(sorted(found)))
    for i, j in combinations(range(len(targets)), 2):
        assert targets[i] == targets[j] or (targets[i] < targets[j]) == (found[i] < found[j])


@pytest.mark.parametrize(
    ("targets", "expected"),
    [([5], [5]), ([1, 5], [1, 5]), ([5, 5], [5.5, 4.5]), ([5, 5.5, 9], [4.75, 5.75, 9]), ([0, 0], [1, 0])],
    ids=["alone", "far apart", "on top of each other", "two of three", "at the edge"],
)
def test_positions_move_no_more_than_they_must(targets: list[float], expected: list[float]) -> None:
    assert spread(targets, 1, 0, 10) == pytest.approx(expected)


def test_names_stand_at_the_right_end_in_the_colour_and_order_of_their_lines(figures: list[Figure]) -> None:
    (panel,) = panels(make_run(make_plan(widths=WIDTHS)), figures)
    found = labels(panel)

    assert [text.get_text() for text in found] == ["eager-rmsnorm", "nn-layernorm", "nn-rmsnorm", "copy"]
    of_name = colours.of([make_info(name) for name in NAMES])
    assert [text.get_color() for text in found] == [of_name[text.get_text()].hex for text in found]
    for text, value in zip(found, (8e-6, 4e-6, 2e-6, 1e-6), strict=True):
        box = text.get_window_extent(renderer(figures[0]))
        end = panel.transData.transform((1024, value))
        assert box.x0 > panel.get_window_extent().x1
        assert box.y0 < end[1] < box.y1 + 1 or value == 1e-6  # at the edge it moves up
    assert leaders(panel) == []


@pytest.mark.parametrize("name", ["mine-rmsnorm", "mine-" + "very-" * 60 + "long-rmsnorm"])
def test_names_of_lines_that_end_on_top_of_each_other_do_not_overlap_and_stay_inside_the_picture(
    figures: list[Figure], name: str
) -> None:
    names = (*NAMES, "compile-layernorm", "compile-rmsnorm", name)
    run = make_run(make_plan(widths=WIDTHS, implementations=names), dict.fromkeys(names, 2e-6) | {"copy": 1e-6})
    for kind in ("time", "speedup", "bandwidth"):
        (panel,) = panels(run, figures, kind)
        figure = panel.get_figure(root=True)
        assert figure is not None
        boxes = [text.get_window_extent(renderer(figure)) for text in labels(panel)]
        canvas = figure.get_window_extent()

        assert len(boxes) == len(names) - (2 if kind == "speedup" else 0)
        assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
        assert all(canvas.x0 <= box.x0 < box.x1 <= canvas.x1 for box in boxes)
        assert leaders(panel)


def test_a_line_that_ends_early_is_led_to_its_name(figures: list[Figure]) -> None:
    def times(cell: Cell) -> Times:
        return {**TIMES, "nn-rmsnorm": Status.FAILED} if cell.width > 256 else TIMES

    (panel,) = panels(make_run(make_plan(widths=WIDTHS), times), figures)
    (leader,) = leaders(panel)

    assert leader.get_color() == colours.BUILT_IN["nn-rmsnorm"].hex


def test_a_line_that_the_last_panel_lacks_is_named_with_the_dtypes_that_have_it(figures: list[Figure]) -> None:
    def times(cell: Cell) -> Times:
        fails = {"nn-rmsnorm": Status.FAILED} if cell.dtype is DType.FP16 else {}
        rare = {"eager-rmsnorm": Status.FAILED} if cell.dtype is not DType.FP32 else {}
        return {**TIMES, **fails, **rare, "copy": Status.FAILED}

    found = panels(make_run(make_plan(widths=WIDTHS, dtypes=tuple(DType)), times), figures)

    assert [text.get_text() for text in labels(found[-1])] == [
        *("eager-rmsnorm (fp32 only)", "nn-layernorm", "nn-rmsnorm (not fp16)", "copy (no time)"),
    ]


def test_where_names_have_no_room_there_is_a_legend_inside_the_picture(figures: list[Figure]) -> None:
    names = (*NAMES, *(f"mine{i}-rmsnorm" for i in range(40)))
    run = make_run(make_plan(widths=WIDTHS, implementations=names), dict.fromkeys(names, 2e-6))
    (panel,) = panels(run, figures)
    legend = panel.get_legend()

    assert labels(panel) == []
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == list(names)
    figure = panel.get_figure(root=True)
    assert figure is not None
    box, canvas = legend.get_window_extent(renderer(figure)), figure.get_window_extent()
    assert canvas.x0 <= box.x0 < box.x1 <= canvas.x1
    assert canvas.y0 <= box.y0 < box.y1 <= canvas.y1
