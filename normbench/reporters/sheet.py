"""Tables on a console, whole in every width: side by side, in several tables, or as a block of lines for each row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from normbench.legible import one_line
from normbench.reporters.terminal import say

Field = str | Text

_EDGES = 2
_ASCII = box.Box("    \n    \n -- \n    \n    \n -- \n    \n    \n", ascii=True)
"""``SIMPLE_HEAD`` where the encoding has no lines."""
_JOINED = re.compile(r"(?<=\w)-(?=\w)")
_READABLE = 12
"""A column of words is no narrower than this, or than its natural width, unless its longest word is short."""


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A table, not yet laid out.

    Args:
        heads: The heads of its columns.
        rows: Their fields: text, or text with a style.
        title: What stands above it.
        names: How many columns, the first ones, name a row.
        alike: The other columns are alike, so that the table may be cut between them.
        wrapped: The columns whose fields are sentences, which may go on in the next line; no other field does.
        right: The columns that are aligned to the right.
        between: How many blanks are padded between two columns.
    """

    heads: tuple[str, ...]
    rows: Sequence[tuple[Field, ...]]
    title: str = ""
    names: int = 1
    alike: bool = False
    wrapped: frozenset[int] = frozenset()
    right: frozenset[int] = frozenset()
    between: int = 2


def show(sheet: Sheet, out: Console) -> None:
    """Print a table in the first of these forms that the width has room for."""
    if sheet.title:
        say(out, sheet.title, "bold")
    parts = _parts(sheet, out.width)
    for part in parts:
        out.print(_table(sheet, out, part), crop=False)
    if not parts:
        _blocks(sheet, out)


def _parts(sheet: Sheet, room: int) -> list[dict[int, int]]:
    """The columns of each table with their widths; none where not even the names and one column have room."""
    every = range(len(sheet.heads))
    whole = _widths(sheet, every, room)
    if whole:
        return [whole]
    names = list(range(sheet.names))
    parts: list[list[int]] = []
    for column in every[sheet.names :] if sheet.alike else ():
        if parts and _widths(sheet, [*parts[-1], column], room):
            parts[-1].append(column)
        else:
            parts.append([*names, column])
    found = [_widths(sheet, part, room) for part in parts]
    return found if all(found) else []


def _widths(sheet: Sheet, columns: Sequence[int], room: int) -> dict[int, int]:
    """A width for each column, with what there is beyond the least given to those that lack most; {}: no room."""
    natural = {column: _natural(sheet, column) for column in columns}
    least = {column: min(natural[column], _least(sheet, column)) for column in columns}
    free = room - _EDGES - (sheet.between + 1) * (len(columns) - 1) - sum(least.values())
    if free < 0:
        return {}
    wanted = sum(natural.values()) - sum(least.values())
    if wanted <= free:
        return natural
    return {column: least[column] + free * (natural[column] - least[column]) // wanted for column in columns}


def _natural(sheet: Sheet, column: int) -> int:
    return max(cell_len(text) for text in _texts(sheet, column))


def _least(sheet: Sheet, column: int) -> int:
    """The longest word of a column that may be wrapped, and of a head; else the longest field."""
    head, *fields = _texts(sheet, column)
    longest = _longest_word(_parted(head))
    if column not in sheet.wrapped:
        return max([longest, *map(cell_len, fields)])
    return max([_READABLE, longest, *map(_longest_word, fields)])


def _texts(sheet: Sheet, column: int) -> list[str]:
    return [one_line(sheet.heads[column]), *(one_line(str(row[column])) for row in sheet.rows)]


def _parted(head: str) -> str:
    """A head with room to go on in the next line after a hyphen that joins two words."""
    return _JOINED.sub("- ", head)


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def _table(sheet: Sheet, out: Console, widths: dict[int, int]) -> Table:
    padding = (0, sheet.between // 2 or 1, 0, sheet.between // 2)
    head = box.SIMPLE_HEAD if out.encoding.startswith("utf") else _ASCII
    table = Table(box=head, pad_edge=False, padding=padding)
    for column, width in widths.items():
        text = one_line(sheet.heads[column])
        table.add_column(
            Text(text if cell_len(text) <= width else _parted(text)),
            width=width,
            overflow="fold",
            justify="right" if column in sheet.right else "left",
        )
    for row in sheet.rows:
        table.add_row(*(_text(row[column]) for column in widths))
    return table


def _blocks(sheet: Sheet, out: Console) -> None:
    """Each row as its name and a line for each of its other fields."""
    out.print()
    for row in sheet.rows:
        say(out, " ".join(str(field) for field in row[: sheet.names]))
        for head, field in zip(sheet.heads[sheet.names :], row[sheet.names :], strict=True):
            if str(field):
                say(out, Text.assemble(f"  {head}: " if head else "  ", _text(field)))
    out.print()


def _text(field: Field) -> Text:
    return Text(one_line(str(field)), style=field.style if isinstance(field, Text) else "")
