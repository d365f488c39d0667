"""Sweeps of the real command in which everything runs and is checked, and the clock says what it is told to."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from normbench.instruments import Instruments
from normbench.rounds import Batching
from tests.cli.command import TINY
from tests.fakes import FakeClock

USUAL_S = 1e-3
"""Seconds of one call of whoever is not named."""

ENOUGH = (*TINY, "--max-seconds", "60")
"""A sweep in this process that is never short of time: its interval is there at the first look."""


def tell(monkeypatch: pytest.MonkeyPatch, seconds: Mapping[str, float] | None = None) -> None:
    """Let each call take as long as is said of its implementation, wherever this runs and whatever else does."""

    def cost(task: str) -> float:
        return (seconds or {}).get(task.removesuffix(" again"), USUAL_S)

    tools = Instruments(clock=FakeClock(cost, name="wall"), batching=Batching())
    monkeypatch.setattr("normbench.cli.measuring.instruments", lambda *_args, **_options: tools)
