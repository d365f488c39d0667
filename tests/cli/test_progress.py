from __future__ import annotations

import io
import re

import pytest

from normbench.checking import Piece
from normbench.cli.progress import PieceProgress, SweepProgress, telling
from normbench.measure import Progress
from normbench.records import Cell, Status
from normbench.reporters.console import console
from tests.fakes import Timer
from tests.runs import TIMES, Times, make_plan, make_records

PLAN = make_plan(widths=(64, 128, 256))
HALF_OPEN: Times = {**TIMES, "eager-rmsnorm": 4.06e-6}


class Terminal(io.StringIO):
    """Text that is shown to somebody."""

    def isatty(self) -> bool:
        return True

    def bar(self) -> str:
        """The words of the bar as it was last drawn."""
        plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", self.getvalue())
        return re.findall(r"━ (\d+/.*?) *[\r\n]", plain)[-1]


def watch(file: io.StringIO, timer: Timer, *, quiet: bool = False) -> SweepProgress:
    return SweepProgress(console(file), cells=3, cell_s=20, quiet=quiet, now=timer)


def measure(progress: SweepProgress, timer: Timer, cell: Cell, seconds: float, times: Times = TIMES) -> None:
    """A cell goes by: it is named, prepared, measured and done with."""
    progress.cell_started(cell, 0, 3)
    progress.preparing("nn-rmsnorm")
    timer.advance(seconds)
    progress.measured(Progress(placements=10, rounds=5, seconds=seconds, settled=True))
    progress.cell_done(make_records(cell, times, PLAN))


def test_without_a_terminal_each_cell_is_a_line_with_what_is_decided_and_the_time_left() -> None:
    file, timer = io.StringIO(), Timer()
    first, second, third = PLAN.cells()
    with watch(file, timer) as progress:
        measure(progress, timer, first, 30)
        measure(progress, timer, second, 50.25, HALF_OPEN)
        measure(progress, timer, third, 1, {**TIMES, "nn-layernorm": Status.FAILED})

    assert file.getvalue() == (
        "[1/3] 32×64 fp32 forward warm: 2 of 2 comparisons decided, 30.0 s; left: 1 min 00 s\n"
        "[2/3] 32×128 fp32 forward warm: 1 of 2 comparisons decided, 50.2 s; left: 40 s\n"
        "[3/3] 32×256 fp32 forward warm: 0 of 0 comparisons decided, 1.0 s; left: 0 s\n"
    )


def test_a_quiet_sweep_shows_nothing() -> None:
    for file in (io.StringIO(), Terminal()):
        timer = Timer()
        with watch(file, timer, quiet=True) as progress:
            measure(progress, timer, next(PLAN.cells()), 30)
        assert file.getvalue() == ""


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    return Terminal()


def test_on_a_terminal_a_bar_names_the_cell_and_the_time_left(terminal: Terminal) -> None:
    with watch(terminal, Timer()) as progress:
        progress.cell_started(next(PLAN.cells()), 0, 3)

    assert terminal.bar() == "0/3 left: 1 min 00 s; 32×64 fp32 forward warm"


def test_the_bar_says_what_has_been_decided_and_what_is_being_checked(terminal: Terminal) -> None:
    timer = Timer()
    first, second, _ = PLAN.cells()
    with watch(terminal, timer) as progress:
        measure(progress, timer, first, 25, HALF_OPEN)
        progress.cell_started(second, 1, 3)
        progress.preparing("nn.RMSNorm[compile]")

    assert terminal.bar() == (
        "1/3 left: 50 s; decided 1 of 2; 32×128 fp32 forward warm: checking nn.RMSNorm[compile]"
    )
    assert "comparisons decided" not in terminal.getvalue()


def test_the_bar_counts_placements_and_rounds(terminal: Terminal) -> None:
    with watch(terminal, Timer()) as progress:
        progress.cell_started(next(PLAN.cells()), 0, 3)
        progress.measured(Progress(placements=7, rounds=5, seconds=1.5, settled=False))

    assert terminal.bar().endswith("; 32×64 fp32 forward warm: 7 placements × 5 rounds")


def test_on_a_narrow_terminal_the_words_have_the_line_for_themselves_and_are_cut_at_its_end(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    timer = Timer()
    first, second, _ = PLAN.cells()
    with watch(terminal, timer) as progress:
        measure(progress, timer, first, 25, HALF_OPEN)
        progress.cell_started(second, 1, 3)
        progress.preparing("a-name-that-is-longer-than-the-line-rmsnorm")

    frames = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", terminal.getvalue()).split("\r")
    assert "1/3 left: 50 s; 32×128 fp32 forward war…" in [frame.strip("\n") for frame in frames]
    assert all(len(frame.strip("\n")) <= 40 and "\n" not in frame.strip("\n") for frame in frames)


@pytest.mark.parametrize("variable", [("TERM", "dumb"), ("TERM", ""), ("JPY_PARENT_PID", "7")])
def test_where_no_line_can_be_drawn_over_there_is_one_for_each_cell(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, variable: tuple[str, str]
) -> None:
    monkeypatch.setenv(*variable)
    timer = Timer()
    with watch(terminal, timer) as progress:
        measure(progress, timer, next(PLAN.cells()), 30)

    assert terminal.getvalue() == (
        "[1/3] 32×64 fp32 forward warm: 2 of 2 comparisons decided, 30.0 s; left: 1 min 00 s\n"
    )


def test_colours_that_are_forced_into_a_file_bring_no_bar_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    file = io.StringIO()
    with watch(file, Timer()) as progress:
        progress.cell_started(next(PLAN.cells()), 0, 3)
        progress.preparing("nn-rmsnorm")

    assert file.getvalue() == ""


@pytest.mark.parametrize(("quiet", "shown"), [(False, "looking\n[b]\n"), (True, "")])
def test_steps_are_told_in_lines_without_a_terminal(quiet: bool, shown: str) -> None:
    file = io.StringIO()
    with telling(console(file), quiet=quiet) as told:
        told("looking")
        told("[b]")

    assert file.getvalue() == shown


def test_steps_are_told_in_one_line_that_is_drawn_over_on_a_terminal(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    with telling(console(terminal), quiet=False) as told:
        told("[bold] a step that is longer than the line")

    frames = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", terminal.getvalue()).split("\r")
    assert all(len(frame.strip("\n")) <= 20 for frame in frames)
    assert any("[bold] a step" in frame for frame in frames)


def pieces(file: io.StringIO, *, quiet: bool = False) -> Terminal | io.StringIO:
    """Four pieces of work of three seconds each, and a fifth that has begun; each is a tenth of the work."""
    timer = Timer()
    with PieceProgress(console(file), quiet=quiet, now=timer) as progress:
        for done in range(5):
            progress.told(Piece(number=done, count=9, share=done / 10, what=f"piece[{done}]"))
            timer.advance(3)
    return file


def test_without_a_terminal_pieces_are_told_at_most_every_five_seconds_with_the_time_left() -> None:
    assert pieces(io.StringIO()).getvalue() == (
        "[0/9] piece[0]\n[2/9] left: 24 s; piece[2]\n[4/9] left: 18 s; piece[4]\n"
    )


def test_on_a_terminal_pieces_are_a_bar_that_is_gone_at_the_end(terminal: Terminal) -> None:
    pieces(terminal)

    assert terminal.bar() == "4/9 left: 18 s; piece[4]"
    assert terminal.getvalue().endswith("\x1b[2K")


def test_of_a_quiet_check_no_piece_is_told() -> None:
    for file in (io.StringIO(), Terminal()):
        assert pieces(file, quiet=True).getvalue() == ""
