"""A check in words: its answer, who fails what and where, what is only coarsely right, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from normbench import units
from normbench.grades import Card, Failure, Grade
from normbench.records import Check, DType, Gap, Mark, Output, Property
from normbench.reporters import spots, statements

UNREACHED = "?"
"""What stands for a pair that a check did not come to."""

MOST_PLACES = 6
"""More places than this are counted."""

LEGEND = (
    "ulp: units in the last place of the output's format, at the size of the terms that an element is summed up from",
    "the number: the largest over y, dx, dgain and dbias, formats and widths; not everywhere is as little allowed",
    "where something fails or is coarse, the largest of that",
    "FAIL grad: y is right everywhere, and a gradient is not",
    "coarse: right only if statistics or sums may be kept in half precision, which is far less exact than float32",
    "a dash: can't be asked of this formula, or here",
)
"""What the cells of the table of grades mean."""


@dataclass(frozen=True, kw_only=True)
class FailureLine:
    """A failure in words.

    Args:
        who: The implementation.
        what: The property.
        where: The places.
        why: What the worst of them says.
        off: How far off that is, and what is allowed; empty where nothing was compared.
        spot: Where that one is.
        allowed: Whether it is known and does not count.
    """

    who: str
    what: str
    where: str
    why: str
    off: str
    spot: str
    allowed: bool


def cell(grade: Grade | None) -> str:
    """A grade in a few letters: ``ok 0.6``, ``FAIL fp16``, ``FAIL grad``, ``coarse 64``, ``-``."""
    if grade is None:
        return UNREACHED
    if grade.mark is Mark.NOT_APPLICABLE:
        return units.ABSENT
    if grade.mark is Mark.FAIL:
        return " ".join(["FAIL", *_only_gradients(grade), *_only_dtype(grade)])
    if grade.is_coarse:
        return "coarse" if grade.ulp is None else f"coarse {units.ulps(grade.ulp)}"
    return "ok" if grade.ulp is None else f"ok {units.ulps(grade.ulp)}"


def _only_gradients(grade: Grade) -> list[str]:
    """A word where y is right everywhere."""
    failed = {check.output for failure in grade.failures for check in failure.checks}
    return [] if failed & {None, Output.Y} else ["grad"]


def _only_dtype(grade: Grade) -> list[str]:
    """The one dtype of x in which it fails, where it was asked in others too."""
    failed = {check.spot.dtype for failure in grade.failures for check in failure.checks}
    return [str(dtype) for dtype in failed if len(failed) == 1 and {c.spot.dtype for c in grade.asked} > failed]


def headline(card: Card) -> str:
    """The answer, in a sentence without its full stop."""
    plan = card.run.header.plan
    of = f"{units.count(len(card.names), 'implementation')}, {units.count(len(plan.properties), 'property')}"
    so_far = "" if card.run.complete else "so far "
    if not card.has_verdict:
        return f"{of}: nothing could be checked" if card.run.complete else f"{of}: nothing was checked yet"
    parts = [part for part in (_who(card, allowed=False), _who(card, allowed=True)) if part]
    return f"{of}: {so_far}{'; '.join(parts) or 'nothing fails'}"


def _who(card: Card, *, allowed: bool) -> str:
    """Who fails what: properties by name where they are few."""
    by_name: dict[str, list[Property]] = {}
    for grade in card.failing:
        if grade.allowed is allowed:
            by_name.setdefault(grade.implementation, []).append(grade.property)
    if not by_name:
        return ""
    named = [f"{name} ({_properties(asked, statements.MOST_PLACES)})" for name, asked in by_name.items()]
    verb = "fails" if len(named) == 1 else "fail"
    what = "what is allowed to fail" if allowed else "something"
    return f"{len(named)} {verb} {what}: {', '.join(statements.first_few(named, MOST_PLACES))}"


def _properties(asked: Sequence[Property], most: int | None) -> str:
    few = most is None or len(asked) <= most
    return units.join(asked) if few else units.count(len(asked), "property")


def totals(card: Card) -> str:
    """How many grades there are of each kind, in a sentence without its full stop."""
    found = card.totals
    coarse = f" ({found.coarse} only coarsely)" if found.coarse else ""
    allowed = f" ({found.allowed} allowed)" if found.allowed else ""
    unreached = f", {found.unreached} not come to" if found.unreached else ""
    pairs = len(card.grades) + found.unreached
    return (
        f"Of {units.count(pairs, 'pair')} of implementation and property {found.passed} pass{coarse}, "
        f"{found.failed} fail{allowed}, {found.not_applicable} can't be asked{unreached}"
    )


def end(card: Card) -> str:
    """With which exit code such a check ends and what that means, in a sentence without its full stop."""
    if not card.run.complete:
        return "incomplete, so this is no verdict on what was not asked"
    if not card.has_verdict:
        return "exit code 3: nothing could be checked"
    if any(grade.counts for grade in card.failing):
        return "exit code 1: a property that is not allowed to fail does"
    return "exit code 0: nothing fails that is not allowed to" if card.failing else "exit code 0: nothing fails"


def failures(card: Card) -> list[FailureLine]:
    """What fails, those that count first."""
    return [_failure(grade, failure) for grade in card.failing for failure in grade.failures]


def _failure(grade: Grade, failure: Failure) -> FailureLine:
    worst = failure.worst
    return FailureLine(
        who=grade.implementation,
        what=str(grade.property),
        where=_places(failure.checks, grade.asked),
        why=worst.reason or "",
        off=off(worst.gap),
        spot=str(worst.spot),
        allowed=grade.allowed,
    )


def off(gap: Gap | None) -> str:
    """A distance: ``12 ulp (1.4e-06), 5.2 times what is allowed``; nothing where there is none."""
    return "" if gap is None else f"{distance(gap)}, {units.ulps(gap.of_allowed)} times what is allowed"


def distance(gap: Gap) -> str:
    """A distance in ulp and relative: ``12 ulp (1.4e-06)``."""
    return f"{units.ulps(gap.ulp)} ulp ({units.scientific(gap.relative)})"


def _places(found: Iterable[Check], asked: Sequence[Check]) -> str:
    every = spots.places(found, asked)
    more = [units.count(len(every) - MOST_PLACES, "more such place")] if len(every) > MOST_PLACES else []
    return "; ".join([*every[:MOST_PLACES], *more])


def coarse(card: Card, most: int | None = None) -> list[tuple[str, str, str]]:
    """What is right only coarsely: (implementation, where, properties), alike ones together.

    Args:
        card: The grades.
        most: More properties than this are counted rather than named.
    """
    alike: dict[tuple[str, str], list[Property]] = {}
    for grade in card.grades:
        if grade.coarse:
            alike.setdefault((grade.implementation, _places(grade.coarse, grade.asked)), []).append(grade.property)
    return [(name, where, _properties(asked, most)) for (name, where), asked in alike.items()]


def notes(card: Card) -> list[str]:
    """What must be known of a check besides its grades, a sentence each."""
    return [*_incomplete(card), *_unaskable(card), *_unused(card), *_formats(card)]


def _incomplete(card: Card) -> list[str]:
    if card.run.complete:
        return []
    counts: dict[str, int] = {}
    for name, _asked in card.unreached:
        counts[name] = counts.get(name, 0) + 1
    lacking = [f"{name} ({units.count(count, 'property')})" for name, count in counts.items()]
    lacks = f"not come to: {units.join(lacking)}" if lacking else "of what was begun last not every spot may be there"
    return [f"This check was ended before it was done; {lacks}."]


def _unaskable(card: Card) -> list[str]:
    """Who could be asked nothing at all, and why."""
    lines = []
    for name, own in card.by_name.items():
        if own and all(grade.mark is Mark.NOT_APPLICABLE for grade in own):
            reasons = dict.fromkeys(reason for grade in own for reason in grade.unasked)
            lines.append(f"Nothing could be asked of {name}: {'; '.join(list(reasons)[:MOST_PLACES])}.")
    return lines


def _unused(card: Card) -> list[str]:
    if not card.unused or not card.run.complete:
        return []
    return [f"Allowed to fail, and does not: {units.join([str(allowance) for allowance in card.unused])}."]


def _formats(card: Card) -> list[str]:
    """Whose y has another format than x, and when: what comes next then runs in that one."""
    names: dict[tuple[DType, str], dict[str, None]] = {}
    for check in (check for grade in card.grades for check in grade.asked):
        if check.output is Output.Y and check.out_dtype is not None:
            names.setdefault((check.out_dtype, spots.formats(check.spot)), {})[check.implementation] = None
    alike: dict[tuple[DType, tuple[str, ...]], list[str]] = {}
    for (out_dtype, of), who in names.items():
        alike.setdefault((out_dtype, tuple(who)), []).append(of)
    return [
        f"y is {out_dtype}, which is not x's format, for {units.join(of)}: {units.join(who)}."
        for (out_dtype, who), of in alike.items()
    ]


def scope(card: Card) -> str:
    """On what and with what was checked, in a sentence without its full stop."""
    header, plan = card.run.header, card.run.header.plan
    took = f"; took {units.time_left(card.run.seconds)}" if card.run.seconds is not None else ""
    return (
        f"{header.device.name}, torch {header.environment.torch}: {units.join(plan.dtypes)}, "
        f"{statements.at(plan.widths)}, eps {plan.eps}, seed {plan.seed}{took}"
    )
