from __future__ import annotations

import re
from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from normbench.records import Cell, DType, Flag, Status
from normbench.reporters import colours
from tests.reporters.plots.looking import crosses, draw, labels, lines, panels, points, texts, x_ticks, y_ticks
from tests.runs import NAMES, TIMES, Times, make_device, make_plan, make_run

NOBODY: Times = dict.fromkeys(NAMES, Status.FAILED)
WIDTHS = (256, 512, 1000, 2048)


def fails_at(*widths: int) -> object:
    return lambda cell: {**TIMES, "nn-rmsnorm": Status.FAILED} if cell.width in widths else TIMES


def test_time_is_drawn_over_the_width_with_its_interval(figures: list[Figure]) -> None:
    (panel,) = panels(make_run(make_plan(widths=(128, 64)), spread=0.25), figures)

    assert set(lines(panel)) == set(NAMES)
    assert points(panel, "nn-rmsnorm") == [(64, 2e-6), (128, 2e-6)]
    (bars,) = lines(panel)["nn-rmsnorm"].lines[2]
    assert [tuple(path.vertices[:, 1]) for path in bars.get_paths()] == [pytest.approx((1.6e-6, 2.5e-6))] * 2
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")


def test_speedup_is_drawn_for_the_candidates_alone_with_the_margin_shaded(figures: list[Figure]) -> None:
    (panel,) = panels(make_run(), figures, "speedup")

    assert set(lines(panel)) == {"eager-rmsnorm", "nn-rmsnorm"}
    assert points(panel, "eager-rmsnorm") == [(pytest.approx(64, rel=0.1), 0.5)]
    (band,) = panel.patches
    assert band.get_extents().transformed(panel.transData.inverted()).intervaly == pytest.approx([1 / 1.02, 1.02])


def test_bandwidth_is_floor_bytes_by_time_for_the_floor_too(figures: list[Figure]) -> None:
    (panel,) = panels(make_run(), figures, "bandwidth")

    assert points(panel, "copy") == [(pytest.approx(64, rel=0.1), pytest.approx(2 * 32 * 64 * 4 / 1e-6))]
    assert points(panel, "nn-rmsnorm") == [(pytest.approx(64, rel=0.1), pytest.approx((2 * 32 + 1) * 64 * 4 / 2e-6))]


def test_each_dtype_has_its_panel_and_each_implementation_is_named_once(figures: list[Figure]) -> None:
    run = make_run(make_plan(dtypes=tuple(DType)))
    found = panels(run, figures)

    assert [panel.get_xlabel() for panel in found] == ["width (fp32)", "width (bf16)", "width (fp16)"]
    assert [[text.get_text() for text in labels(panel)] for panel in found] == [
        [],
        [],
        ["eager-rmsnorm", "nn-layernorm", "nn-rmsnorm", "copy"],
    ]


def test_ticks_stand_at_the_widths_that_were_tested_and_nowhere_else(figures: list[Figure]) -> None:
    (panel,) = panels(make_run(make_plan(widths=WIDTHS)), figures)

    assert x_ticks(panel) == ["256", "512", "1000", "2048"]
    assert list(panel.xaxis.get_minorticklocs()) == []


@pytest.mark.parametrize("factor", [1.0, 1.03, 1.07, 1.4, 4.0, 1000.0])
def test_the_values_have_at_least_two_ticks_whatever_their_range(figures: list[Figure], factor: float) -> None:
    times: Times = {name: 1e-6 * factor ** (i / 3) for i, name in enumerate(NAMES)}
    (panel,) = panels(make_run(times=times), figures)

    assert 2 <= len(y_ticks(panel)) <= 12
    assert len(set(y_ticks(panel))) == len(y_ticks(panel))
    assert all(re.fullmatch(r"[\d.]+ (ns|µs|ms)", tick) for tick in y_ticks(panel))


def test_a_single_point_has_a_marker(figures: list[Figure]) -> None:
    (panel,) = panels(make_run(), figures)

    for container in lines(panel).values():
        assert container.lines[0].get_marker() not in ("", "None", None)


def test_missing_points_are_left_out_and_counted_under_the_panel(figures: list[Figure]) -> None:
    (panel,) = panels(make_run(make_plan(widths=WIDTHS), fails_at(512, 1000)), figures)  # type: ignore[arg-type]

    assert panel.get_xlabel() == "width (fp32; 2 of 16 results missing: ×)"
    assert [x for x, _ in points(panel, "nn-rmsnorm")] == [256, 2048]
    pink = colours.BUILT_IN["nn-rmsnorm"].hex
    assert {width: colour for (width, _), colour in crosses(panel).items()} == {512: pink, 1000: pink}
    assert x_ticks(panel) == ["256", "512", "1000", "2048"]


def test_cells_that_were_not_reached_are_counted_as_missing(figures: list[Figure]) -> None:
    plan = make_plan(widths=WIDTHS)
    (panel,) = panels(make_run(plan, cells=list(plan.cells())[:3]), figures)

    assert panel.get_xlabel() == "width (fp32; 4 of 16 results missing: ×)"


def test_a_picture_of_which_everything_failed_says_so() -> None:
    for name, data in draw(make_run(make_plan(widths=WIDTHS), NOBODY)).items():
        if name.endswith("svg"):
            found = texts(data)
            assert "no result has a time" in found
            assert not {"0.0", "1.0"} & set(found)
            assert "shaded" not in " ".join(found)


@pytest.mark.parametrize("failed", [DType.FP32, DType.BF16])
def test_a_dtype_that_failed_takes_no_ticks_from_the_other(figures: list[Figure], failed: DType) -> None:
    def times(cell: Cell) -> Times:
        return NOBODY if cell.dtype is failed else TIMES

    found = panels(make_run(make_plan(dtypes=(DType.FP32, DType.BF16)), times), figures)

    assert y_ticks(found[0]) == ["1.0 µs", "1.5 µs", "2.0 µs", "3.0 µs", "5.0 µs", "7.0 µs"]
    (empty,) = (panel for panel in found if str(failed) in panel.get_xlabel())
    assert [text.get_text() for text in empty.texts if text not in labels(empty)] == ["no result has a time"]
    assert crosses(empty) == {}


def test_dollars_in_names_are_drawn_as_they_are() -> None:
    plan = make_plan(implementations=("copy", "nn-layernorm", "own$x^$-rmsnorm"))
    times: Times = {"copy": 1e-6, "nn-layernorm": 4e-6, "own$x^$-rmsnorm": 2e-6}
    found = texts(draw(make_run(plan, times, device=make_device(name="$\\frac$ GPU")))["time-forward.svg"])

    assert "forward, 32 rows, warm cache - $\\frac$ GPU" in found
    assert "own$x^$-rmsnorm" in found


def test_those_that_are_missing_at_the_same_width_have_crosses_above_each_other_and_below_every_value(
    figures: list[Figure],
) -> None:
    def times(cell: Cell) -> Times:
        return {**TIMES, "nn-rmsnorm": Status.FAILED, "copy": Status.FAILED} if cell.width == 512 else TIMES

    (panel,) = panels(make_run(make_plan(widths=WIDTHS), times), figures)
    (_, low), (_, high) = crosses(panel)
    lowest = panel.transAxes.inverted().transform(panel.transData.transform((256, 1e-6 / 1.01)))[1]

    assert 0 < low < high < lowest


def test_a_width_that_somebody_misses_in_a_single_point_picture_has_its_cross(figures: list[Figure]) -> None:
    (panel,) = panels(make_run(times={**TIMES, "copy": Status.FAILED}), figures)

    assert list(crosses(panel).values()) == [colours.FLOOR.hex]


def test_labels_of_widths_that_lie_close_are_left_out_but_not_their_ticks(figures: list[Figure]) -> None:
    widths = (256, *range(1000, 1030, 2), 4096)
    (panel,) = panels(make_run(make_plan(widths=widths)), figures)

    assert list(panel.get_xticks()) == list(widths)
    shown = [text for text in x_ticks(panel) if text]
    assert (shown[0], shown[-1]) == ("256", "4096")
    assert "1000" in shown
    assert len(shown) < 5


def test_beside_other_programs_the_picture_says_so() -> None:
    run = make_run()
    flagged = replace(run, results=tuple(replace(r, flags=(Flag.BUSY_MACHINE,)) for r in run.results))

    assert "other programs were running: not reliable" in " ".join(texts(draw(flagged)["time-forward.svg"]))
    assert "other programs" not in " ".join(texts(draw(run)["time-forward.svg"]))


def test_the_shaded_margin_is_explained() -> None:
    assert "shaded: within 2 %" in " ".join(texts(draw(make_run())["speedup-forward.svg"]))


@pytest.mark.parametrize("name", ["x" * 300, "a device of many words " * 20])
def test_no_text_leaves_the_picture_however_long_the_devices_name_is(figures: list[Figure], name: str) -> None:
    panels(make_run(device=make_device(name=name)), figures)

    for figure in figures:
        canvas = figure.get_window_extent()
        for text in figure.texts:
            box = text.get_window_extent()
            assert canvas.x0 <= box.x0 < box.x1 <= canvas.x1
            assert canvas.y0 <= box.y0 < box.y1 <= canvas.y1
