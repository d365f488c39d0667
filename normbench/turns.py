"""Whose turn it is in a process, written where another process can read it, even after the first is gone."""

from __future__ import annotations

import ctypes
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TypeAlias

TakeTurn: TypeAlias = Callable[[str], AbstractContextManager[None]]
"""Entered while the code of the implementation of that name runs."""

_NAME_BYTES = 1024


@dataclass(frozen=True, kw_only=True)
class Turn:
    """Who has been busy without a pause, and for how long.

    Args:
        name: The implementation; None where it is the process itself.
        seconds: For how long.
    """

    name: str | None
    seconds: float


class Turns:
    """Shared memory that says whose turn it is; handed to a child process when that is started.

    Args:
        now: A monotonic clock that both processes share.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        context = multiprocessing.get_context("spawn")
        self._name = context.RawArray(ctypes.c_char, _NAME_BYTES)
        self._since = context.RawValue(ctypes.c_double, now())
        self._now = now

    @contextmanager
    def take(self, name: str) -> Iterator[None]:
        """The context of a turn. It stays where the process ends inside, by SystemExit too."""
        self._set(name.encode()[: _NAME_BYTES - 1])
        try:
            yield
        except Exception:
            self.pause()
            raise
        self.pause()

    def pause(self) -> None:
        """It is nobody's turn from now on."""
        self._set(b"")

    @property
    def current(self) -> Turn:
        """Whose turn it is, or was when the process ended."""
        name = self._name.value.decode(errors="replace")
        return Turn(name=name or None, seconds=self._now() - self._since.value)

    def _set(self, name: bytes) -> None:
        self._since.value = self._now()
        self._name.value = name
