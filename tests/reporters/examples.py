"""Examples that are explained, and what tests read out of what is said of them."""

from __future__ import annotations

from normbench.walkthrough import Example, Walkthrough, walk_through


def walked(
    *values: float, gain: tuple[float, ...] = (1.0,), bias: tuple[float, ...] = (0.0,), **changes: float
) -> Walkthrough:
    """Both norms of some values; one gain and one bias are everybody's."""
    count = len(values)
    return walk_through(
        Example(
            values=values,
            gain=gain if len(gain) == count else gain * count,
            bias=bias if len(bias) == count else bias * count,
            **changes,
        )
    )


PLAIN = walked(1.0, 2.0, 3.0)
ROUND = walked(-3.0, 1.0, 1.0, 3.0, 7.0, 9.0, eps=0.0)
UNDEFINED = walked(3.0, 3.0, eps=0.0, scale=0.0)
