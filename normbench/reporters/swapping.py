"""The answer to "does RMSNorm pay here?", provider by provider, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from normbench import crossover, swaps, units
from normbench.crossover import Stretch
from normbench.records import Cell, Comparison, Reason, Run
from normbench.reporters import caveats, statements
from normbench.reporters.meanings import REASONS
from normbench.swaps import Answer, Swap

_SHORT = {
    Answer.PAYS: "yes",
    Answer.COSTS: "no",
    Answer.NO_DIFFERENCE: "no difference",
    Answer.UNDECIDED: "undecided",
}
_WHY = REASONS | {
    Reason.NO_BASELINE: "LayerNorm has no time",
    Reason.NO_CANDIDATE: "RMSNorm has no time",
    Reason.OUT_DTYPE_DIFFERS: "their outputs have unlike dtypes",
}
"""Why one can't be compared with the other."""


def sentence(run: Run, flags: caveats.Flags) -> str | None:
    """The answer over all cells, for each provider, and what it rests on; None where nobody has both formulas."""
    found = swaps.of_cells(run, run.results_by_cell)
    if not found:
        return None
    margin = run.header.plan.precision.margin
    parts = [f"{swap.provider}: {_overall(swap, margin)}" for swap in found]
    return f"Does RMSNorm pay here? {'; '.join(parts)}{caveats.sentence(flags, rests_on(found))}"


def rests_on(found: Iterable[Swap]) -> list[Comparison]:
    """The comparisons that answers rest on."""
    return [comparison for swap in found for comparison in swap.comparisons]


def _overall(swap: Swap, margin: float) -> str:
    """One provider's answer over all cells, counted where they don't agree."""
    counts = Counter(map(swaps.answer_of, swap.comparisons))
    if len(counts) == 1:
        return _text(swap.answer, swap.comparisons, margin)
    shown = units.join([f"{_SHORT[answer]} in {counts[answer]}" for answer in _SHORT if answer in counts])
    depends = "it depends, " if swap.answer is Answer.DEPENDS else ""
    return f"{depends}{shown} of {len(swap.comparisons)} cells ({_range(swap.comparisons)} times as fast)"


def _text(answer: Answer, comparisons: Sequence[Comparison], margin: float) -> str:
    """``yes, 1.08 to 1.34 times as fast``."""
    if answer is Answer.NO_DIFFERENCE:
        return f"{_SHORT[answer]} (within {units.percent(margin)})"
    speedups = _range(comparisons)
    if not speedups:
        return f"no answer, since {units.join(list(dict.fromkeys(_WHY[c.reason] for c in comparisons)))}"
    if answer is Answer.UNDECIDED:
        return f"{_SHORT[answer]} ({speedups} times as fast)"
    return f"{_SHORT[answer]}, {speedups} times as fast"


def _range(comparisons: Iterable[Comparison]) -> str:
    values = sorted(c.speedup.value for c in comparisons if c.speedup is not None)
    return statements.value_range(values) if values else ""


def by_provider(run: Run, cells: Sequence[Cell]) -> dict[str, str]:
    """For each provider what the swap does along the widths of some cells that differ in their width alone."""
    margin = run.header.plan.precision.margin
    return {swap.provider: _along_widths(swap, margin) for swap in swaps.of_cells(run, cells)}


def but(run: Run, cells: Sequence[Cell], flags: caveats.Flags) -> str:
    """Which of the results that these answers rest on are flagged, at which widths."""
    relied_on = caveats.compared(rests_on(swaps.of_cells(run, cells)))
    return caveats.at_widths(caveats.caveats(flags, relied_on), list({case.cell: None for case in relied_on}))


def _along_widths(swap: Swap, margin: float) -> str:
    found = crossover.stretches(swap.comparisons, lambda c: c.cell.width, swaps.answer_of)
    return "; ".join(_stretch(stretch, margin) for stretch in found)


def _stretch(stretch: Stretch[Answer, Comparison], margin: float) -> str:
    place = statements.along(stretch)
    return f"{place}{_text(stretch.answer, stretch.items, margin)}"
