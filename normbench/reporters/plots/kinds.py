"""What is drawn over the width: time, speedup and effective bandwidth, each with its interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from normbench import units
from normbench.records import CaseResult, ImplementationInfo, Run
from normbench.traffic import floor_bytes

Measured = tuple[float, float | None, float | None]
"""A value and the ends of its interval, where it has one."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of picture.

    Args:
        title: What it shows; may name the ``{baseline}``.
        label: What the axis of the values says.
        measure: The value of a result; None where it has none.
        format: Writes a value with so many significant digits.
        floor: Whether floor and baseline are drawn too.
    """

    title: str
    label: str
    measure: Callable[[Run, CaseResult], Measured | None]
    format: Callable[[float, int], str]
    floor: bool

    def shown(self, run: Run) -> list[ImplementationInfo]:
        """The implementations that it shows of a run."""
        return [info for info in run.header.implementations if self.floor or info in run.header.candidates]


def _time(_run: Run, result: CaseResult) -> Measured | None:
    time = result.timing.time_s if result.timing else None
    return None if time is None else (time.value, time.low, time.high)


def _speedup(run: Run, result: CaseResult) -> Measured | None:
    comparison = run.comparison(result.case.cell, result.case.implementation)
    speedup = comparison.speedup if comparison else None
    return None if speedup is None else (speedup.value, speedup.low, speedup.high)


def _bandwidth(run: Run, result: CaseResult) -> Measured | None:
    if result.timing is None:
        return None
    count = floor_bytes(run.header.info(result.case.implementation).op, result.case.cell)
    time = result.timing.time_s
    return count / time.value, count / time.high if time.high else None, count / time.low if time.low else None


KINDS: dict[str, Kind] = {
    "time": Kind(
        title="Time of one call", label="time of one call", measure=_time, format=units.duration, floor=True
    ),
    "speedup": Kind(
        title="Speedup over {baseline}",
        label="{baseline} time ÷ time",
        measure=_speedup,
        format=units.times,
        floor=False,
    ),
    "bandwidth": Kind(
        title="Effective bandwidth: floor bytes ÷ time",
        label="effective bandwidth",
        measure=_bandwidth,
        format=units.bandwidth,
        floor=True,
    ),
}
"""By the names that pictures have."""
