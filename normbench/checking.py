"""Asks every property of every implementation; never prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from normbench.device import Device
from normbench.implementations import Implementation
from normbench.records import Check, CheckPlan


def examine(
    device: Device,
    plan: CheckPlan,
    implementations: Sequence[Implementation],
    told: Callable[[int, int, str], None] = lambda _done, _count, _what: None,
) -> Iterator[Check]:
    """What there is to say of each implementation, one after the other.

    Args:
        device: Where.
        plan: Which properties, formats and widths.
        implementations: Whose.
        told: How many of how many pieces of work are done, and what comes next; the pieces take about equally long.
    """
    raise NotImplementedError
