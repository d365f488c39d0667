"""From an error to a status and a reason of one line which may be published."""

from __future__ import annotations

from dataclasses import dataclass

from normbench import private
from normbench.device import is_out_of_memory
from normbench.implementations.naming import without_packages
from normbench.legible import said, visible
from normbench.records import Status

_REASON_LENGTH = 300

RAISED = (Exception, SystemExit, GeneratorExit)
"""Whatever an implementation's code raises is what is found of it; an interrupt is not its own."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why something has no time. Unlike an exception it can be sent from one process to another."""

    status: Status
    reason: str


def failure(error: BaseException) -> Failure:
    """What ``error`` means for the case that raised it."""
    status = Status.OUT_OF_MEMORY if is_out_of_memory(error) else Status.FAILED
    return Failure(status=status, reason=describe(error))


def describe(error: BaseException) -> str:
    """An error in one line, without what is nobody's business: reports are public (:mod:`normbench.private`).

    Where the first line ends in a colon, as torch's do when it wraps another's error, the next is its cause.
    """
    lines = [line.strip() for line in said(error).splitlines() if line.strip()]
    first = " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])
    text = f"{type(error).__name__}: {first}" if first else type(error).__name__
    return visible(private.scrubbed(without_packages(text)))[:_REASON_LENGTH]
