"""A check as plain data, for programs: numbers as numbers, None for what is absent or infinite."""

from __future__ import annotations

from dataclasses import asdict
from math import isinf

from normbench.grades import Card, Grade
from normbench.records import Check
from normbench.reporters import checks as words
from normbench.reporters import spots
from normbench.storage.check_columns import gap_values, spot_values, values

Values = dict[str, object]


def as_dictionary(card: Card) -> Values:
    """Everything that the table and the markdown are made from."""
    header = card.run.header
    return {
        "complete": card.run.complete,
        "seconds": card.run.seconds,
        "created_utc": header.created_utc,
        "command": list(header.command),
        "plan": vars(header.plan),
        "allowed": [str(allowance) for allowance in header.allowed],
        "device": vars(header.device),
        "environment": vars(header.environment),
        "implementations": [asdict(info) for info in header.implementations],
        "headline": words.headline(card),
        "totals": vars(card.totals),
        "failed": any(grade.counts for grade in card.failing),
        "grades": [_grade(grade) for grade in card.grades],
        "checks": [check_values(check) for check in card.run.checks],
    }


def _grade(grade: Grade) -> Values:
    return {
        "implementation": grade.implementation,
        "property": grade.property,
        "mark": grade.mark,
        "allowed": grade.allowed,
        "coarse": grade.is_coarse,
        "worst": {str(output): _gap(check) | spot_values(check.spot) for output, check in grade.worst.items()},
        "failures": [
            {
                "reason": failure.worst.reason,
                "where": spots.places(failure.checks, grade.asked),
                "checks": len(failure.checks),
                "output": failure.worst.output,
                **_gap(failure.worst),
                **spot_values(failure.worst.spot),
            }
            for failure in grade.failures
        ],
        "not_applicable": list(grade.unasked),
    }


def check_values(check: Check) -> Values:
    """One check; ``infinite`` says that what is None in its figures has no bound, and is not absent."""
    return {**values(check), **_gap(check)}


def _gap(check: Check) -> Values:
    figures = gap_values(check.gap)
    infinite = {name for name, value in figures.items() if isinstance(value, float) and isinf(value)}
    return {name: None if name in infinite else value for name, value in figures.items()} | {
        "infinite": bool(infinite)
    }
