"""Ctrl-C, SIGTERM and SIGHUP while a sweep runs: the first ends the round, then all is reported; the second ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType, TracebackType
from typing import Any, Protocol

from normbench.cli.output import note
from normbench.errors import NormbenchError, StorageError
from normbench.interruption import Interruption, Never, put_back, take_over

_FIRST = b"\ninterrupted: finishing the round, then what was measured is reported; once more ends at once\n"


class Stopping(Interruption, Protocol):
    """What writing a run needs to know of interrupts."""

    def put_off(self) -> AbstractContextManager[None]:
        """A context in which nothing is interrupted that has to be whole."""

    def as_far_as_it_goes(self, work: Callable[[], None]) -> NormbenchError | None:
        """Do ``work``; what ended it, where that leaves something to report."""


class Unheeded(Never):
    """For a program that has its own ways with signals: KeyboardInterrupt ends everything, wherever it is raised.

    A run folder stands that, as it stands a kill: what is no whole cell does not count.
    """

    def put_off(self) -> AbstractContextManager[None]:
        """See ``Stopping.put_off``."""
        return nullcontext()

    def as_far_as_it_goes(self, work: Callable[[], None]) -> NormbenchError | None:
        """See ``Stopping.as_far_as_it_goes``."""
        return _ended_by(work)


class Interrupts:
    """Decides what a signal does, while it is entered. It is an ``Interruption`` of a sweep.

    A signal raises KeyboardInterrupt, except where the first may wait (``may_wait``) and where something is written
    that has to be whole (``put_off``): there it is raised at the end.
    """

    def __init__(self) -> None:
        self._count = 0
        self._is_waiting = self._is_put_off = self._is_due = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        self._before = take_over(self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_put_off = True  # one that comes now would leave the others as they are
        put_back(self._before)

    @property
    def is_asked_for(self) -> bool:
        """Whether there was a signal."""
        return self._count > 0

    @property
    def is_insisted_on(self) -> bool:
        """Whether there were several."""
        return self._count > 1

    @contextmanager
    def may_wait(self) -> Iterator[None]:
        """See ``Interruption.may_wait``."""
        self._is_waiting = True
        try:
            yield
        finally:
            self._is_waiting = False

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """A context in which nothing is interrupted; what came meanwhile is raised at its end."""
        self._is_put_off = True
        try:
            yield
        finally:
            self._is_put_off = False
        if self._is_due:
            self._is_due = False
            raise KeyboardInterrupt

    def as_far_as_it_goes(self, work: Callable[[], None]) -> NormbenchError | None:
        """Do ``work``; what ended it, where that leaves something to report. One interrupt does.

        Raises:
            KeyboardInterrupt: There were several.
            StorageError: Where nothing can be written, a report can't be either.
        """
        try:
            return _ended_by(work)
        except KeyboardInterrupt:
            if self.is_insisted_on:
                raise
        return None

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._is_waiting and self._count == 1:
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, _FIRST)  # print may be what was interrupted
        elif self._is_put_off:
            self._is_due = True
        else:
            raise KeyboardInterrupt


def _ended_by(work: Callable[[], None]) -> NormbenchError | None:
    """Do ``work``; the error that ended it.

    Raises:
        StorageError: Where nothing can be written, a report can't be either.
    """
    try:
        work()
    except StorageError:
        raise
    except NormbenchError as error:
        return error
    return None


def tell_of_the_end(then: str) -> None:
    """Of a second interrupt, wherever it came: the terminal is as it was, and what is there is named.

    Args:
        then: What can be done with that.
    """
    from normbench.reporters.console import console

    console(sys.stderr).show_cursor(show=True)
    note(f"ended at once, without a report; {then}")
