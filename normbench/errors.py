"""One tree of errors: each has a message, a hint on what to do, and the exit code it ends the program with."""

from __future__ import annotations

from typing import ClassVar


class NormbenchError(Exception):
    """Anything a user can be told and act on.

    Args:
        message: What is wrong, naming the value or the file.
        hint: What is allowed, or what to do about it.
    """

    exit_code: ClassVar[int] = 3

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class RegressionError(NormbenchError):
    """Something got worse by more than was allowed (exit code 1)."""

    exit_code = 1


class FailedCheckError(NormbenchError):
    """A property that was checked does not hold (exit code 1)."""

    exit_code = 1


class UsageError(NormbenchError):
    """The command line asks for something that can't be; nothing has run (exit code 2)."""

    exit_code = 2


class IncompleteError(NormbenchError):
    """The run is incomplete, or nothing could be measured (exit code 3)."""


class BusyError(NormbenchError):
    """Another run of normbench holds what this one needs; nothing ran (exit code 3)."""


class OutputClosedError(NormbenchError):
    """Whoever read stdout has gone (exit code 3)."""


class StorageError(NormbenchError):
    """A run folder can't be written, or a file in it can't be read (exit code 3)."""
