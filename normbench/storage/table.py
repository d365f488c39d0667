"""One CSV file: rows appended so that a killed process leaves whole lines, read so that a cut line is no number."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import ValidationError

from normbench.errors import StorageError
from normbench.storage.files import append, encoded, opened, too_large, write_whole
from normbench.storage.limits import MOST_LINE_BYTES, MOST_TABLE_BYTES
from normbench.storage.texts import cleaned_field, field_objection, is_plain

T = TypeVar("T")

_SHOWN_COLUMNS = 12
_SHOWN_LETTERS = 40
_MOST_SAID = 200


class FieldError(ValueError):
    """A field is not what it should be.

    Args:
        field: Its column.
        message: What is wrong with it.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")


class Table:
    """A CSV file with fixed columns, UTF-8, a row a line, lines ended by a newline.

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
        text = "".join(self._format(rows))
        if text:
            append(self.path, text)

    def replace(self, rows: Iterable[Mapping[str, str]]) -> None:
        """Write the whole file anew: either the old one is there or the new one, never a part.

        ``rows`` may be read from the old one meanwhile.
        """
        header = dict(zip(self.columns, self.columns, strict=True))
        lines = self._format(row for part in ([header], rows) for row in part)
        write_whole(self.path, map(encoded, lines))

    def rows(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Line number and fields of every whole row. A last row without its newline was cut: it is dropped.

        Raises:
            StorageError: Names the file, and the line and the field where they are known.
        """
        try:
            with opened(self.path) as file:
                if os.fstat(file.fileno()).st_size > MOST_TABLE_BYTES:
                    raise too_large(MOST_TABLE_BYTES)
                yield from self._rows(file)
        except OSError as error:
            gone = isinstance(error, FileNotFoundError)
            raise unreadable(self.path, error, "is this a run folder?" if gone else None) from error

    def is_cut(self) -> bool:
        """Whether the last row lacks its newline, so that it was dropped."""
        try:
            with opened(self.path) as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - 1, 0))
                return file.read(1) != b"\n"
        except OSError as error:
            raise unreadable(self.path, error) from error

    def read(self, convert: Callable[[Mapping[str, str]], T]) -> Iterator[tuple[dict[str, str], T]]:
        """Every whole row and what ``convert`` makes of it; a bad field is an error that names file, line, field."""
        for line, row in self.rows():
            try:
                yield row, convert(row)
            except ValidationError as error:
                raise StorageError(f"{self.path}: line {line}: {first_problem(error, whole='row')}") from error
            except FieldError as error:
                raise StorageError(f"{self.path}: line {line}: {error}") from error

    def _rows(self, file: BinaryIO) -> Iterator[tuple[int, dict[str, str]]]:
        header = next(_whole_lines(self.path, file), (1, ""))[1]
        fields = split(self.path, 1, header)
        if tuple(fields) != self.columns:
            raise wrong_columns(self.path, fields, self.columns)
        for number, text in _whole_lines(self.path, file, 2):
            yield number, dict(zip(self.columns, checked(self.path, number, text, self.columns), strict=True))

    def _format(self, rows: Iterable[Mapping[str, str]]) -> Iterator[str]:
        return (_line([row[name] for name in self.columns]) for row in rows)


def checked(path: Path, number: int, text: str, columns: Sequence[str]) -> list[str]:
    """The fields of a line, of which there are as many as columns, and none is refused."""
    fields = split(path, number, text)
    if len(fields) != len(columns):
        raise StorageError(f"{path}: line {number}: {len(fields)} fields, not {len(columns)}")
    if is_plain(text):
        return fields
    for name, field in zip(columns, fields, strict=True):
        said = field_objection(field)
        if said is not None:
            raise StorageError(f"{path}: line {number}: {name}: {said}")
    return fields


def decoded(path: Path, number: int, line: bytes) -> str:
    """The text of a line without its newline, and without a carriage return before that."""
    try:
        return line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise StorageError(f"{path}: line {number}: is no UTF-8 text") from error


def split(path: Path, number: int, text: str) -> list[str]:
    """The fields of a line: none reaches into the next."""
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error as error:
        said = {
            "unexpected end of data": "a quote is opened and not closed",
            "new-line character seen in unquoted field": "a carriage return in the middle of a line",
        }.get(str(error).partition(" - ")[0], str(error))
        raise StorageError(f"{path}: line {number}: {said}") from error


def unreadable(path: Path, error: Exception, hint: str | None = None) -> StorageError:
    """What is said of a file that can't be read, in a line: pandas ends some of its messages with a newline."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return StorageError(f"{path}: can't be read: {' '.join(text.split())}", hint=hint)


def wrong_columns(path: Path, header: Sequence[str], columns: Sequence[str]) -> StorageError:
    """What is said of a file whose first line is another than it has to be."""
    found = ", ".join(_shown(name) for name in header[:_SHOWN_COLUMNS]) or "an empty file"
    missing = [name for name in columns if name not in header]
    others = [_shown(name) for name in header if name not in columns]
    twice = [name for name in columns if header.count(name) > 1]
    apart = {"missing": missing, "unknown": others, "twice": twice}
    notes = [f"{what}: {', '.join(names[:_SHOWN_COLUMNS])}" for what, names in apart.items() if names and header]
    return StorageError(
        f"{path}: line 1: these are not the columns of this version",
        hint="; ".join([f"found: {found}", *(notes or (["their order is another"] if header else []))]),
    )


def first_problem(error: ValidationError, within: str = "", whole: str = "") -> str:
    """What the first of pydantic's problems is, after where: the names that lead there, ``whole`` where none does."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    said = first["msg"].removeprefix("Value error, ")
    said = said if len(said) <= _MOST_SAID else f"{said[: _MOST_SAID - 1]}…"  # it lists whatever would be right
    names = [*([within] if within else []), *map(str, first["loc"])]
    return ": ".join(part for part in (".".join(names) or whole, said) if part)


def _shown(name: str) -> str:
    return name[:_SHOWN_LETTERS] if name[:_SHOWN_LETTERS].isprintable() else ascii(name[:_SHOWN_LETTERS])


def _whole_lines(path: Path, file: BinaryIO, first: int = 1) -> Iterator[tuple[int, str]]:
    """Number and text of the lines that end in a newline, or in a carriage return and a newline."""
    number = first
    while (line := file.readline(MOST_LINE_BYTES + 1)).endswith(b"\n"):
        yield number, decoded(path, number, line.removesuffix(b"\n"))
        number += 1
    if len(line) > MOST_LINE_BYTES:
        raise StorageError(f"{path}: line {number}: has more than {MOST_LINE_BYTES} bytes")


def _line(fields: Sequence[str]) -> str:
    line = _joined(fields)
    return line if is_plain(line[:-1]) else _joined([cleaned_field(field) for field in fields])


def _joined(fields: Iterable[str]) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\r\n").writerow(fields)  # so that a field with either of them is quoted
    return buffer.getvalue().removesuffix("\r\n") + "\n"
