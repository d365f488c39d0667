"""One CSV file: rows appended so that a killed process leaves whole lines, read so that a cut line is no number."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from normbench.errors import StorageError
from normbench.storage.files import append, encoded, write_whole

T = TypeVar("T")

_OPEN_QUOTE = "unexpected end of data"
"""What csv's strict reader says when the text ends inside a quoted field."""


class Table:
    """A CSV file with fixed columns, UTF-8, lines ended by a newline.

    Args:
        path: The file.
        columns: Its columns, in order.
    """

    def __init__(self, path: Path, columns: Iterable[str]) -> None:
        self.path = path
        self.columns = tuple(columns)

    def create(self) -> None:
        """Write the header into a new file."""
        self.replace([])

    def append(self, rows: Iterable[Mapping[str, str]]) -> None:
        """Add rows; they are on the disk when this returns, in part where it fails."""
        text = self._format(rows)
        if text:
            append(self.path, text)

    def replace(self, rows: Iterable[Mapping[str, str]]) -> None:
        """Write the whole file anew: either the old one is there or the new one, never a part."""
        header = dict(zip(self.columns, self.columns, strict=True))
        write_whole(self.path, (encoded(self._format([row])) for row in (header, *rows)))

    def rows(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Line number and fields of every whole row. A last row without its newline was cut: it is dropped."""
        try:
            data = self.path.read_bytes()
            text = data[: data.rfind(b"\n") + 1].decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StorageError(f"{self.path}: can't be read: {error}", hint="is this a run folder?") from error
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        try:
            header = next(reader, [])
            if tuple(header) != self.columns:
                raise wrong_columns(self.path, header)
            for fields in reader:
                if len(fields) != len(self.columns):
                    raise StorageError(
                        f"{self.path}: line {reader.line_num}: {len(fields)} fields, not {len(self.columns)}"
                    )
                yield reader.line_num, dict(zip(self.columns, fields, strict=True))
        except csv.Error as error:
            if str(error) == _OPEN_QUOTE:  # the newline was one of the text of a field: the row was cut in it
                return
            raise StorageError(f"{self.path}: line {reader.line_num}: {error}") from error

    def read(self, convert: Callable[[Mapping[str, str]], T]) -> Iterator[tuple[dict[str, str], T]]:
        """Every whole row and what ``convert`` makes of it; a bad field is an error that names file, line, field."""
        for line, row in self.rows():
            try:
                yield row, convert(row)
            except ValidationError as error:
                first = error.errors()[0]
                field = ".".join(str(part) for part in first["loc"]) or "row"
                raise StorageError(f"{self.path}: line {line}: {field}: {first['msg']}") from error

    def _format(self, rows: Iterable[Mapping[str, str]]) -> str:
        return "".join(_line([row[name] for name in self.columns]) for row in rows)


def _line(fields: Iterable[str]) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\r\n").writerow(fields)  # so that a field with either of them is quoted
    return buffer.getvalue().removesuffix("\r\n") + "\n"


def wrong_columns(path: Path, header: Sequence[str]) -> StorageError:
    """What is said of a file whose first line is another than it has to be."""
    found = ", ".join(header[:12]) or "an empty file"
    return StorageError(f"{path}: line 1: these are not the columns of this version", hint=f"found: {found}")
