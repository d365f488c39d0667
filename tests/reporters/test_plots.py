from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import matplotlib.pyplot as plt
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from normbench.records import Cache, Cell, DType, Mode, Run, Status
from normbench.reporters import plots
from tests.runs import NAMES, TIMES, Times, make_device, make_plan, make_run, write_run

NOBODY: Times = dict.fromkeys(NAMES, Status.FAILED)
WIDTHS = (256, 512, 1000, 2048)


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Figure]]:
    """The figures that are drawn, as they are when they are done with."""
    seen: list[Figure] = []
    with monkeypatch.context() as patch:
        patch.setattr(plt, "close", seen.append)
        yield seen
    for figure in seen:
        plt.close(figure)


def draw(run: Run) -> dict[str, bytes]:
    return dict(plots.draw(run))


def panels(run: Run, figures: list[Figure], kind: str = "time") -> list[Axes]:
    """The panels of one kind of picture of a run that has one of each."""
    draw(run)
    return figures[[k.name for k in plots.KINDS].index(kind)].axes


def lines(panel: Axes) -> dict[str, ErrorbarContainer]:
    return {str(c.get_label()): c for c in panel.containers if isinstance(c, ErrorbarContainer)}


def points(panel: Axes, name: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in lines(panel)[name].lines[0].get_xydata()]


def texts(picture: bytes) -> list[str]:
    root = ET.fromstring(picture.decode())
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


def x_ticks(panel: Axes) -> list[str]:
    return [label.get_text() for label in panel.get_xticklabels()]


def y_ticks(panel: Axes) -> list[str]:
    low, high = panel.get_ylim()
    at = zip(panel.get_yticks(), panel.get_yticklabels(), strict=True)
    return [label.get_text() for value, label in at if low <= value <= high]


def fails_at(*widths: int) -> object:
    return lambda cell: {**TIMES, "nn-rmsnorm": Status.FAILED} if cell.width in widths else TIMES


def test_every_kind_is_a_png_and_an_svg_that_opens() -> None:
    pictures = draw(make_run())

    assert sorted(pictures) == [
        f"{kind}-forward.{extension}" for kind in ("bandwidth", "speedup", "time") for extension in ("png", "svg")
    ]
    for name, data in pictures.items():
        if name.endswith("png"):
            assert data.startswith(b"\x89PNG\r\n\x1a\n")
        else:
            assert ET.fromstring(data.decode()).tag == "{http://www.w3.org/2000/svg}svg"


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


def test_each_dtype_has_its_panel_and_each_implementation_one_entry_in_the_legend(figures: list[Figure]) -> None:
    run = make_run(make_plan(dtypes=tuple(DType)))
    found = panels(run, figures)

    assert [panel.get_xlabel() for panel in found] == ["width (fp32)", "width (bf16)", "width (fp16)"]
    (legend,) = figures[0].legends
    assert [text.get_text() for text in legend.get_texts()] == list(NAMES)


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

    assert panel.get_xlabel() == "width (fp32; 2 of 16 results missing)"
    assert [x for x, _ in points(panel, "nn-rmsnorm")] == [256, 2048]
    assert x_ticks(panel) == ["256", "512", "1000", "2048"]


def test_cells_that_were_not_reached_are_counted_as_missing(figures: list[Figure]) -> None:
    plan = make_plan(widths=WIDTHS)
    (panel,) = panels(make_run(plan, cells=list(plan.cells())[:3]), figures)

    assert panel.get_xlabel() == "width (fp32; 4 of 16 results missing)"


def test_a_picture_of_which_everything_failed_says_so() -> None:
    for name, data in draw(make_run(make_plan(widths=WIDTHS), NOBODY)).items():
        if name.endswith("svg"):
            found = texts(data)
            assert "no result has a time" in found
            assert not {"0.0", "1.0"} & set(found)


@pytest.mark.parametrize("failed", [DType.FP32, DType.BF16])
def test_a_dtype_that_failed_takes_no_ticks_from_the_other(figures: list[Figure], failed: DType) -> None:
    def times(cell: Cell) -> Times:
        return NOBODY if cell.dtype is failed else TIMES

    found = panels(make_run(make_plan(dtypes=(DType.FP32, DType.BF16)), times), figures)

    assert y_ticks(found[0]) == ["1.0 µs", "1.5 µs", "2.0 µs", "3.0 µs", "5.0 µs", "7.0 µs"]
    (empty,) = (panel for panel in found if str(failed) in panel.get_xlabel())
    assert [text.get_text() for text in empty.texts] == ["no result has a time"]


def test_modes_rows_caches_and_precisions_are_pictures_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "KINDS", plots.KINDS[:1])
    plan = make_plan(modes=(Mode.FORWARD, Mode.BACKWARD), rows=(32, 48), caches=(Cache.COLD, Cache.WARM))
    parameters = make_plan(parameter_dtypes=(None, DType.BF16), autocasts=(None, DType.BF16))

    assert {name for name in draw(make_run(plan)) if name.endswith("png")} == {
        f"time-{mode}-{rows}rows-{cache}.png"
        for mode in ("forward", "backward")
        for rows in (32, 48)
        for cache in ("cold", "warm")
    }
    assert {name for name in draw(make_run(parameters)) if name.endswith("svg")} == {
        f"time-forward-autocast-{autocast}-parameters-{dtype}.svg"
        for autocast in ("off", "bf16")
        for dtype in ("fp32", "bf16")
    }


def test_no_figure_stays_open_and_many_pictures_do_not_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "KINDS", plots.KINDS[:1])
    plan = make_plan(modes=tuple(Mode), rows=tuple(range(1, 7)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with monkeypatch.context() as patch:
            patch.setattr(Figure, "savefig", lambda _figure, file, **_options: file.write(b"picture"))
            pictures = draw(make_run(plan))

    assert len(pictures) == 2 * 24
    assert plt.get_fignums() == []


def test_a_figure_is_closed_though_it_could_not_be_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(MemoryError):
        draw(make_run())
    assert plt.get_fignums() == []


def test_the_same_run_gives_the_same_bytes() -> None:
    run = make_run(make_plan(widths=WIDTHS))

    assert draw(run) == draw(run)


def test_dollars_in_names_are_drawn_as_they_are() -> None:
    plan = make_plan(implementations=("copy", "nn-layernorm", "own$x^$-rmsnorm"))
    times: Times = {"copy": 1e-6, "nn-layernorm": 4e-6, "own$x^$-rmsnorm": 2e-6}
    found = texts(draw(make_run(plan, times, device=make_device(name="$\\frac$ GPU")))["time-forward.svg"])

    assert "$\\frac$ GPU" in found
    assert "own$x^$-rmsnorm" in found


def test_a_notebooks_backend_that_is_not_there_does_not_matter(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    env = {k: v for k, v in os.environ.items() if k != "DISPLAY"}
    env["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    command = [sys.executable, "-m", "normbench", "report", str(folder.path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)

    assert (done.returncode, done.stderr) == (0, "")
    assert len(list((folder.path / "plots").iterdir())) == 6
