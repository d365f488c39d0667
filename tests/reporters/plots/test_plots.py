from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree as ET

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

from normbench.legible import visible
from normbench.records import Mode
from normbench.reporters import plots
from tests.reporters.plots.looking import draw, texts
from tests.runs import NAMES, TIMES, Times, make_device, make_plan, make_run, profiled_run, write_run

WIDTHS = (256, 512, 1000, 2048)


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


def test_no_figure_stays_open_and_many_pictures_do_not_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(modes=tuple(Mode), rows=tuple(range(1, 7)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with monkeypatch.context() as patch:
            patch.setattr(Figure, "savefig", lambda _figure, file, **_options: file.write(b"picture"))
            pictures = dict(plots.draw(make_run(plan), most=24))

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


def test_a_notebooks_backend_that_is_not_there_does_not_matter(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    env = {k: v for k, v in os.environ.items() if k != "DISPLAY"}
    env["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    command = [sys.executable, "-m", "normbench", "report", str(folder.path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)

    assert (done.returncode, done.stderr) == (0, "")
    assert len(list((folder.path / "plots").iterdir())) == 6


def test_the_readers_own_matplotlib_settings_change_nothing() -> None:
    expected = draw(make_run())
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "axes.grid": True, "text.usetex": True}):
        assert draw(make_run()) == expected
        assert mpl.rcParams["font.size"] == 30


def test_no_more_pictures_are_drawn_than_were_planned_and_those_in_the_planned_order() -> None:
    run = make_run(make_plan(modes=tuple(Mode)))

    assert [name for name, _ in plots.draw(run, most=2)] == [
        f"{name}.{extension}" for name in plots.planned(run, most=2).drawn for extension in ("png", "svg")
    ]


def test_pictures_of_a_profile_are_among_them() -> None:
    pictures = draw(profiled_run())

    kinds = ("time", "speedup", "bandwidth", "traffic", "roofline")
    assert set(pictures) == {f"{kind}-forward.{extension}" for kind in kinds for extension in ("png", "svg")}


@pytest.mark.parametrize(
    "odd", ["<script>alert(1)</script>", "\"&'", "$x$", "[bold]", "\x00\x1b[31m", "归一化", "\ud800"]
)
def test_odd_names_are_drawn_without_a_warning_into_files_that_open(odd: str) -> None:
    name = f"{odd}-rmsnorm"
    times: Times = {**TIMES, name: 3e-6}
    run = make_run(make_plan(implementations=(*NAMES, name)), times, device=make_device(name=odd))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pictures = draw(run)

    assert visible(name) in texts(pictures["time-forward.svg"])
