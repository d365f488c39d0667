"""After timing: are the very tasks that were timed still right, in the very memory they were timed in?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from normbench import compilation, units
from normbench.calls import Subject, restore_inputs, written_input
from normbench.failures import RAISED, Failure, failure
from normbench.inspection import Inspection
from normbench.records import Status

_WRITE_CALLS = 2
_FELL_BACK = Failure(
    status=Status.FAILED, reason="torch.compile fell back to eager: no compiled code ran any more after it was timed"
)


def audit(subject: Subject, *, compiled: bool, seed: int, thorough: bool = True) -> Failure | None:
    """What is wrong with a task that was right before it was timed; None where it still is.

    Args:
        subject: The task, in its last placement.
        compiled: Whether it is torch.compile's code that has to run.
        seed: Chooses the rows that are looked at.
        thorough: Whether to look for what knows its inputs again by a few of their values, too.
    """
    written = written_input(subject.operands, subject.exact)
    if written is not None:
        return _wrote(written)
    inspection = Inspection(subject, seed)
    try:
        with compilation.compiled_frames() as entered:
            problem = inspection.first(whole=False).problem or inspection.again(few=thorough, unchanged=False)
    except RAISED as error:  # whatever an implementation raises is its result
        return failure(error)
    finally:
        written = inspection.close()
    if written is not None:
        return _wrote(written)
    if problem is not None:
        return Failure(status=Status.INCORRECT, reason=f"right before it was timed, not after: {problem}")
    return _FELL_BACK if compiled and not any(entered) else None


def shared_writes(subjects: Mapping[str, Subject]) -> dict[str, Failure]:
    """Whom it concerns that an input which all of them read no longer holds its values; its values are put back.

    Nobody's time is of what was checked then. Who writes into it when called alone is named, the others failed.
    """
    written = next((name for s in subjects.values() if (name := _written_activation(s)) is not None), None)
    if written is None:
        return {}
    culprits = [name for name, subject in subjects.items() if _writes(subject)]
    for subject in subjects.values():
        restore_inputs(subject)
    who = units.join(culprits) if culprits else "an implementation that can't be told"
    reason = (
        f"{who} wrote into {written}, which all share for want of memory: what was timed was not what was checked"
    )
    others = dict.fromkeys(subjects, Failure(status=Status.FAILED, reason=reason))
    return others | dict.fromkeys(culprits, _wrote(written))


def _wrote(name: str) -> Failure:
    return Failure(status=Status.INCORRECT, reason=f"wrote into {name} without declaring it, while it was timed")


def _written_activation(subject: Subject) -> str | None:
    exact = replace(subject.exact, gain=None, bias=None)
    return written_input(subject.operands, exact)


def _writes(subject: Subject) -> bool:
    """Whether a few calls of it alone leave other values in x or dy."""
    restore_inputs(subject)
    try:
        for _ in range(_WRITE_CALLS):
            subject.task.run()
    except RAISED:  # its own failure is found when its turn comes
        return False
    return _written_activation(subject) is not None
