"""What changed between two runs as lines and words, shared by the table, the markdown and the notes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log

from normbench import units
from normbench.changes import Change, Changes, Lopsided
from normbench.gate import Gate
from normbench.records import Case, Cell, Estimate, Flag, Outcome, Plan, Reason
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
    Flag.SHARED_DEVICE: meanings.FLAGS[Flag.SHARED_DEVICE],
    Flag.THROTTLED: "the GPU lowered its clock in at least one round",
    Flag.DRIFTED: "times drifted by more than 10 % while the cell was measured",
    Flag.LAUNCH_BOUND: meanings.FLAGS[Flag.LAUNCH_BOUND],
    Flag.NEAR_CACHE_SIZE: "the tensors take a quarter to twice of the last-level cache: who else uses it decides",
}
"""What the flags mean that make a ratio between separate runs doubtful."""

_MOST_TEXT = 200


@dataclass(frozen=True, kw_only=True)
class Report:
    """What is reported: the changes, what the gate says of them where there is one, and the names of the runs."""

    found: Changes
    gate: Gate | None
    base: str
    head: str


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
    return units.count(count, "case")


def clipped(text: str) -> str:
    """A reason on one line of bearable length."""
    return statements.clipped(text, _MOST_TEXT)


def count(changes: Iterable[Change], outcome: Outcome) -> int:
    """How many have an outcome."""
    return sum(change.outcome is outcome for change in changes)
