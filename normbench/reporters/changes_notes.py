"""The sentences about two runs: how many cases changed, what of it the machine did, whether the gate passes."""

from __future__ import annotations

from collections.abc import Sequence

from normbench import units
from normbench.changes import Changes, Mean
from normbench.gate import Gate
from normbench.records import Flag, Run
from normbench.reporters import changes as words
from normbench.reporters import statements
from normbench.reporters.completeness import resumption_notes

_MISSED = 20
"""Of so many 95 % intervals one misses the truth by chance."""


def headline(report: words.Report) -> str:
    """How many cases have which outcome, and how many broke."""
    found = report.found
    runs = f"HEAD ({report.head}) against BASE ({report.base})"
    broken = f"; {words.cases(len(found.broken))} that had a time broke" if found.broken else ""
    if not found.changes:
        return f"{runs}: no case has a time in both{broken}"
    counts = [(outcome, words.count(found.changes, outcome)) for outcome in words.ORDER]
    outcomes = units.join([f"{count} {outcome}" for outcome, count in counts if count])
    total, margin = words.cases(len(found.changes)), units.percent(found.margin)
    return f"{_beside_note(found)}{runs}: of {total} {outcomes}, margin {margin}{broken}"


def means_note(means: Sequence[Mean]) -> str | None:
    """The geometric means of the speedups in one sentence."""
    own = [mean for mean in means if mean.implementation is not None]
    if not own:
        return None
    parts = units.join([f"{mean.implementation} {units.ratio(mean.speedup)}" for mean in own])
    total = next((mean for mean in means if mean.implementation is None), own[0])
    each = f": {parts}" if len(own) > 1 else f" of {own[0].implementation}"
    return f"Geometric mean of the speedups {units.ratio(total.speedup)} over {words.cases(total.cases)}{each}"


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
    return f"The floor {name} came out {units.ratio(speedup)} times as fast in HEAD{over}: about so much is {who}"


def notes(report: words.Report) -> list[str]:
    """What must be known to read the ratios."""
    found = report.found
    texts = [
        _same_run_note(found),
        *(f"{side} is incomplete: {statements.missing(run)}" for side, run in _sides(found) if run.missing),
        *(f"{side}: {note.removesuffix('.')}" for side, run in _sides(found) for note in resumption_notes(run)),
        drift_note(found),
        floor_note(found),
        _process_note(found),
        _chance_note(found),
        f"{words.cases(len(found.untimed))} have no time in either run" if found.untimed else None,
    ]
    return [text for text in texts if text]


def _sides(found: Changes) -> list[tuple[str, Run]]:
    return [("BASE", found.base), ("HEAD", found.head)]


def _beside_note(found: Changes) -> str:
    """What makes all of it unreliable, before the numbers; empty where nothing does."""
    base = any(Flag.BUSY_MACHINE in change.base_flags for change in found.changes)
    head = any(Flag.BUSY_MACHINE in change.head_flags for change in found.changes)
    sides = units.join([side for side, busy in (("BASE", base), ("HEAD", head)) if busy])
    return f"Not reliable, since other programs ran beside {sides}: " if base or head else ""


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
    limit = f"slower, by an estimate of more than {units.percent(gate.threshold)}"
    if not gate.judged and not gate.broken:
        return f"--fail-on: no case can be judged to be {limit}, since none has an interval"
    text = "failed: " + "; ".join([*_regressions(gate), *_breakages(gate)]) if gate.fails else "passed"
    none = "" if gate.slower or not gate.judged else f"; of {words.cases(gate.judged)} none was shown to be {limit}"
    wide = f", by intervals widened so that all {gate.judged} hold together (Bonferroni)" if gate.judged > 1 else ""
    more = f"; {words.cases(len(gate.chance))} only by their own interval, which may be chance" if gate.chance else ""
    blind = f"; in {words.cases(len(gate.blind))} the interval is too wide to exclude it" if gate.blind else ""
    nothing = "; no case could be cleared: this says nothing" if len(gate.blind) == gate.judged and gate.blind else ""
    return f"--fail-on: {text}{none}{wide}{more}{blind}{nothing}"


def regression_message(gate: Gate) -> str:
    """What the error says: how many, and the worst."""
    slower, broken = _regressions(gate), _breakages(gate)
    if gate.slower:
        worst = gate.slower[0]
        slower[0] += f", the worst {words.describe(worst.change.case)} at "
        slower[0] += f"{words.estimate(worst.speedup)} times BASE's speed"
    if gate.broken:
        first = gate.broken[0]
        broken[0] += f", the first {words.describe(first.case)}: {first.head.status}: "
        broken[0] += words.clipped(first.head.reason or "")
    return "; ".join([*slower, *broken])


def _regressions(gate: Gate) -> list[str]:
    if not gate.slower:
        return []
    verb = "is" if len(gate.slower) == 1 else "are"
    return [
        f"{len(gate.slower)} of {words.cases(gate.judged)} {verb} slower by more than {units.percent(gate.threshold)}"
    ]


def _breakages(gate: Gate) -> list[str]:
    return [f"{words.cases(len(gate.broken))} that had a time broke"] if gate.broken else []
