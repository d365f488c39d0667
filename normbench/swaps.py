"""Does RMSNorm pay here? Each provider's own two against each other, and the fastest of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from normbench import verdict
from normbench.records import CaseResult, Cell, Comparison, ImplementationInfo, Op, Outcome, Run, Sample, Status

Pair = tuple[str, str]
"""A LayerNorm and the RMSNorm that replaces it, by their names."""

BEST = "fastest of each"
"""What stands for a provider where the fastest LayerNorm is compared with the fastest RMSNorm."""


def pairs(implementations: Iterable[ImplementationInfo]) -> Mapping[str, Pair]:
    """Of each provider that has both formulas the LayerNorm and the RMSNorm, by its name.

    Where a provider has several RMSNorms each has a pair, by its own name; where it has several LayerNorms too, each
    with each of them, by both names.
    """
    by_provider: dict[str, dict[Op, list[str]]] = {}
    for info in implementations:
        by_provider.setdefault(info.provider, {}).setdefault(info.op.norm, []).append(info.name)
    return {
        _called(provider, names, pair): pair
        for provider, names in by_provider.items()
        for pair in product(names.get(Op.LAYERNORM, ()), names.get(Op.RMSNORM, ()))
    }


def _called(provider: str, names: Mapping[Op, Sequence[str]], pair: Pair) -> str:
    layernorm, rmsnorm = pair
    if len(names[Op.LAYERNORM]) > 1:
        return f"{rmsnorm} for {layernorm}"
    return rmsnorm if len(names[Op.RMSNORM]) > 1 else provider


def best_pair(results: Iterable[CaseResult], implementations: Iterable[ImplementationInfo]) -> Pair | None:
    """The fastest LayerNorm and the fastest RMSNorm of a cell by their times; None where one has no time."""
    ops = {info.name: info.op.norm for info in implementations}
    times: dict[Op, dict[str, float]] = {}
    for result in results:
        if result.timing is not None:
            name = result.case.implementation
            times.setdefault(ops[name], {})[name] = result.timing.time_s.value
    if Op.LAYERNORM not in times or Op.RMSNORM not in times:
        return None
    layernorm, rmsnorm = (min(times[op], key=times[op].__getitem__) for op in (Op.LAYERNORM, Op.RMSNORM))
    return layernorm, rmsnorm


def compare_swaps(
    results: Sequence[CaseResult],
    samples: Sequence[Sample],
    implementations: Sequence[ImplementationInfo],
    margin: float,
) -> tuple[Comparison, ...]:
    """Every RMSNorm of a cell against the LayerNorm it would replace, from pairs timed in the same rounds."""
    by_name = {result.case.implementation: result for result in results if result.status is not Status.NOT_RUN}
    return tuple(
        verdict.compare(by_name.get(layernorm), by_name[rmsnorm], samples, margin, layernorm)
        for layernorm, rmsnorm in _asked(results, implementations)
        if rmsnorm in by_name
    )


def _asked(results: Iterable[CaseResult], implementations: Sequence[ImplementationInfo]) -> Iterable[Pair]:
    """Each pair once."""
    best = best_pair(results, implementations)
    own = pairs(implementations).values()
    return dict.fromkeys([*own, best] if best else own)


class Answer(StrEnum):
    """Whether swapping LayerNorm for RMSNorm saves time."""

    PAYS = "pays"
    COSTS = "costs"
    NO_DIFFERENCE = "no difference"
    UNDECIDED = "undecided"
    DEPENDS = "depends"


_ANSWERS = {
    Outcome.FASTER: Answer.PAYS,
    Outcome.SLOWER: Answer.COSTS,
    Outcome.SAME: Answer.NO_DIFFERENCE,
    Outcome.UNDECIDED: Answer.UNDECIDED,
}


def answer_of(comparison: Comparison) -> Answer:
    """What one comparison says of the swap."""
    return _ANSWERS[comparison.outcome]


@dataclass(frozen=True, kw_only=True)
class Swap:
    """What swapping does to the time of one provider in some cells.

    Args:
        provider: Whose two, or ``BEST``.
        comparisons: RMSNorm against LayerNorm, one a cell.
    """

    provider: str
    comparisons: tuple[Comparison, ...]

    @property
    def answer(self) -> Answer:
        """The one answer of all comparisons that were decided, if they agree."""
        found = {answer_of(comparison) for comparison in self.comparisons} - {Answer.UNDECIDED}
        if len(found) > 1:
            return Answer.DEPENDS
        return found.pop() if found else Answer.UNDECIDED

    @property
    def speedups(self) -> tuple[float, ...]:
        """LayerNorm's time ÷ RMSNorm's, ascending, of the comparisons that have one."""
        return tuple(sorted(c.speedup.value for c in self.comparisons if c.speedup is not None))


def of_cells(run: Run, cells: Iterable[Cell]) -> list[Swap]:
    """For each provider, and for the fastest of each, what the swap does in these cells, where it was tried."""
    cells = tuple(cells)
    providers: dict[str, list[Comparison]] = {name: [] for name in pairs(run.header.implementations)}
    providers[BEST] = []
    for cell in cells:
        for provider, comparison in _of_cell(run, cell):
            providers[provider].append(comparison)
    return [Swap(provider=name, comparisons=tuple(found)) for name, found in providers.items() if found]


def _of_cell(run: Run, cell: Cell) -> Iterator[tuple[str, Comparison]]:
    found, infos = run.swaps_by_cell.get(cell, {}), run.header.implementations
    for provider, pair in pairs(infos).items():
        if pair in found:
            yield provider, found[pair]
    best = best_pair(run.results_by_cell.get(cell, ()), infos)
    if best is not None and best in found:
        yield BEST, found[best]
    elif best is None:  # nobody's swap has an answer here, so that of the fastest has none for the same reason
        yield from ((BEST, comparison) for comparison in list(found.values())[:1])
