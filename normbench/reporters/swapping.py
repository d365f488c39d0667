"""The answer to "does RMSNorm pay here?", provider by provider, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from normbench import crossover, swaps, units
from normbench.crossover import Stretch
from normbench.records import Cell, Comparison, Outcome, Run
from normbench.reporters import statements
from normbench.swaps import Answer, Swap

_SHORT = {
    Answer.PAYS: "yes",
    Answer.COSTS: "no",
    Answer.NO_DIFFERENCE: "no difference",
    Answer.UNDECIDED: "undecided",
}


def sentence(run: Run) -> str | None:
    """The answer over all cells, for each provider; None where nobody has both formulas."""
    found = swaps.of_cells(run, run.results_by_cell)
    if not found:
        return None
    margin = run.header.plan.precision.margin
    parts = [f"{swap.provider}: {_overall(swap, margin)}" for swap in found]
    return f"Does RMSNorm pay here? {'; '.join(parts)}"


def _overall(swap: Swap, margin: float) -> str:
    """One provider's answer over all cells."""
    if swap.answer is not Answer.DEPENDS:
        return _text(swap.answer, swap.comparisons, margin)
    counts = ((str(o), sum(c.outcome is o for c in swap.comparisons)) for o in Outcome)
    shown = units.join([f"{outcome} in {count}" for outcome, count in counts if count])
    return f"it depends, {shown} of {len(swap.comparisons)} cells ({_range(swap.comparisons)} times as fast)"


def _text(answer: Answer, comparisons: Sequence[Comparison], margin: float) -> str:
    """``yes, 1.08 to 1.34 times as fast``."""
    if answer is Answer.NO_DIFFERENCE:
        return f"{_SHORT[answer]} (within {units.percent(margin)})"
    speedups = _range(comparisons)
    if answer is Answer.UNDECIDED:
        return (
            f"{_SHORT[answer]} ({speedups} times as fast)" if speedups else "no answer, since one of two has no time"
        )
    return f"{_SHORT[answer]}, {speedups} times as fast"


def _range(comparisons: Iterable[Comparison]) -> str:
    values = sorted(c.speedup.value for c in comparisons if c.speedup is not None)
    return statements.value_range(values) if values else ""


def by_provider(run: Run, cells: Sequence[Cell]) -> dict[str, str]:
    """For each provider what the swap does along the widths of some cells that differ in their width alone."""
    margin = run.header.plan.precision.margin
    return {swap.provider: _along_widths(swap, margin) for swap in swaps.of_cells(run, cells)}


def _along_widths(swap: Swap, margin: float) -> str:
    found = crossover.stretches(swap.comparisons, lambda c: c.cell.width, swaps.answer_of)
    return "; ".join(_stretch(stretch, margin) for stretch in found)


def _stretch(stretch: Stretch[Answer, Comparison], margin: float) -> str:
    place = statements.along(stretch)
    return f"{place}{_text(stretch.answer, stretch.items, margin)}"
