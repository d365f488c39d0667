"""A run's plan beside what is asked for when it is gone on with: the same, more of it, or another run's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from normbench.cli.plan import Request, options, spelled_out
from normbench.errors import UsageError
from normbench.records import Brought, DeviceInfo, Plan, Precision

T = TypeVar("T")

_AXES = ("--widths", "--rows", "--dtypes", "--param-dtypes", "--autocasts", "--modes", "--caches")
_PRECISION = (
    *("--placements", "--processes", "--target", "--max-seconds", "--total-seconds"),
    *("--case-timeout", "--no-isolate"),
)
_JUDGING = ("--fail-on",)
"""What decides what is said of a run's times, and nothing about them: whoever goes on may ask for another."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """An option of which something else is asked for than the run has.

    Args:
        option: The option.
        had: What the run has.
        asked: What is asked for.
        lost: What the run has of an axis and would no longer have.
        is_possible: Whether what is measured already stays right and complete.
        is_free: Whether nothing is measured by it, so that it needs no force and is no change of the run.
    """

    option: str
    had: str
    asked: str
    lost: str
    is_possible: bool
    is_free: bool = False

    def __str__(self) -> str:
        return f"{self.option}: the run has {self.had}, asked for {self.asked}"

    @property
    def sentence(self) -> str:
        """What the run says of it once it was made."""
        return f"{self.option} was {self.had}, is {self.asked}"


def revised(plan: Plan, request: Request, device: DeviceInfo) -> Plan:
    """A run's plan with what a request says in the place of what it had.

    Args:
        plan: The run's plan.
        request: What is asked for; where it is silent the plan stays as it is.
        device: The run's device, which decides what ``--quick`` asks for.

    Raises:
        UsageError: No plan can be like that.
    """
    try:
        return _revised(plan, spelled_out(request, device))
    except ValueError as error:
        raise UsageError(f"--resume: {error}", hint="see normbench sweep --help") from error


def _revised(plan: Plan, asked: Request) -> Plan:
    baseline = asked.baseline or plan.baseline
    names = {*(_named(plan, asked) or plan.implementations), plan.floor, baseline}
    isolate = not asked.no_isolate and (
        asked.no_isolate is False or plan.isolate or asked.case_timeout_s is not None or (asked.processes or 1) > 1
    )
    limit = plan.case_timeout_s if plan.isolate else Plan.case_timeout_s
    return replace(
        plan,
        widths=_joined(plan.widths, asked.widths),
        rows=_joined(plan.rows, asked.rows),
        dtypes=_joined(plan.dtypes, asked.dtypes),
        parameter_dtypes=_joined(plan.parameter_dtypes, asked.parameter_dtypes),
        autocasts=_joined(plan.autocasts, asked.autocasts),
        modes=_joined(plan.modes, asked.modes),
        caches=_joined(plan.caches, asked.caches),
        implementations=_joined(plan.implementations, tuple(sorted(names))),
        brought=tuple(_with(plan.brought, asked.brought)),
        baseline=baseline,
        eps=_or(asked.eps, plan.eps),
        compile_mode=_or(asked.compile_mode, plan.compile_mode),
        graphs=_or(asked.graphs, plan.graphs),
        profile=_or(asked.profile, plan.profile),
        counters=_or(asked.counters, plan.counters),
        isolate=isolate,
        case_timeout_s=_or(asked.case_timeout_s, limit) if isolate else None,
        seed=_or(asked.seed, plan.seed),
        precision=_precision(plan.precision, asked),
        fail_on=_or(asked.fail_on, plan.fail_on),
    )


def _named(plan: Plan, asked: Request) -> tuple[str, ...]:
    """The implementations that are asked for; none where that only says again where the run's own lie."""
    brought = {one.name for one in asked.brought}
    is_again = brought == set(asked.implementations) <= set(plan.implementations)
    return () if is_again else asked.implementations


def changes(plan: Plan, asked: Plan) -> list[Change]:
    """What differs between a run's plan and another, option by option; values in another order do not."""
    had, wanted = options(plan), options(asked)
    same_cells = set(plan.cells()) == set(asked.cells())
    return [
        _change(option, had.get(option), wanted.get(option))
        for option in dict.fromkeys([*had, *wanted])
        if _value(had.get(option)) != _value(wanted.get(option)) and not (same_cells and option in _AXES)
    ]


def _change(option: str, had: tuple[str, ...] | None, asked: tuple[str, ...] | None) -> Change:
    lost = tuple(value for value in had or () if value not in (asked or ())) if option in _AXES else ()
    return Change(
        option=option,
        had=_words(had),
        asked=_words(asked),
        lost=" ".join(lost),
        is_possible=not lost and option in (*_AXES, *_PRECISION, *_JUDGING),
        is_free=option in _JUDGING,
    )


def _value(values: tuple[str, ...] | None) -> frozenset[str] | None:
    return None if values is None else frozenset(values)


def _words(values: tuple[str, ...] | None) -> str:
    return "none" if values is None else " ".join(values) or "it"


def _with(had: Iterable[Brought], asked: Iterable[Brought]) -> Iterable[Brought]:
    """What was brought, and what is brought now besides; as run folders hold it.

    What is named again may lie elsewhere now. Whether it is still the same, its digest says.
    """
    known = {one.name: one for one in had}
    return (*known.values(), *(one.published for one in asked if one.name not in known))


def _joined(had: tuple[T, ...], asked: tuple[T, ...]) -> tuple[T, ...]:
    """What is asked for: first what was there, in its order, so that the first cells stay the first."""
    if not asked:
        return had
    return (*(value for value in had if value in asked), *(value for value in asked if value not in had))


def _or(value: T | None, otherwise: T) -> T:
    return otherwise if value is None else value


def _precision(had: Precision, asked: Request) -> Precision:
    return replace(
        had,
        placements=_or(asked.placements, had.placements),
        processes=1 if asked.no_isolate else _or(asked.processes, had.processes),
        target=_or(asked.target, had.target),
        max_seconds=_or(asked.max_seconds, had.max_seconds),
        total_seconds=_or(asked.total_seconds, had.total_seconds),
    )
