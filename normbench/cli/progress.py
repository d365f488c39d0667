"""Progress on stderr: a bar with what is being done and the time left; lines without a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
from rich.table import Column
from rich.text import Text

from normbench import units
from normbench.checking import Piece
from normbench.measure import Progress as CellProgress
from normbench.records import Cell, CellRecords, Outcome
from normbench.reporters.terminal import PlainConsole, say

_SPINNER = 3
_BAR = 16
_EVERY_S = 5.0
"""Without a terminal no more than a line in so many seconds."""
_ROOMY = 72
"""A narrower terminal has no room for a bar beside the words."""


class _Drawn:
    """A bar that is drawn over while it is entered, and leaves nothing behind; none without a terminal.

    Args:
        out: Where to.
        quiet: Show nothing.
        now: A monotonic clock.
    """

    def __init__(self, out: PlainConsole, *, quiet: bool, now: Callable[[], float]) -> None:
        self._out = out
        self._quiet = quiet
        self._now = now
        self._live = out.redraws and not quiet
        self._bar = Progress(*_columns(out), console=out, disable=not self._live, transient=True)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.stop()


class SweepProgress(_Drawn):
    """An observer of a sweep that shows it.

    Args:
        out: Where to; stderr.
        cells: How many cells there are.
        cell_s: Seconds that a cell is expected to take, until one has been seen.
        quiet: Show nothing.
        now: A monotonic clock.
    """

    def __init__(
        self,
        out: PlainConsole,
        *,
        cells: int,
        cell_s: float,
        quiet: bool = False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(out, quiet=quiet, now=now)
        self._cells = cells
        self._cell_s = cell_s
        self._began = self._cell_began = now()
        self._done = self._decided = self._compared = 0
        self._said: set[str] = set()
        self._task = self._bar.add_task("starting", total=cells, left="")

    def starting(self, what: str) -> None:
        """Name what is done before the first cell; without a terminal once a kind."""
        self._began = self._cell_began = self._now()  # the time left is told from the cells alone
        if self._live:
            self._bar.update(self._task, description=what, left="")
        elif not self._quiet and what.partition(":")[0] not in self._said:
            self._said.add(what.partition(":")[0])
            say(self._out, f"{what} …")

    def cell_started(self, cell: Cell, index: int, count: int) -> None:
        """Name the cell."""
        del index, count
        self._cell = cell
        self._cell_began = self._now()
        self._show(f"{cell}")

    def preparing(self, name: str) -> None:
        """Name what is being built, compiled and checked: this takes the longest where it compiles."""
        self._show(f"{self._cell}: checking {name}")

    def measured(self, progress: CellProgress) -> None:
        """Tell how far the cell is."""
        placements, rounds = units.count(progress.placements, "placement"), units.count(progress.rounds, "round")
        self._show(f"{self._cell}: {placements} × {rounds}")

    def cell_done(self, records: CellRecords) -> None:
        """Count what the cell has decided."""
        self._done += 1
        compared = [c for c in records.comparisons if c.speedup is not None]
        decided = sum(c.outcome is not Outcome.UNDECIDED for c in compared)
        self._compared += len(compared)
        self._decided += decided
        if self._live:
            self._bar.advance(self._task)
        elif not self._quiet:
            seconds = self._now() - self._cell_began
            say(
                self._out,
                f"[{self._done}/{self._cells}] {records.cell}: {decided} of {len(compared)} comparisons decided, "
                f"{seconds:.1f} s; left: {self._time_left()}",
            )

    def _show(self, text: str) -> None:
        roomy = self._compared and self._out.width >= _ROOMY
        decided = f"; decided {self._decided} of {self._compared}" if roomy else ""
        self._bar.update(self._task, description=text, left=f"left: {self._time_left()}{decided};")

    def _time_left(self) -> str:
        per_cell = (self._now() - self._began) / self._done if self._done else self._cell_s
        return units.time_left(per_cell * (self._cells - self._done))


class PieceProgress(_Drawn):
    """Shows how many of how many pieces of work are done, and how long the rest should take.

    Args:
        out: Where to; stderr.
        quiet: Show nothing.
        now: A monotonic clock.
    """

    def __init__(self, out: PlainConsole, *, quiet: bool = False, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(out, quiet=quiet, now=now)
        self._began = now()
        self._said: float | None = None
        self._task = self._bar.add_task("starting", total=None, left="", visible=False)

    def told(self, piece: Piece) -> None:
        """Show that a piece begins."""
        seconds, done, count, what = self._now() - self._began, piece.number, piece.count, piece.what
        left = f"left: {units.time_left(seconds / piece.share * (1 - piece.share))};" if piece.share else ""
        if self._live:
            self._bar.update(self._task, completed=done, total=count, description=what, left=left, visible=True)
        elif not self._quiet and (self._said is None or seconds - self._said >= _EVERY_S):
            self._said = seconds
            say(self._out, " ".join(part for part in (f"[{done}/{count}]", left, what) if part))


def _columns(out: PlainConsole) -> list[ProgressColumn]:
    """What one line has room for: the words that come last are cut."""
    words = TextColumn(
        "{task.completed:.0f}/{task.total:.0f} {task.fields[left]} {task.description}",
        style="none",
        markup=False,
        table_column=Column(no_wrap=True, overflow="ellipsis"),
    )
    bar = BarColumn(bar_width=_BAR, table_column=Column(min_width=_BAR))
    return [bar, words] if out.width >= _ROOMY else [words]


def _cut(what: str, width: int) -> Text:
    """As much of a text as fits into one line."""
    text = Text(what)
    text.truncate(max(width, 1), overflow="ellipsis")
    return text


@contextmanager
def telling(out: PlainConsole, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A context in which what is being done can be told: in a line that is drawn over, or a line each."""
    if quiet:
        yield lambda _what: None
    elif out.redraws:
        with out.status("") as status:
            yield lambda what: status.update(_cut(what, out.width - _SPINNER))
    else:
        yield lambda what: say(out, what)
