"""Checks to grades: how each implementation does in each property, where it fails, and what that comes to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from normbench.records import Allowance, Check, CheckRun, Mark, Output, Property

_WHICH = re.compile(r"\b(?:y|dx|dgain|dbias)\[[\d, ]*\]")
_NUMBER = re.compile(r"[-+]?\b(?:inf|nan|\d[\w.+-]*)\b")


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Checks of one implementation and property that fail for one reason, whatever its figures.

    Args:
        worst: The one that is furthest beyond what is allowed; it speaks for all.
        checks: All of them, in the order in which they were asked.
    """

    worst: Check
    checks: tuple[Check, ...]


@dataclass(frozen=True, kw_only=True)
class Grade:
    """How one implementation does in one property, over all spots and outputs.

    Args:
        implementation: Whose.
        property: Which.
        mark: ``fail`` where any check failed, else ``pass`` where any passed, else ``n.a.``.
        asked: The checks that passed or failed.
        worst: For each output the check that is off by the most units in the last place: of those beyond what is
            allowed, where there are such, since a unit is not the same in all formats.
        failures: What fails, each reason once.
        coarse: The checks that pass only by the coarse tolerance.
        unasked: Why it can't be asked, where it can't, each reason once.
        allowed: Whether a failure is known and does not count.
    """

    implementation: str
    property: Property
    mark: Mark
    asked: tuple[Check, ...]
    worst: Mapping[Output, Check]
    failures: tuple[Failure, ...]
    coarse: tuple[Check, ...]
    unasked: tuple[str, ...]
    allowed: bool = False

    @cached_property
    def ulp(self) -> float | None:
        """The largest distance in units in the last place, chosen as ``worst`` is; None where there is none."""
        return max((check.gap.ulp for check in _foremost(self.worst.values()) if check.gap), default=None)

    @cached_property
    def counts(self) -> bool:
        """Whether it is a failure that nobody has allowed."""
        return self.mark is Mark.FAIL and not self.allowed

    @cached_property
    def is_coarse(self) -> bool:
        """Whether it passes, somewhere only by the coarse tolerance."""
        return self.mark is Mark.PASS and bool(self.coarse)


@dataclass(frozen=True, kw_only=True)
class Totals:
    """How many pairs of implementation and property there are of each kind.

    Args:
        passed: That pass.
        coarse: Of those, that do so somewhere only by the coarse tolerance.
        failed: That fail.
        allowed: Of those, that are known and do not count.
        not_applicable: That can't be asked.
        unreached: That were not come to.
    """

    passed: int
    coarse: int
    failed: int
    allowed: int
    not_applicable: int
    unreached: int


@dataclass(frozen=True, kw_only=True)
class Card:
    """A check with its grades, by implementation in the order of reports, then by property.

    Args:
        run: What was found.
        grades: Those of all pairs that were come to.
    """

    run: CheckRun
    grades: tuple[Grade, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The implementations."""
        return tuple(info.name for info in self.run.header.implementations)

    @cached_property
    def by_pair(self) -> Mapping[tuple[str, Property], Grade]:
        """The grades by implementation and property."""
        return {(grade.implementation, grade.property): grade for grade in self.grades}

    @cached_property
    def by_name(self) -> Mapping[str, tuple[Grade, ...]]:
        """The grades of each implementation, those without any among them."""
        found: dict[str, list[Grade]] = {name: [] for name in self.names}
        for grade in self.grades:
            found[grade.implementation].append(grade)
        return {name: tuple(own) for name, own in found.items()}

    @cached_property
    def failing(self) -> tuple[Grade, ...]:
        """The failures that count, then those that are allowed."""
        failed = [grade for grade in self.grades if grade.mark is Mark.FAIL]
        return tuple(sorted(failed, key=lambda grade: grade.allowed))

    @cached_property
    def unreached(self) -> tuple[tuple[str, Property], ...]:
        """The pairs without a single check: of a run that was ended early, what it did not come to."""
        pairs = ((name, asked) for name in self.names for asked in self.run.header.plan.properties)
        return tuple(pair for pair in pairs if pair not in self.by_pair)

    @cached_property
    def unused(self) -> tuple[Allowance, ...]:
        """The allowances of which nothing fails."""
        failed = [(grade.implementation, grade.property) for grade in self.grades if grade.mark is Mark.FAIL]
        return tuple(a for a in self.run.header.allowed if not any(a.covers(*pair) for pair in failed))

    @cached_property
    def totals(self) -> Totals:
        """How many of each kind."""
        marks = [grade.mark for grade in self.grades]
        return Totals(
            passed=marks.count(Mark.PASS),
            coarse=sum(grade.is_coarse for grade in self.grades),
            failed=marks.count(Mark.FAIL),
            allowed=sum(grade.allowed for grade in self.failing),
            not_applicable=marks.count(Mark.NOT_APPLICABLE),
            unreached=len(self.unreached),
        )

    @property
    def has_verdict(self) -> bool:
        """Whether anything could be asked of anyone."""
        return any(grade.mark is not Mark.NOT_APPLICABLE for grade in self.grades)


def of_run(run: CheckRun) -> Card:
    """The grades of a check."""
    found: dict[tuple[str, Property], list[Check]] = {}
    for check in run.checks:
        found.setdefault((check.implementation, check.property), []).append(check)
    pairs = ((info.name, asked) for info in run.header.implementations for asked in run.header.plan.properties)
    return Card(run=run, grades=tuple(grade(found[pair], run.header.allowed) for pair in pairs if pair in found))


def grade(checks: Sequence[Check], allowed: Iterable[Allowance] = ()) -> Grade:
    """The grade of some checks, one at least, all of one implementation and one property."""
    name, asked = checks[0].implementation, checks[0].property
    marks = {check.mark for check in checks}
    mark = next(mark for mark in (Mark.FAIL, Mark.PASS, Mark.NOT_APPLICABLE) if mark in marks)
    reasons = (check.reason for check in checks if check.mark is Mark.NOT_APPLICABLE)
    return Grade(
        implementation=name,
        property=asked,
        mark=mark,
        asked=tuple(check for check in checks if check.mark is not Mark.NOT_APPLICABLE),
        worst=_worst(checks),
        failures=_failures(check for check in checks if check.mark is Mark.FAIL),
        coarse=tuple(check for check in checks if check.coarse),
        unasked=tuple(dict.fromkeys(reason for reason in reasons if reason is not None)),
        allowed=mark is Mark.FAIL and any(allowance.covers(name, asked) for allowance in allowed),
    )


def _badness(check: Check) -> tuple[float, float]:
    """What the worst has most of; a check without a gap has least."""
    return (-1.0, -1.0) if check.gap is None else (check.gap.of_allowed, check.gap.ulp)


def _foremost(checks: Iterable[Check]) -> list[Check]:
    """Those beyond what is allowed; all with a distance where none is."""
    compared = [check for check in checks if check.gap is not None]
    return [check for check in compared if check.gap is not None and check.gap.of_allowed > 1] or compared


def _worst(checks: Sequence[Check]) -> dict[Output, Check]:
    by_output = {output: _foremost(check for check in checks if check.output is output) for output in Output}
    return {output: max(own, key=lambda check: _badness(check)[::-1]) for output, own in by_output.items() if own}


def _failures(checks: Iterable[Check]) -> tuple[Failure, ...]:
    alike: dict[str, list[Check]] = {}
    for check in checks:
        alike.setdefault(_kind(check.reason or ""), []).append(check)
    return tuple(Failure(worst=max(same, key=_badness), checks=tuple(same)) for same in alike.values())


def _kind(reason: str) -> str:
    """A reason without what differs from spot to spot: which element of which output, and the figures."""
    return _NUMBER.sub("#", _WHICH.sub("[]", reason))
