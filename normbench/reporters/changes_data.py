"""What changed between two runs as plain data, for programs: numbers as numbers, None for what is absent."""

from __future__ import annotations

from normbench.changes import Change, Lopsided
from normbench.gate import Finding, Gate
from normbench.records import CELL_KEY, Case, Estimate
from normbench.reporters import changes as words
from normbench.reporters import changes_notes
from normbench.reporters.differences import differences

Values = dict[str, object]


def as_dictionary(report: words.Report) -> Values:
    """Everything that the table and the markdown are made from."""
    found = report.found
    return {
        "base": report.base,
        "head": report.head,
        "relative": found.relative,
        "baseline": found.base.header.plan.baseline if found.relative else None,
        "margin": found.margin,
        "changes": [_change(change) for change in found.changes],
        "floor": [_change(change) for change in found.floor],
        "floor_speedup": found.floor_speedup,
        "geometric_means": [vars(mean) for mean in found.means],
        "time_in_one": [_lopsided(pair) for pair in found.lopsided],
        "without_time": [_case(case) for case in found.untimed],
        "only_in_base": [_case(case) for case in found.only_base],
        "only_in_head": [_case(case) for case in found.only_head],
        "differences": [vars(each) for each in differences(found.base.header, found.head.header)],
        "notes": changes_notes.notes(report),
        "gate": None if report.gate is None else _gate(report.gate),
    }


def _case(case: Case) -> Values:
    return {**{name: getattr(case.cell, name) for name in CELL_KEY}, "implementation": case.implementation}


def _estimate(name: str, estimate: Estimate | None) -> Values:
    parts = {name: "value", f"{name}_low": "low", f"{name}_high": "high"}
    return {key: None if estimate is None else getattr(estimate, part) for key, part in parts.items()}


def _change(change: Change) -> Values:
    """``base`` and ``head`` are seconds, or times ÷ the baseline's where the comparison is relative."""
    return {
        **_case(change.case),
        **_estimate("base", change.before),
        **_estimate("head", change.after),
        **_estimate("speedup", change.speedup),
        "outcome": change.outcome,
        "reason": change.reason,
        "base_flags": list(change.base_flags),
        "head_flags": list(change.head_flags),
    }


def _lopsided(pair: Lopsided) -> Values:
    return {
        **_case(pair.case),
        "base_status": pair.base.status,
        "base_reason": pair.base.reason,
        "head_status": pair.head.status,
        "head_reason": pair.head.reason,
        "broken": pair.is_broken,
    }


def _gate(gate: Gate) -> Values:
    return {
        "threshold": gate.threshold,
        "judged": gate.judged,
        "fails": gate.fails,
        "slower": [_finding(each) for each in gate.slower],
        "broken": [_case(pair.case) for pair in gate.broken],
        "perhaps_chance": [_case(change.case) for change in gate.chance],
        "interval_too_wide": [_case(change.case) for change in gate.blind],
    }


def _finding(finding: Finding) -> Values:
    """With the interval that the gate judged by."""
    return {**_case(finding.change.case), **_estimate("speedup", finding.speedup)}
