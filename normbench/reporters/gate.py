"""What a run's gate found: one sentence, a row for each cell that it stumbled over, and the same as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from normbench import units
from normbench.records import CELL_KEY, Case, Cell, Estimate, Plan
from normbench.reporters import statements
from normbench.reporters.meanings import REASONS
from normbench.run_gate import RunGate

_MOST_TEXT = 200
_NOT_REACHED = "the run has not got that far"


@dataclass(frozen=True, kw_only=True)
class GateRow:
    """What was found of an implementation at some place, as text."""

    name: str
    where: str
    speedup: str
    found: str


@dataclass(frozen=True, kw_only=True)
class GateSection:
    """What the gate found; text is plain.

    Args:
        sentence: All of it in one sentence.
        rows: What fails first, then what could not be judged, then what is not sure.
    """

    sentence: str
    rows: tuple[GateRow, ...] = ()


def section(gate: RunGate, plan: Plan) -> GateSection:
    """What a report says of a gate."""
    return GateSection(sentence=sentence(gate), rows=tuple(_rows(gate, plan)))


def sentence(gate: RunGate) -> str:
    """What the gate found: ``Gate: passed: …``."""
    return f"Gate: {_word(gate)}: {'; '.join(_parts(gate))}"


def message(gate: RunGate) -> str:
    """What the error says: the same, and the worst."""
    said = f"--fail-on: {'; '.join(_parts(gate))}"
    if gate.slower:
        worst = gate.slower[0]
        said += f"; the worst is {_describe(worst.case)}: {_estimate(worst.speedup)} times {gate.baseline}'s speed"
    if gate.broken:
        first = gate.broken[0]
        why = statements.clipped(first.reason or "", _MOST_TEXT)
        said += f"; the first that broke is {_describe(first.case)}: {first.status}: {why}"
    return said


def as_dictionary(gate: RunGate) -> dict[str, object]:
    """The same for programs: numbers as numbers."""
    return {
        "threshold": gate.threshold,
        "baseline": gate.baseline,
        "implementations": list(gate.names),
        "judged": gate.judged,
        "passes": gate.passes,
        "fails": gate.fails,
        "slower": [{**_key(each.case), **_ratio(each.speedup)} for each in gate.slower],
        "broken": [{**_key(each.case), "status": each.status, "reason": each.reason} for each in gate.broken],
        "not_judged": [{**_key(each.case), "reason": each.reason} for each in gate.unjudged],
        "unsupported": [_key(case) for case in gate.unsupported],
        "interval_too_wide": [_key(case) for case in gate.blind],
        "perhaps_chance": [_key(case) for case in gate.chance],
    }


def _word(gate: RunGate) -> str:
    if gate.fails:
        return "failed"
    if gate.passes and len(gate.blind) == gate.judged:
        return "undecided"
    return "passed" if gate.passes else "not judged"


def _parts(gate: RunGate) -> Iterator[str]:
    if not gate.has_samples:
        yield "intervals are taken from the samples, which are not there or can't be read"
    limit = f"slower than {gate.baseline} by an estimate of more than {units.percent(gate.threshold)}"
    who = units.join(list(gate.names))
    if gate.slower:
        yield f"{_names(each.case for each in gate.slower)} {limit} in {_of(len(gate.slower), gate)}"
    elif gate.judged:
        yield f"{who} not shown to be {limit} in any of {units.count(gate.judged, 'comparison')}"
    if gate.broken:
        yield (
            f"{_names((each.case for each in gate.broken), verb=False)} ended with a fault in "
            f"{units.count(len(gate.broken), 'case')} in which {gate.baseline} has a time"
        )
    if gate.unjudged:
        yield f"{units.count(len(gate.unjudged), 'case')} could not be judged"
    elif not gate.judged and not gate.broken:
        yield f"nothing of {who} could be compared with {gate.baseline}"
    yield from _reservations(gate)


def _reservations(gate: RunGate) -> Iterator[str]:
    """What makes the answer less sure than it looks."""
    if gate.judged > 1:
        yield f"intervals are widened so that all {gate.judged} hold together (Bonferroni)"
    if gate.chance:
        yield f"{units.count(len(gate.chance), 'case')} only by their own interval, which may be chance"
    if gate.blind:
        cleared = "; none could be cleared, so this says nothing" if len(gate.blind) == gate.judged else ""
        yield f"in {len(gate.blind)} the interval is too wide to exclude it{cleared}"
    if gate.unsupported:
        yield f"{units.count(len(gate.unsupported), 'case')} unsupported here"


def _of(count: int, gate: RunGate) -> str:
    return f"{count} of {units.count(gate.judged, 'comparison')}"


def _names(cases: Iterable[Case], *, verb: bool = True) -> str:
    names = list(dict.fromkeys(case.implementation for case in cases))
    return f"{units.join(names)}{(' is' if len(names) == 1 else ' are') if verb else ''}"


def _rows(gate: RunGate, plan: Plan) -> Iterator[GateRow]:
    percent = units.percent(gate.threshold)
    for each in gate.slower:
        where = statements.describe_cell(each.case.cell)
        yield GateRow(
            name=each.case.implementation,
            where=where,
            speedup=_estimate(each.speedup),
            found=f"slower by more than {percent}",
        )
    yield from _alike(
        plan,
        [(r.case, f"{r.status}: {statements.clipped(r.reason or '', _MOST_TEXT)}") for r in gate.broken],
    )
    yield from _alike(
        plan,
        [
            (each.case, f"not judged: {REASONS[each.reason] if each.reason else _NOT_REACHED}")
            for each in gate.unjudged
        ],
    )
    wide = [case for case in gate.blind if case not in gate.chance]
    yield from _alike(plan, [(case, f"too wide an interval to exclude {percent}") for case in wide])
    chance = "slower by its own interval alone, which may be chance"
    yield from _alike(plan, [(case, chance) for case in gate.chance])
    yield from _alike(plan, [(case, "unsupported here") for case in gate.unsupported])


def _alike(plan: Plan, found: Sequence[tuple[Case, str]]) -> Iterator[GateRow]:
    """A row for all cells of an implementation of which the same is to be said."""
    alike: dict[tuple[str, str], list[Cell]] = {}
    for case, said in found:
        alike.setdefault((case.implementation, said), []).append(case.cell)
    for (name, said), cells in alike.items():
        where = "; ".join(statements.where(plan, cells))
        yield GateRow(name=name, where=where, speedup=units.ABSENT, found=said)


def _describe(case: Case) -> str:
    return f"{case.implementation} at {statements.describe_cell(case.cell)}"


def _estimate(speedup: Estimate) -> str:
    return units.ratio(speedup.value, speedup.low, speedup.high)


def _key(case: Case) -> Mapping[str, object]:
    return {**{name: getattr(case.cell, name) for name in CELL_KEY}, "implementation": case.implementation}


def _ratio(speedup: Estimate) -> Mapping[str, object]:
    return {"speedup": speedup.value, "speedup_low": speedup.low, "speedup_high": speedup.high}
