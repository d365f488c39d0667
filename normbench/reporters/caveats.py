"""What must be said beside a statement, since results that it rests on are flagged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from normbench import units
from normbench.records import Case, Cell, Comparison, Flag
from normbench.reporters import statements

Flags = Mapping[Case, Sequence[Flag]]

WORDS: dict[Flag, str] = {
    Flag.LAUNCH_BOUND: "launch-bound",
    Flag.CACHE_RESIDENT: "cache-resident",
    Flag.THROTTLED: "throttled",
    Flag.BUSY_MACHINE: "beside other programs",
    Flag.SHARED_DEVICE: "on a shared device",
    Flag.BELOW_FLOOR: "faster than the floor",
    Flag.QUEUE_NOT_HELD: "waiting for the host",
    Flag.EMULATED_DTYPE: "emulated",
    Flag.DIVERGED: "of a model that has diverged",
}
"""The flags that no statement may pass over, and what results are called that have them."""


@dataclass(frozen=True, kw_only=True)
class Caveat:
    """A flag, and the cells in which a result that was relied on has it."""

    flag: Flag
    cells: tuple[Cell, ...]


def caveats(flags: Flags, relied_on: Iterable[Case]) -> list[Caveat]:
    """Which flags the results have that a statement relies on, and where."""
    found: dict[Flag, dict[Cell, None]] = {}
    for case in relied_on:
        for flag in flags.get(case, ()):
            found.setdefault(flag, {})[case.cell] = None
    return [Caveat(flag=flag, cells=tuple(found[flag])) for flag in WORDS if flag in found]


def compared(comparisons: Iterable[Comparison]) -> list[Case]:
    """The results that some comparisons rest on: those of both, where they could be compared."""
    return [
        Case(cell=comparison.cell, implementation=name)
        for comparison in comparisons
        if comparison.speedup is not None
        for name in (comparison.baseline, comparison.candidate)
    ]


def at_widths(found: Sequence[Caveat], cells: Sequence[Cell]) -> str:
    """Caveats of cells that differ in their width alone: ``cache-resident at widths 256 and 512``."""
    parts = []
    for caveat in found:
        widths = [cell.width for cell in caveat.cells]
        everywhere = len(caveat.cells) == len(cells)
        parts.append(f"{WORDS[caveat.flag]}{'' if everywhere else f' at {statements.at(widths)}'}")
    return "; ".join(parts)


def counted(found: Sequence[Caveat], count: int) -> str | None:
    """Caveats of all cells: ``cache-resident in 9 of 12 cells``; None where there are none."""
    parts = [f"{WORDS[caveat.flag]} in {len(caveat.cells)} of {count} cells" for caveat in found]
    return units.join(parts) if parts else None


def sentence(flags: Flags, comparisons: Iterable[Comparison]) -> str:
    """What follows a sentence that is made of comparisons: nothing where no result of theirs is flagged."""
    said = of_comparisons(flags, comparisons)
    return f". These results were {said}" if said else ""


def of_comparisons(flags: Flags, comparisons: Iterable[Comparison]) -> str | None:
    """What the results were that some comparisons rest on, counted by their cells; None where none is flagged."""
    relied_on = compared(comparisons)
    return counted(caveats(flags, relied_on), len({case.cell for case in relied_on}))
