"""Whether a check has room: what would take the machine is refused before anything is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normbench import units
from normbench.errors import UsageError

if TYPE_CHECKING:
    from normbench.device import Device
    from normbench.records import CheckPlan

_BYTES = 640
"""Of an element of x, values, gradients and tolerances in float64 among them; the most that was seen is 590."""


def refuse_too_many(plan: CheckPlan, implementations: int) -> None:
    """A UsageError where a plan, asked of so many, is more than anyone would wait for."""
    try:
        plan.refuse_too_many(implementations)
    except ValueError as error:
        raise UsageError(str(error), hint="see normbench check --help") from error


def refuse_too_large(plan: CheckPlan, device: Device) -> None:
    """A UsageError where a plan's widest x needs more memory than is free: an allocation that fails is no finding.

    Args:
        plan: What is to be asked.
        device: Where.
    """
    from normbench.properties.spots import spots

    needs = {spot.width: spot.rows * spot.width * _BYTES for dtype in plan.dtypes for spot in spots(plan, dtype)}
    width, free = max(needs, key=lambda width: needs[width]), device.free_bytes()
    if needs[width] > free:
        raise UsageError(
            f"--widths: {width} needs about {units.size(needs[width])} of memory, and {units.size(free)} are free",
            hint="ask for narrower ones",
        )
