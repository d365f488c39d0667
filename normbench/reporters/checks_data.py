"""A check as plain data, for programs: numbers as numbers, None for what is absent or infinite."""

from __future__ import annotations

from math import isinf

from normbench.grades import Card, Grade
from normbench.records import SPOT_KEY, Check, Spot
from normbench.reporters import checks as words
from normbench.reporters import spots

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
        "implementations": [vars(info) for info in header.implementations],
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
        "worst": {str(output): _gap(check) | _spot(check.spot) for output, check in grade.worst.items()},
        "failures": [
            {
                "reason": failure.worst.reason,
                "where": spots.places(failure.checks, grade.asked),
                "checks": len(failure.checks),
                "output": failure.worst.output,
                **_gap(failure.worst),
                **_spot(failure.worst.spot),
            }
            for failure in grade.failures
        ],
        "not_applicable": list(grade.unasked),
    }


def check_values(check: Check) -> Values:
    """One check; ``infinite`` says that what is None in its figures has no bound, and is not absent."""
    return {
        "implementation": check.implementation,
        "property": check.property,
        **_spot(check.spot),
        "output": check.output,
        "mark": check.mark,
        "reason": check.reason,
        **_gap(check),
        "coarse": check.coarse,
        "out_dtype": check.out_dtype,
    }


def _spot(spot: Spot) -> Values:
    return {name: getattr(spot, name) for name in SPOT_KEY}


def _gap(check: Check) -> Values:
    gap = check.gap
    figures = {
        "max_ulp": gap.ulp if gap else None,
        "max_rel_error": gap.relative if gap else None,
        "max_of_allowed": gap.of_allowed if gap else None,
    }
    found = {name: None if value is None or isinf(value) else value for name, value in figures.items()}
    return {**found, "infinite": any(value is not None and isinf(value) for value in figures.values())}
