"""Making a report shorter: which parts go first where there is little room, and what is said of those that went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from normbench.reporters.document import Document
from normbench.reporters.merged import Merged

D = TypeVar("D", bound=Document | Merged)

_NO_LIMIT = 10**9


@dataclass(frozen=True, kw_only=True)
class Room:
    """How much of each part is shown at most.

    Args:
        results: Lines of all result tables together.
        profiles: Profiled cells.
        charts: Charts.
        rows: Rows of every other table or list.
        characters: Of each single text.
    """

    results: int = _NO_LIMIT
    profiles: int = _NO_LIMIT
    charts: int = _NO_LIMIT
    rows: int = _NO_LIMIT
    characters: int = _NO_LIMIT


ROOMS = (
    Room(characters=4000),
    Room(results=400, characters=4000),
    Room(results=200, profiles=12, charts=12, characters=2000),
    Room(results=100, profiles=6, charts=6, rows=100, characters=2000),
    Room(results=50, profiles=3, charts=4, rows=40, characters=1000),
    Room(results=0, profiles=0, charts=2, rows=20, characters=600),
    Room(results=0, profiles=0, charts=0, rows=8, characters=300),
    Room(results=0, profiles=0, charts=0, rows=3, characters=60),
)
"""From everything to the least: the results, which are in a file anyway, go first, and the answer last."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a report that may be shown in part.

    Args:
        field: The document's field that holds its rows.
        what: What its rows are called.
        file: The file of the run folder that has them all.
        limit: The field of ``Room`` that says how many are shown.
        nested: Whether the rows are tables, whose lines are counted.
    """

    field: str
    what: str
    file: str
    limit: str = "rows"
    nested: bool = False


_OF_DOCUMENT = (
    Part(field="recommendations", what="rows of what to use", file="report.html"),
    Part(field="swaps", what="rows of the answers on RMSNorm", file="swaps.csv"),
    Part(field="questions", what="rows of what is undecided", file="comparisons.csv"),
    Part(field="unmeasured", what="rows of who has no time", file="results.csv"),
    Part(field="standings", what="rows of the candidates", file="comparisons.csv"),
    Part(field="trust", what="notes on trust", file="run.json"),
    Part(field="reaches", what="bandwidths", file="results.csv"),
    Part(field="flags", what="flags", file="results.csv"),
    Part(field="environment", what="rows of the environment", file="run.json"),
    Part(field="charts", what="charts", file="plots/", limit="charts"),
    Part(field="profiles", what="profiled cells", file="traffic.csv", limit="profiles"),
    Part(field="results", what="results", file="results.csv", limit="results", nested=True),
)
_OF_MERGED = (
    Part(field="devices", what="devices' answers", file="report.html"),
    Part(field="notes", what="notes", file="report.html"),
    Part(field="uses", what="rows of what to use", file="report.html"),
    Part(field="swaps", what="rows of the answers on RMSNorm", file="swaps.csv"),
    Part(field="environment", what="rows of the environment", file="run.json"),
    Part(field="speedups", what="rows of times and speedups", file="results.csv", limit="results", nested=True),
)


def shortened(document: D, room: Room) -> tuple[D, tuple[str, ...]]:
    """A document of which each part fits into the room, and what was left out of it, with the file that has it."""
    changes: dict[str, Any] = {}
    left_out = []
    for part in _OF_DOCUMENT if isinstance(document, Document) else _OF_MERGED:
        whole, most = getattr(document, part.field), getattr(room, part.limit)
        kept = _lines(whole, most) if part.nested else tuple(whole[:most])
        changes[part.field] = kept
        count, shown = (_count(rows) if part.nested else len(rows) for rows in (whole, kept))
        left_out += [f"{count - shown} of {count} {part.what} (all are in {part.file})"] if shown < count else []
    return replace(document, **changes), tuple(left_out)


def _lines(tables: Sequence[Any], most: int) -> tuple[Any, ...]:
    """The first lines of the tables, in their order; a table of which nothing is left goes."""
    kept, left = [], most
    for table in tables:
        lines = table.lines[:left]
        left -= len(lines)
        kept += [replace(table, lines=lines)] if lines else []
    return tuple(kept)


def _count(tables: Sequence[Any]) -> int:
    return sum(len(table.lines) for table in tables)
