"""A large CSV file as a stream of whole lines, all of which have as many fields as the first."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from normbench.errors import StorageError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BLOCK = 1 << 20


class WholeLines(io.RawIOBase):
    """The bytes of a CSV file up to its last newline: a last line without one was cut, and would be a wrong number.

    What follows the last newline seen so far is held back. Lines with more or fewer fields than the first, which
    pandas would cut or fill, are errors.

    Args:
        file: The file, at its beginning.
        path: Its name in errors.
    """

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._fields: int | None = None
        self._lines = 0
        self._held: list[bytes] = []
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill ``buffer`` as far as one piece goes; 0 at the end."""
        target = memoryview(buffer).cast("B")
        while not self._ready:
            block = self._file.read(_BLOCK)
            if not block:
                return 0
            self._take(block)
        count = min(len(target), len(self._ready))
        target[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _take(self, block: bytes) -> None:
        end = block.rfind(b"\n") + 1
        if end:
            whole = b"".join([*self._held, block[:end]])
            lines = whole.count(b"\n")
            if self._fields is None:
                self._fields = whole.partition(b"\n")[0].count(b",") + 1
            if b'"' in whole or whole.count(b",") != lines * (self._fields - 1):
                self._count_fields(whole, self._fields)
            self._lines += lines
            self._ready = memoryview(whole)
            self._held = []
        self._held.append(block[end:])

    def _count_fields(self, whole: bytes, wanted: int) -> None:
        """One by one: a field may hold commas between quotes, but none reaches into the next line."""
        for number, line in enumerate(whole.decode("utf-8").split("\n")[:-1], self._lines + 1):
            count = len(next(csv.reader([line]), []))
            if count != wanted:
                raise StorageError(f"{self._path}: line {number}: {count} fields, not {wanted}")
