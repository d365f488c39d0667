"""The words for what changed between two runs, shared by the table and the markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log

from normbench import units
from normbench.changes import Change, Changes, Lopsided, Mean
from normbench.gate import Gate
from normbench.records import Case, Cell, Estimate, Flag, Outcome, Plan, Reason, Run
from normbench.reporters import meanings, statements

ORDER = (Outcome.SLOWER, Outcome.FASTER, Outcome.UNDECIDED, Outcome.SAME)
"""What matters most comes first."""

REASONS = {
    **meanings.REASONS,
    Reason.OUT_DTYPE_DIFFERS: "its output has another dtype in HEAD than in BASE",
    Reason.NO_BASELINE: "it shares no round with the baseline in one of the runs",
}
"""What each reason code means of two runs."""

DOUBTS = {
    Flag.BUSY_MACHINE: "other programs kept over a tenth of the cores busy",
    Flag.THROTTLED: "the GPU lowered its clock in at least one round",
    Flag.DRIFTED: "times drifted by more than 10 % while the cell was measured",
    Flag.LAUNCH_BOUND: meanings.FLAGS[Flag.LAUNCH_BOUND],
    Flag.NEAR_CACHE_SIZE: "the tensors take a quarter to twice of the last-level cache: who else uses it decides",
}
"""What the flags mean that make a ratio between separate runs doubtful."""

_MOST_TEXT = 200

_MISSED = 20
"""Of so many 95 % intervals one misses the truth by chance."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What is reported: the changes, what the gate says of them where there is one, and the names of the runs."""

    found: Changes
    gate: Gate | None
    base: str
    head: str


def headline(report: Report) -> str:
    """How many cases have which outcome, and how many broke."""
    found = report.found
    runs = f"HEAD ({report.head}) against BASE ({report.base})"
    broken = f"; {cases(len(found.broken))} that had a time broke" if found.broken else ""
    if not found.changes:
        return f"{runs}: no case has a time in both{broken}"
    counts = units.join([f"{count} {outcome}" for outcome in ORDER if (count := _count(found.changes, outcome))])
    return f"{runs}: of {cases(len(found.changes))} {counts}, margin {units.percent(found.margin)}{broken}"


def means_note(means: Sequence[Mean]) -> str | None:
    """The geometric means of the speedups in one sentence."""
    own = [mean for mean in means if mean.implementation is not None]
    if not own:
        return None
    parts = units.join([f"{mean.implementation} {units.ratio(mean.speedup)}" for mean in own])
    total = next((mean for mean in means if mean.implementation is None), own[0])
    each = f": {parts}" if len(own) > 1 else f" of {own[0].implementation}"
    return f"Geometric mean of the speedups {units.ratio(total.speedup)} over {cases(total.cases)}{each}"


def drift_note(found: Changes) -> str:
    """What kind of ratio this is, and what of the machine is in it."""
    baseline = found.base.header.plan.baseline
    if found.relative:
        return (
            f"Relative: each time ÷ its own run's {baseline}, paired by round; speedup is BASE's ÷ HEAD's. What the "
            f"machine did to a whole run is not in it; what changed {baseline} itself is in every line"
        )
    return (
        "Speedup is BASE's time ÷ HEAD's. The runs are separate and nothing is paired: what the machine did in one "
        "of them alone is in every ratio and in no interval (--relative divides by each run's own baseline)"
    )


def floor_note(found: Changes) -> str | None:
    """The floor as the gauge of what the machine did; None where it has no ratio."""
    speedup = found.floor_speedup
    if speedup is None:
        return None
    name = found.base.header.plan.floor
    values = sorted(change.speedup.value for change in found.floor if change.speedup is not None)
    over = f" ({statements.value_range(values)} in {len(values)} cells)" if len(values) > 1 else ""
    if found.relative:
        baseline = found.base.header.plan.baseline
        return (
            f"The floor {name} is {units.ratio(speedup)} times as fast relative to {baseline}{over}: "
            f"so far did the two yardsticks move apart"
        )
    same = found.base.header.environment == found.head.header.environment
    who = "the machine" if same else "the machine, or the software"
    return f"The floor {name} itself is {units.ratio(speedup)} times as fast in HEAD{over}: that much is {who}"


def notes(report: Report) -> list[str]:
    """What must be known to read the ratios."""
    found = report.found
    texts = [
        _same_run_note(found),
        *(f"{side} is incomplete: {statements.missing(run)}" for side, run in _sides(found) if run.missing),
        drift_note(found),
        floor_note(found),
        _process_note(found),
        _chance_note(found),
        f"{cases(len(found.untimed))} have no time in either run" if found.untimed else None,
    ]
    return [text for text in texts if text]


def _sides(found: Changes) -> list[tuple[str, Run]]:
    return [("BASE", found.base), ("HEAD", found.head)]


def _same_run_note(found: Changes) -> str | None:
    same = found.base.header == found.head.header and found.base.results == found.head.results
    return "BASE and HEAD are the same run: nothing can have changed" if same else None


def _process_note(found: Changes) -> str | None:
    """Where an interval is over the placements of one process, that process's bias is in none of it."""
    single = [side for side, run in _sides(found) if run.header.plan.precision.processes == 1]
    if not single or not found.changes:
        return None
    return (
        f"{units.join(single)} measured in one process: what that has in common biases all of its placements and is "
        "in no interval; --processes 5 or more covers it"
    )


def _chance_note(found: Changes) -> str | None:
    """How many of so many intervals miss the truth."""
    judged = sum(change.has_interval for change in found.changes)
    if judged < _MISSED:
        return None
    return (
        f"Of {judged} intervals of 95 % about {round(judged / _MISSED)} will miss the truth by chance: a single line "
        "that is slower or faster by little more than the margin may be one of them"
    )


def gate_note(gate: Gate) -> str:
    """What the gate found, in one sentence."""
    limit = f"slower by more than {units.percent(gate.threshold)}"
    every = f"with intervals widened so that all {gate.judged} hold together (Bonferroni)" if gate.judged > 1 else ""
    if not gate.judged and not gate.broken:
        return f"--fail-on: no case can be judged to be {limit}, since none has an interval"
    text = f"--fail-on: {units.join([*_regressions(gate), *_breakages(gate)])}" if gate.fails else "--fail-on: passed"
    passed = "" if gate.fails else f"; no case is {limit}"
    more = f"; {cases(len(gate.chance))} more by their own interval, which may be chance" if gate.chance else ""
    blind = f"; in {cases(len(gate.blind))} the interval is too wide to exclude it" if gate.blind else ""
    return f"{text}{passed} {every}".rstrip() + more + blind


def regression_message(gate: Gate) -> str:
    """What the error says: how many, and the worst."""
    found = _regressions(gate)
    if gate.slower:
        worst = gate.slower[0]
        found[0] += f", the worst {describe(worst.change.case)} at {estimate(worst.speedup)} times BASE's speed"
    broken = _breakages(gate)
    if gate.broken:
        first = gate.broken[0]
        broken[0] += f", the first {describe(first.case)}: {first.head.status}: {clipped(first.head.reason or '')}"
    return "; ".join([*found, *broken])


def _regressions(gate: Gate) -> list[str]:
    limit = units.percent(gate.threshold)
    return [f"{len(gate.slower)} of {cases(gate.judged)} slower by more than {limit}"] if gate.slower else []


def _breakages(gate: Gate) -> list[str]:
    return [f"{cases(len(gate.broken))} that had a time broke"] if gate.broken else []


def lopsided_lines(pairs: Iterable[Lopsided], plan: Plan) -> list[tuple[str, str, str]]:
    """Cases with a time in one run: (implementation and statuses, where, reason), alike ones together."""
    alike: dict[tuple[str, str], list[Cell]] = {}
    for pair in pairs:
        what = f"{pair.case.implementation}: {pair.base.status} in BASE, {pair.head.status} in HEAD"
        alike.setdefault((what, pair.head.reason or pair.base.reason or ""), []).append(pair.case.cell)
    return [(what, "; ".join(statements.where(plan, cells)), clipped(why)) for (what, why), cells in alike.items()]


def only_lines(found: Changes) -> list[str]:
    """What is in one run alone, in as few places as say it."""
    return [
        f"only in {side}: {units.join(names)}, {place}"
        for side, run, of_side in (("BASE", found.base, found.only_base), ("HEAD", found.head, found.only_head))
        for names, place in _places(of_side, run.header.plan)
    ]


def _places(found: Iterable[Case], plan: Plan) -> list[tuple[list[str], str]]:
    by_name: dict[str, list[Cell]] = {}
    for case in found:
        by_name.setdefault(case.implementation, []).append(case.cell)
    alike: dict[str, list[str]] = {}
    for name, cells in by_name.items():
        alike.setdefault("; ".join(statements.where(plan, cells)), []).append(name)
    return [(names, place) for place, names in alike.items()]


def doubt_lines(found: Changes) -> list[str]:
    """Each flag that makes ratios doubtful, how often it occurs in either run, and what it means."""
    lines = []
    for flag, meaning in DOUBTS.items():
        base = sum(flag in change.base_flags for change in found.changes)
        head = sum(flag in change.head_flags for change in found.changes)
        if base or head:
            lines.append(f"{flag} ({base} in BASE, {head} in HEAD, of {len(found.changes)}): {meaning}")
    return lines


def reason_lines(found: Changes) -> list[str]:
    """Why cases stay undecided, each reason with how many."""
    counts: dict[Reason, int] = {}
    for change in found.changes:
        if change.outcome is Outcome.UNDECIDED:
            counts[change.reason] = counts.get(change.reason, 0) + 1
    return [f"{reason} ({count}): {REASONS[reason]}" for reason, count in counts.items()]


def flags_text(change: Change) -> str:
    """The flags of a line, with the run that they hold of where it is one."""
    both = [flag for flag in change.base_flags if flag in change.head_flags]
    base = [f"{flag} (BASE)" for flag in change.base_flags if flag not in both]
    head = [f"{flag} (HEAD)" for flag in change.head_flags if flag not in both]
    return ", ".join([*both, *base, *head])


def ordered(changes: Iterable[Change]) -> list[Change]:
    """The slower ones, the slowest first; the faster ones, the fastest first; then the others by their case."""
    rank = {outcome: number for number, outcome in enumerate(ORDER)}
    return sorted(changes, key=lambda change: (rank[change.outcome], _distance(change)))


def _distance(change: Change) -> float:
    """Ascending from the largest effect, for what is decided to differ."""
    if change.speedup is None or change.outcome not in (Outcome.SLOWER, Outcome.FASTER):
        return 0.0
    return -abs(log(change.speedup.value))


def value(found: Changes, of_side: Estimate | None) -> str:
    """A time, or a time ÷ the baseline's."""
    if of_side is None:
        return units.ABSENT
    return units.times(of_side.value) if found.relative else units.duration(of_side.value)


def estimate(speedup: Estimate | None) -> str:
    """A ratio with its interval."""
    return units.ABSENT if speedup is None else units.ratio(speedup.value, speedup.low, speedup.high)


def describe(case: Case) -> str:
    """A case in a sentence."""
    return f"{case.implementation} {case.cell}"


def cases(count: int) -> str:
    """So many cases."""
    return "1 case" if count == 1 else f"{count} cases"


def clipped(text: str) -> str:
    """A reason on one line of bearable length."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _MOST_TEXT else f"{flat[: _MOST_TEXT - 1]}…"


def _count(changes: Iterable[Change], outcome: Outcome) -> int:
    return sum(change.outcome is outcome for change in changes)
