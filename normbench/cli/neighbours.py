"""Who else is on the device: refused or warned of before anything is measured, and recorded with what is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from normbench import locks, units
from normbench.errors import BusyError, UsageError
from normbench.records import CaseResult, CellRecords, DeviceInfo, Flag, Status, StepRecords, StepResult

if TYPE_CHECKING:
    from normbench.device import Device, Found

R = TypeVar("R", CellRecords, StepRecords)
T = TypeVar("T", CaseResult, StepResult)

_told: ContextVar[Callable[[str, str | None], None] | None] = ContextVar("_told", default=None)

_POLL_S = 1.0
_LOOK_S = 0.3


@dataclass(frozen=True, kw_only=True)
class Sharing:
    """What is done where another run holds the device: it is refused, unless one of these says otherwise.

    Args:
        what: The command that wants the device.
        share: Measure beside it.
        wait: Wait until it has ended.
    """

    what: str
    share: bool = False
    wait: bool = False

    def __post_init__(self) -> None:
        if self.share and self.wait:
            raise UsageError(
                "--share-device and --wait: the one measures beside another run, the other after it",
                hint="leave one of them out",
            )


class Neighbours:
    """Who else is on a device while this run measures on it.

    Args:
        name: What the device is called.
        claim: This run's claim on it; None where none could be made.
    """

    def __init__(self, name: str, claim: locks.Claim | None) -> None:
        self._name = name
        self._claim = claim
        self._known = self._others()
        self._programs: int | None = None

    @property
    def runs(self) -> int | None:
        """How many other runs have been seen on the device; None where that can't be told."""
        self._known |= self._others()
        return None if self._claim is None else len(self._known)

    def look_around(self, device: Device) -> None:
        """Warn of other programs on the GPU, and of those that keep the processor busy: takes a third of a second."""
        self._programs = device.other_programs()
        if self._programs:
            warn(
                f"{_programs(self._programs)} the GPU (nvidia-smi names them): times are wrong where they work",
                hint=f"stop them; results beside them are flagged {Flag.SHARED_DEVICE}",
            )
        _warn_of_load(device.info)

    def marked(self, records: R, device: Device) -> R:
        """A cell's records, flagged where anybody was on the device since the last cell."""
        if not self._have_been_on(device):
            return records
        return replace(records, results=tuple(map(_marked, records.results)))

    def _have_been_on(self, device: Device) -> bool:
        """Whether anybody was on the device since this was asked last; tells of whoever came meanwhile."""
        before, self._programs = self._programs, device.other_programs()
        had_company = self._claim is not None and self._claim.had_company()
        self._tell_of_newcomers()
        return bool(before or self._programs or had_company)

    def _tell_of_newcomers(self) -> None:
        """Warn of each run that has begun beside this one."""
        new = self._others() - self._known
        if new:
            warn(
                f"{_runs(tuple(new), self._name)}: times of both are wrong meanwhile",
                hint=f"results measured meanwhile are flagged {Flag.SHARED_DEVICE}",
            )
        self._known |= new

    def _others(self) -> set[locks.Holder]:
        return set(self._claim.others()) if self._claim else set()


@contextmanager
def claimed(device: Found, sharing: Sharing) -> Iterator[Neighbours]:
    """A context in which this run holds the device, as others can see.

    Raises:
        BusyError: Another run holds it, and nothing else was asked for.
    """
    claim = _claim(device, sharing)
    try:
        yield Neighbours(device.name, claim)
    finally:
        if claim is not None:
            claim.release()


def _claim(device: Found, sharing: Sharing, sleep: Callable[[float], None] = time.sleep) -> locks.Claim | None:
    told = False
    while True:
        try:
            claim = locks.claim(device.identity, sharing.what, share=sharing.share)
        except locks.TakenError as taken:
            _refuse_or_tell(_runs(taken.holders, device.name), sharing, told=told)
            told = True
            sleep(_POLL_S)
        except OSError as error:
            warn(
                f"{locks.place()} can't be used ({error.strerror or error}): another run on this device would go "
                "unnoticed",
                hint=f"{locks.VARIABLE} names another folder, which everybody here can write",
            )
            return None
        else:
            if others := claim.others():
                warn(f"{_runs(others, device.name)}: times of both are wrong meanwhile")
            return claim


def _refuse_or_tell(said: str, sharing: Sharing, *, told: bool) -> None:
    if not sharing.wait:
        raise BusyError(
            f"{said}: times of both would be wrong",
            hint="--wait begins when it has ended; --share-device measures beside it, and flags the results",
        )
    if not told:
        print(f"waiting: {said}", file=sys.stderr)


def _runs(holders: Sequence[locks.Holder], name: str) -> str:
    """``another normbench sweep runs on cpu (process 1234, for 12 min)``."""
    if len(holders) == 1:
        return f"another normbench {holders[0].what} runs on {name} ({_who(holders[0])})"
    each = "; ".join(f"{holder.what}, {_who(holder)}" for holder in holders)
    return f"{len(holders)} other runs of normbench are on {name} ({each})"


def _who(holder: locks.Holder) -> str:
    where = "in another container" if holder.pid is None else f"process {holder.pid}"
    return f"{where}, for {units.age(time.time() - holder.since_s)}"


def _programs(count: int) -> str:
    return f"{units.others(count, 'program')} {'uses' if count == 1 else 'use'}"


def _warn_of_load(device: DeviceInfo) -> None:
    from normbench.other_load import other_cores

    said = _disturbance(device, other_cores(_LOOK_S))
    if said is not None:  # once may be a moment of something that ends
        said = _disturbance(device, other_cores(_LOOK_S))
    if said is not None:
        warn(said[0], hint=said[1])


def _disturbance(device: DeviceInfo, cores: float | None) -> tuple[str, str] | None:
    """What so much work of other programs does, and what to do; None where it does nothing."""
    import psutil

    from normbench.stats import is_busy

    every = psutil.cpu_count() or 1
    keep = f"other programs keep {cores or 0:.1f} of {every} cores busy"
    if is_busy(cores, device.threads):
        return (
            f"{keep}: times are wrong, most of all of what waits for all its threads",
            f"stop them; results beside them are flagged {Flag.BUSY_MACHINE}",
        )
    if device.threads is None and cores is not None and cores > every - 1:
        return (f"{keep}: launching kernels has to wait, which is in wall times, not in device times", "stop them")
    return None


def _marked(result: T) -> T:
    """A result with the flag; what was not timed was not disturbed."""
    if result.status is not Status.OK or Flag.SHARED_DEVICE in result.flags:
        return result
    return replace(result, flags=(*result.flags, Flag.SHARED_DEVICE))


def warn(message: str, *, hint: str | None = None) -> None:
    """Say what makes results doubtful: on stderr, and not less with --quiet, which is about progress."""
    told = _told.get()
    if told is not None:
        told(message, hint)
        return
    print(f"warning: {message}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)


@contextmanager
def warnings_told(to: Callable[[str, str | None], None]) -> Iterator[None]:
    """A context in which warnings are told, with their hints, and not printed."""
    before = _told.set(to)
    try:
        yield
    finally:
        _told.reset(before)
