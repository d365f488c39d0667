"""An acceptance line: what was asked of the device, and the figure that was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from normbench.failures import describe
from normbench.gpu_acceptance.evidence import Evidence


class Outcome(StrEnum):
    """What became of a line."""

    HOLDS = "holds"
    FAILS = "FAILS"
    NOT_SHOWN = "not shown"
    NO_GPU = "no GPU"
    NOT_PERMITTED = "not permitted"


@dataclass(frozen=True, kw_only=True)
class Found:
    """A figure, and whether it is within its limit."""

    figure: str
    holds: bool


class NotShown(Exception):  # noqa: N818 - no error: what would show it is not there
    """There is nothing to judge by: why."""


class NotPermitted(Exception):  # noqa: N818 - the same
    """This machine does not let it be seen, which is nobody's fault: why."""


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """What is asked.

    Args:
        what: Of what a figure is taken.
        asked: What it has to be.
        judge: Finds it; raises :class:`NotShown` or :class:`NotPermitted` where it can't be had.
        needs_gpu: Whether only a GPU can show it.
        rehearsed: What there is to say without one.
    """

    what: str
    asked: str
    judge: Callable[[Evidence], Found]
    needs_gpu: bool = True
    rehearsed: Callable[[Evidence], str] = lambda _evidence: ""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A criterion and what became of it; ``figure`` is the reason where there is none."""

    what: str
    asked: str
    figure: str
    outcome: Outcome


def judged(criteria: Sequence[Criterion], evidence: Evidence) -> tuple[Line, ...]:
    """The line of each criterion, in order."""
    return tuple(_judged(criterion, evidence) for criterion in criteria)


def _judged(criterion: Criterion, evidence: Evidence) -> Line:
    figure, outcome = criterion.rehearsed(evidence), Outcome.NO_GPU
    if evidence.on_gpu or not criterion.needs_gpu:
        try:
            found = criterion.judge(evidence)
            figure, outcome = found.figure, Outcome.HOLDS if found.holds else Outcome.FAILS
        except NotShown as why:
            figure, outcome = str(why), Outcome.NOT_SHOWN
        except NotPermitted as why:
            figure, outcome = str(why), Outcome.NOT_PERMITTED
        except Exception as error:  # a figure that is none costs its own line
            figure, outcome = f"it could not be judged: {describe(error)}", Outcome.FAILS
    return Line(what=criterion.what, asked=criterion.asked, figure=figure, outcome=outcome)
