"""A large CSV file as a stream of whole lines, all of which have as many fields as the first, and none refused."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from normbench.errors import StorageError
from normbench.storage.files import too_large
from normbench.storage.limits import MOST_LINE_BYTES, MOST_SAMPLES_BYTES
from normbench.storage.table import checked, decoded, split, wrong_columns

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BLOCK = 1 << 20
_PLAIN = bytes({*range(0x20, 0x7F), *b"\n"} - {*b'"=+@'})
"""What nothing need be asked about: a quote may hide a comma, and the others begin formulas."""

_BEGINNINGS = [before + sign for before in (b",", b";", b"\n") for sign in (b"-", b" ")]
"""Where a minus, which stands in names and exponents too, begins a field; or a space that may come before it."""


class WholeLines(io.RawIOBase):
    """The bytes of a CSV file up to its last newline: a last line without one was cut, and would be a wrong number.

    What follows the last newline seen so far is held back. Lines with more or fewer fields than there are columns,
    which pandas would cut or fill, are errors, and so are fields that ``texts`` refuses.

    Args:
        file: The file, at its beginning.
        path: Its name in errors.
        columns: What the first line has to hold.
    """

    def __init__(self, file: BinaryIO, path: Path, columns: Sequence[str]) -> None:
        self._file = file
        self._path = path
        self._columns = tuple(columns)
        self._lines = 0
        self._bytes = 0
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
        self._bytes += len(block)
        if self._bytes > MOST_SAMPLES_BYTES:
            raise too_large(MOST_SAMPLES_BYTES)
        end = block.rfind(b"\n") + 1
        if end:
            whole = b"".join([*self._held, block[:end]])
            self._check(whole)
            self._ready = memoryview(whole)
            self._held = []
        self._held.append(block[end:])
        if sum(map(len, self._held)) > MOST_LINE_BYTES:
            raise StorageError(f"{self._path}: line {self._lines + 1}: has more than {MOST_LINE_BYTES} bytes")

    def _check(self, whole: bytes) -> None:
        """Look at each line where there is anything to look at."""
        if self._lines == 0:
            first = split(self._path, 1, decoded(self._path, 1, whole.partition(b"\n")[0]))
            if tuple(first) != self._columns:
                raise wrong_columns(self._path, first, self._columns)
        lines = whole.count(b"\n")
        odd = whole.count(b",") != lines * (len(self._columns) - 1) or whole.translate(None, _PLAIN)
        if odd or whole.startswith((b"-", b" ")) or any(beginning in whole for beginning in _BEGINNINGS):
            for number, line in enumerate(whole.split(b"\n")[:-1], self._lines + 1):
                checked(self._path, number, decoded(self._path, number, line), self._columns)
        self._lines += lines
