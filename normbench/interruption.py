"""Interrupts: the signals that ask for one, and what measuring needs to know of it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Any, Protocol

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def take_over(handler: Callable[[int, FrameType | None], object]) -> dict[int, Any]:
    """Have ``handler`` called by each signal that ends a program; what was called before, to be put back.

    A signal that is ignored stays so: nohup ignores SIGHUP, and means it.
    """
    heeded = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in heeded}


class Interruption(Protocol):
    """Ends work early: by KeyboardInterrupt, or where that would lose something, at the next good moment."""

    @property
    def is_asked_for(self) -> bool:
        """Whether to stop at the next good moment."""

    def may_wait(self) -> AbstractContextManager[None]:
        """A context whose owner looks at ``is_asked_for`` often: the first request raises nothing in it."""


class Never:
    """Nothing interrupts but what Python itself raises."""

    is_asked_for = False

    def may_wait(self) -> AbstractContextManager[None]:
        """See ``Interruption.may_wait``."""
        return nullcontext()
