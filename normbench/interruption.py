"""Interrupts: the signals that ask for one, what is tidied where they end all, what measuring needs to know."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import FrameType
from typing import Any, Protocol

_PR_SET_PDEATHSIG = 1
"""Of prctl(2)."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def take_over(handler: Callable[[int, FrameType | None], object]) -> dict[int, Any]:
    """Have ``handler`` called by each signal that ends a program; what was called before, to be put back.

    A signal that is ignored stays so: nohup ignores SIGHUP, and means it.
    """
    heeded = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in heeded}


def put_back(before: dict[int, Any]) -> None:
    """Let each signal call again what it called before :func:`take_over`."""
    for number, handler in before.items():
        signal.signal(number, handler)


def end_with_parent(number: int) -> None:
    """On Linux: let a signal reach this process when the thread that started it ends, though Python is held up."""
    import ctypes  # here: every command is started through this module, and few need it

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number)


_tidying: list[tuple[int, Callable[[], object]]] = []
"""What is to be done before the program is ended at once, and by which process."""


@contextmanager
def tidied(tidy: Callable[[], object]) -> Iterator[None]:
    """A context after which ``tidy`` is called, also where a signal ends the program at once within it."""
    due = (os.getpid(), tidy)
    _tidying.append(due)
    try:
        yield
    finally:
        tidy()
        _tidying.remove(due)


def end_at_once(code: int) -> None:
    """End the program here and now, with what has to be tidied before that."""
    for process, tidy in reversed(_tidying):
        if process == os.getpid():  # and not of the parent of a forked one
            tidy()
    os._exit(code)


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
