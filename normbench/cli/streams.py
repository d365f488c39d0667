"""The standard streams as every command needs them: all three open, and able to take every character.

Results that cannot be written are an error, messages that cannot are none: a sweep must not end since nobody reads
its progress any more.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TYPE_CHECKING

from normbench.errors import OutputClosedError
from normbench.legible import substitute, visible

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_SUBSTITUTING = "normbench.substituting"


def prepare() -> None:
    """Put stdout and stderr into place of Python's own; streams that are no files are left as they are."""
    codecs.register_error(_SUBSTITUTING, _substituted)
    _open_closed()
    if type(sys.stdout) is io.TextIOWrapper and (raw := _raw(sys.stdout)):
        sys.stdout = Results(raw, sys.stdout)
    if type(sys.stderr) is io.TextIOWrapper and (raw := _raw(sys.stderr)):
        sys.stderr = Messages(raw, sys.stderr)


class Results(io.TextIOWrapper):
    """Stdout: what can't be written raises :class:`OutputClosedError`, once."""

    def __init__(self, raw: io.RawIOBase, like: io.TextIOWrapper) -> None:
        super().__init__(io.BufferedWriter(_ToReader(raw)), like.encoding, _SUBSTITUTING, None, like.line_buffering)
        self._like = like  # which would close the file when nobody knows it any more


class Messages(io.TextIOWrapper):
    """Stderr: what can't be written is dropped; nothing that is written acts on a terminal.

    ``commands`` is the same stream for who writes commands of a terminal and takes care of texts itself.
    """

    def __init__(self, raw: io.RawIOBase, like: io.TextIOWrapper) -> None:
        buffer = io.BufferedWriter(_ToNobody(raw))
        super().__init__(buffer, like.encoding, _SUBSTITUTING, None, line_buffering=True)
        self._like = like
        self.commands = io.TextIOWrapper(buffer, like.encoding, _SUBSTITUTING, None, line_buffering=True)

    def write(self, text: str, /) -> int:
        """Write a text, made visible."""
        super().write(visible(text))
        return len(text)


class _Raw(io.RawIOBase):
    """A file to whose failing to be written there is an answer."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self._failed = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def isatty(self) -> bool:
        return self._raw.isatty()

    def write(self, data: ReadableBuffer, /) -> int | None:
        if not self._failed:  # what is still buffered is written once more when the interpreter ends
            try:
                return self._raw.write(data)
            except OSError as error:
                self._failed = True
                self.failed(error)
        return memoryview(data).nbytes

    def failed(self, error: OSError) -> None:
        """What to do about it."""


class _ToNobody(_Raw):
    """A file that need not be written."""


class _ToReader(_Raw):
    """A file that is the point of it all."""

    def failed(self, error: OSError) -> None:
        hint = "nothing is lost: see the run folder, if there is one"
        if isinstance(error, BrokenPipeError):
            raise OutputClosedError("stdout was closed before everything was printed", hint=hint) from error
        raise OutputClosedError(f"stdout can't be written: {error.strerror}", hint=hint) from error


def _raw(stream: io.TextIOWrapper) -> io.RawIOBase | None:
    """The file below the buffer, or, with PYTHONUNBUFFERED, in its place."""
    raw = getattr(stream.buffer, "raw", stream.buffer)
    return raw if isinstance(raw, io.RawIOBase) else None


def _substituted(error: UnicodeError) -> tuple[str, int]:
    """An error handler of codecs: what a console lacks must not end a run."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(substitute, error.object[error.start : error.end])), error.end


def _open_closed() -> None:
    """Open what the caller has closed: the next file to be opened would take its number, and what is printed."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if number == 0 else "w", encoding="utf-8"))  # noqa: PTH123, SIM115
