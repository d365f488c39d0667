"""Bytes by op, and bandwidth against the working set."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from matplotlib.figure import Figure

from normbench.records import Case, CaseProfile, Cell, DType, OpTraffic, Run, Status
from normbench.reporters.plots.figure import renderer
from tests.reporters.plots.looking import draw, labels, panels, texts
from tests.runs import NAMES, TIMES, make_cell, make_device, make_plan, make_run, profiled_run


def test_the_pictures_name_ops_implementations_and_the_floor() -> None:
    found = texts(draw(profiled_run())["traffic-forward.svg"])

    for word in ("pow", "mul", "floor: the least", "nn-layernorm", "eager-rmsnorm", "not counted", "64.0 KiB"):
        assert word in found


def counted(sizes: dict[str, int], **changes: object) -> Run:
    """A run in which these were profiled."""
    names = ("copy", "nn-layernorm", *(name for name in sizes if name not in ("copy", "nn-layernorm")))
    run = make_run(make_plan(profile=True, implementations=names), dict.fromkeys(names, 1e-6))
    return replace(
        run,
        profiles=tuple(
            CaseProfile(
                case=Case(cell=make_cell(**changes), implementation=name),
                ops=(OpTraffic(name="mul", calls=1, bytes=size),),
            )
            for name, size in sizes.items()
        ),
    )


@pytest.mark.parametrize("count", [2, 6, 14])
def test_sums_stand_above_their_bars_and_touch_neither_each_other_nor_the_edge(
    figures: list[Figure], count: int
) -> None:
    (panel,) = panels(counted({f"mine{i}-rmsnorm": 16_700 + i for i in range(count)}), figures, "traffic")
    figure = panel.get_figure(root=True)
    assert figure is not None
    boxes = [text.get_window_extent(renderer(figure)) for text in panel.texts]

    assert len(boxes) == count
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    assert max(box.y1 for box in boxes) <= panel.get_window_extent().y1 + 1


def test_a_sum_that_would_lie_on_the_floors_line_stands_above_it(figures: list[Figure]) -> None:
    (panel,) = panels(counted({"nn-layernorm": 16_000, "mine-rmsnorm": 160_000}), figures, "traffic")
    figure = panel.get_figure(root=True)
    assert figure is not None
    (line,) = [line for line in panel.lines if line.get_linestyle() == "--"]
    at = panel.transData.transform((0, float(line.get_ydata()[0])))[1]  # type: ignore[index,arg-type]

    assert panel.texts[0].get_window_extent(renderer(figure)).y0 >= at


def test_every_combination_of_dtypes_has_a_panel_in_rows_of_three(figures: list[Figure]) -> None:
    run = profiled_run()
    cells = [make_cell(dtype=d, parameter_dtype=p) for d in DType for p in (DType.FP32, DType.BF16)]
    (first, *_) = run.profiles
    profiles = tuple(replace(first, case=Case(cell=cell, implementation="nn-layernorm")) for cell in cells)
    found = panels(replace(run, profiles=profiles), figures, "traffic")
    boxes = [panel.get_window_extent() for panel in found]

    assert len(found) == 6
    assert len({round(box.x0) for box in boxes}) == 3
    assert len({round(box.y0) for box in boxes}) == 2
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_bandwidth_is_over_the_working_set_with_names_cache_and_peak(figures: list[Figure]) -> None:
    run = profiled_run()
    device = make_device(cache_bytes=2**25, peak_bytes_per_s=1e12)
    (panel,) = panels(replace(run, header=replace(run.header, device=device)), figures, "roofline")
    drawn = {str(line.get_label()): line for line in panel.lines if line.get_label() in NAMES}

    assert set(drawn) == set(NAMES)
    assert [tuple(p) for p in drawn["copy"].get_xydata()] == [
        (2 * 32 * 64 * 4, pytest.approx(2 * 32 * 64 * 4 / 1e-6))
    ]  # type: ignore[union-attr]
    assert len(labels(panel)) == len(NAMES)
    assert "last-level cache" in [text.get_text() for text in panel.texts]
    assert panel.get_ylim()[1] > 1e12


def test_cells_of_the_same_size_are_not_joined_by_a_line(figures: list[Figure]) -> None:
    plan = make_plan(profile=True, widths=(64, 128), rows=(32, 64))
    run = replace(make_run(plan), profiles=profiled_run().profiles)
    (panel,) = panels(run, figures, "roofline")

    assert {line.get_linestyle() for line in panel.lines if line.get_label() in NAMES} == {"None"}


def test_a_dtype_without_a_time_says_so_and_names_are_kept(figures: list[Figure]) -> None:
    def times(cell: Cell) -> dict[str, float | Status]:
        return dict.fromkeys(NAMES, Status.FAILED) if cell.dtype is DType.BF16 else dict(TIMES)

    run = make_run(make_plan(profile=True, dtypes=(DType.FP32, DType.BF16)), times)
    found = panels(replace(run, profiles=profiled_run().profiles), figures, "roofline")

    assert "no result has a time" in [text.get_text() for text in found[1].texts]
    assert [text.get_text() for text in labels(found[1])] == [
        *("copy (not here)", "nn-rmsnorm (not here)", "nn-layernorm (not here)", "eager-rmsnorm (not here)"),
    ]
