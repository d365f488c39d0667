"""The answer of a run in a few lines: what to use, whether RMSNorm pays, how the others do, how sure that is."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, expm1, isfinite

from normbench import crossover, stats, swaps, units
from normbench.crossover import Advice
from normbench.records import Case, Cell, Comparison, Estimate, Flag, Outcome, Run, Status
from normbench.reporters import against, caveats, statements, swapping
from normbench.reporters.statements import MOST_PLACES, value_range, where
from normbench.verdict import Choice, Verdict

_MOST_NAMES = 8
_WIDE = 0.5


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The answer: what to use, or what head does, first of all; None for what there is nothing to say about."""

    use: str
    rmsnorm: str | None
    others: str
    certainty: str
    caveat: str | None

    @property
    def rest(self) -> list[str]:
        """What follows the first line."""
        return [line for line in (self.rmsnorm, self.others, self.certainty, self.caveat) if line is not None]


def headline(run: Run, of_run: Verdict, flags: caveats.Flags) -> Headline:
    """The answer of a run."""
    use, busy = _answer(run, of_run), statements.busy_cells(run)
    if busy:
        count = len(statements.timed_cells(run))
        use = f"Not reliable, since other programs ran beside {len(busy)} of {count} cells: {use}"
    advised, once = _advised(run, of_run, flags), _is_alike(run, of_run, flags)
    own: caveats.Flags = {} if once else flags
    rests = "All of this rests" if once else "What to use rests"
    return Headline(
        use=statements.capital(use),
        rmsnorm=swapping.sentence(run, own),
        others=_others(run, own),
        certainty=_certainty(run, of_run),
        caveat=f"{rests} on results that were {advised}" if advised else None,
    )


def _is_alike(run: Run, of_run: Verdict, flags: caveats.Flags) -> bool:
    """Whether the same has to be said of every statement's results: then once, for all of them."""
    said = {_advised(run, of_run, flags), caveats.of_comparisons(flags, run.comparisons)}
    swapped = swaps.of_cells(run, run.results_by_cell)
    if swapped:
        said.add(caveats.of_comparisons(flags, swapping.rests_on(swapped)))
    return len(said) == 1


def _answer(run: Run, of_run: Verdict) -> str:
    """What head does against base where that is what was asked, else what to use."""
    found = against.sentence(run)
    return f"{_on(run)}: {found}" if found else _use(run, of_run)


def _on(run: Run) -> str:
    rows = run.header.plan.rows
    return f"on {run.header.device.name}{f', {rows[0]} rows' if len(rows) == 1 else ''}"


def _use(run: Run, of_run: Verdict) -> str:
    plan, on = run.header.plan, _on(run)
    choices = [choice for group in of_run.groups for choice in group.choices if choice.best is not None]
    if not choices:
        return f"{on}: no verdict, since {_why_none(run)}"
    by_advice: dict[Advice, list[Choice]] = {}
    for choice in choices:
        by_advice.setdefault(crossover.advice_of(choice), []).append(choice)
    if len(by_advice) == 1 and len(choices) == len(list(plan.cells())):
        return f"{on}: {_advice(choices)} for {_everywhere([choice.cell for choice in choices])}"
    parts = {_advice(found): where(plan, [c.cell for c in found]) for found in by_advice.values()}
    if sum(map(len, parts.values())) <= MOST_PLACES:
        return f"{on}: " + "; ".join(f"{advice} for {', and for '.join(p)}" for advice, p in parts.items())
    return f"{on}: {_counted(by_advice, len(run.results_by_cell))} (the tables say where)"


def _counted(by_advice: Mapping[Advice, Sequence[Choice]], cells: int) -> str:
    """``use X in 6 and Y in 5 of 12 cells; undecided in 1``."""
    ordered = sorted(by_advice.values(), key=lambda found: -len(found))
    used = [f"{_names(f)} in {len(f)}" for f in ordered if crossover.advice_of(f[0]).best is not None]
    undecided = sum(len(found) for advice, found in by_advice.items() if advice.best is None)
    unknown = cells - sum(map(len, by_advice.values()))
    parts = [f"use {units.join(used)} of {cells} cells"] if used else []
    parts += [f"undecided in {undecided}{'' if used else f' of {cells} cells'}"] if undecided else []
    parts += [f"no verdict in {unknown}"] if unknown else []
    return "; ".join(parts)


def _advice(choices: Sequence[Choice]) -> str:
    """``use X or Y``, or that nothing can be said because somebody may be faster."""
    return "undecided" if crossover.advice_of(choices[0]).best is None else f"use {_names(choices)}"


def _names(choices: Sequence[Choice]) -> str:
    """The best, and those that can be told apart from it nowhere."""
    return " or ".join([str(choices[0].best), *crossover.alternatives(choices)])


def _why_none(run: Run) -> str:
    baseline = run.header.plan.baseline
    if all(result.status is Status.NOT_RUN for result in run.results):
        return "nothing has been measured yet"
    timed = any(r.timing is not None for r in run.results if r.case.implementation == baseline)
    return f"nothing was compared with {baseline}" if timed else f"the baseline {baseline} has no time"


def _everywhere(cells: Sequence[Cell]) -> str:
    widths = sorted({cell.width for cell in cells})
    dtypes = list(dict.fromkeys(str(cell.dtype) for cell in cells))
    modes = list(dict.fromkeys(str(cell.mode) for cell in cells))
    return f"{units.join(dtypes)}, {units.join(modes)}, at {statements.at(widths)}"


def _others(run: Run, flags: caveats.Flags) -> str:
    """How each candidate does against the baseline, and what of that rests on flagged results."""
    baseline, margin = run.header.plan.baseline, run.header.plan.precision.margin
    by_candidate: dict[str, list[Comparison]] = {}
    for comparison in run.comparisons:
        if comparison.speedup is not None:
            by_candidate.setdefault(comparison.candidate, []).append(comparison)
    if not by_candidate:
        return f"Nothing could be compared with {baseline}"
    parts = [f"{name} {_does(found, margin)}" for name, found in list(by_candidate.items())[:_MOST_NAMES]]
    more = len(by_candidate) - len(parts)
    said = f"Against {baseline}: {'; '.join(parts)}{f'; and {more} more' if more else ''}"
    return f"{said}{caveats.sentence(flags, run.comparisons)}"


def _does(comparisons: Sequence[Comparison], margin: float) -> str:
    outcomes = {comparison.outcome for comparison in comparisons}
    speedups = sorted(c.speedup.value for c in comparisons if c.speedup is not None)
    if outcomes == {Outcome.SAME}:
        return f"is as fast (within {units.percent(margin)})"
    if outcomes == {Outcome.FASTER}:
        return f"is {value_range(speedups)} times as fast"
    if outcomes == {Outcome.SLOWER}:
        return f"takes {value_range(sorted(1 / value for value in speedups))} times as long"
    return f"is {_counts(comparisons)} of {len(comparisons)} cells ({value_range(speedups)} times as fast)"


def _counts(comparisons: Iterable[Comparison]) -> str:
    """How many have which outcome: ``faster in 3, slower in 2``."""
    found = [comparison.outcome for comparison in comparisons]
    return units.join([f"{outcome} in {found.count(outcome)}" for outcome in Outcome if outcome in found])


def _certainty(run: Run, of_run: Verdict) -> str:
    total = of_run.decided + of_run.undecided
    if not total:
        return "Not sure of anything: no comparison was possible"
    margin = units.percent(run.header.plan.precision.margin)
    over = "processes" if run.header.plan.precision.processes > 1 else "placements"
    width = _typical_width([c.speedup for c in run.comparisons if c.speedup is not None])
    decided = (
        f"{of_run.decided} of {total} comparisons are decided (95 % intervals over {over}, margin {margin}{width})"
    )
    return "; ".join([f"How sure: {decided}", *_doubts(run)])


def _typical_width(speedups: Sequence[Estimate]) -> str:
    """How wide half of the intervals are at most."""
    middle = statistics.median(map(stats.relative_half_width, speedups))
    if not isfinite(middle):
        return "; half of them have no interval"
    if middle > _WIDE:
        return f"; half of the intervals reach beyond a factor of {units.significant(exp(middle), 2)} to both sides"
    return f"; half of them ±{units.percent(expm1(middle))} or narrower"


def _doubts(run: Run) -> list[str]:
    """What makes the answer less sure than its intervals."""
    near = {result.case.cell for result in run.results if Flag.NEAR_CACHE_SIZE in result.flags}
    cells = len(run.results_by_cell)
    found = {
        "a quiet machine would tell more": bool(statements.busy_cells(run)),
        _noise(run): bool(run.noise),
        f"{len(near)} of {cells} cells are about as large as the cache: a rerun may differ there": bool(near),
        statements.missing(run): not run.is_complete,
    }
    return [text for text, holds in found.items() if holds]


def _noise(run: Run) -> str:
    """What the worst A/A test says, and that it says it of one cell."""
    if not run.noise:
        return ""
    worst = max(run.noise, key=lambda noise: noise.least_difference)
    cell = f"{worst.cell.size} {worst.cell.dtype} {worst.cell.mode}"
    least = units.percent(worst.least_difference)
    return f"by an A/A test at {cell} differences below {least} cannot be told apart there"


def _advised(run: Run, of_run: Verdict, flags: caveats.Flags) -> str | None:
    """What the results were that the advice rests on; None where none is flagged."""
    choices = [choice for group in of_run.groups for choice in group.choices if choice.best is not None]
    relied_on = [case for choice in choices for case in relied_on_by(run, choice)]
    return caveats.counted(caveats.caveats(flags, relied_on), len(choices))


def relied_on_by(run: Run, choice: Choice) -> list[Case]:
    """The results that a choice rests on: those of the baseline, the best one and whoever may be as fast."""
    if choice.best is None:
        return []
    maybe = choice.undecided if choice.is_open else ()
    names = dict.fromkeys((run.header.plan.baseline, choice.best, *choice.rivals, *maybe))
    return [Case(cell=choice.cell, implementation=name) for name in names]
