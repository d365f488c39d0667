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
        providers: Providers for which it is said whether RMSNorm pays.
        answer: Characters of each text that is the answer: what to use, whether RMSNorm pays, how sure that is.
        characters: Characters of each other text.
    """

    results: int = _NO_LIMIT
    profiles: int = _NO_LIMIT
    charts: int = _NO_LIMIT
    rows: int = _NO_LIMIT
    providers: int = _NO_LIMIT
    answer: int = 4000
    characters: int = 4000


ROOMS = (
    Room(),
    Room(results=400),
    Room(results=200, profiles=12, charts=12, characters=2000),
    Room(results=100, profiles=6, charts=6, rows=100, characters=2000),
    Room(results=50, profiles=3, charts=4, rows=40, characters=1000),
    Room(results=0, profiles=0, charts=2, rows=20, providers=20, characters=600),
    Room(results=0, profiles=0, charts=0, rows=8, providers=8, characters=300),
    Room(results=0, profiles=0, charts=0, rows=3, providers=4, answer=1500, characters=200),
)
"""From everything to the least: the results, which are in a file anyway, go first, and the answer last.

In the last one nothing has more than so many lines of so many characters, and all of them together fit.
"""


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
    Part(field="gate_rows", what="rows of the gate", file="comparisons.csv"),
    Part(field="recommendations", what="rows of what to use", file="report.html"),
    Part(field="swaps", what="rows of the answers on RMSNorm", file="swaps.csv"),
    Part(field="questions", what="rows of what is undecided", file="comparisons.csv"),
    Part(field="unmeasured", what="rows of who has no time", file="results.csv"),
    Part(field="brought", what="rows of what was brought along", file="run.json"),
    Part(field="standings", what="rows of the candidates", file="comparisons.csv"),
    Part(field="trust", what="rows of how far to trust it", file="cells.csv"),
    Part(field="reaches", what="rows of bandwidths", file="results.csv"),
    Part(field="flags", what="rows of flags", file="results.csv"),
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
    left_out: list[str] = []
    if isinstance(document, Document):
        changes, left_out = _providers(document, room.providers)
    for part in _OF_DOCUMENT if isinstance(document, Document) else _OF_MERGED:
        whole, most = changes.get(part.field, getattr(document, part.field)), getattr(room, part.limit)
        kept = _lines(whole, most) if part.nested else tuple(whole[:most])
        changes[part.field] = kept
        count, shown = (_count(rows) if part.nested else len(rows) for rows in (whole, kept))
        left_out += _said(count - shown, count, part.what, part.file)
    return replace(document, **changes), tuple(left_out)


def _providers(document: Document, most: int) -> tuple[dict[str, Any], list[str]]:
    """The first providers and, which comes last, the fastest of each."""
    count = len(document.providers)
    if count <= most:
        return {}, []
    kept = [*range(most - 1), count - 1]
    lines = tuple(replace(line, answers=tuple(line.answers[n] for n in kept)) for line in document.swaps)
    changes = {"providers": tuple(document.providers[n] for n in kept), "swaps": lines}
    return changes, _said(count - most, count, "providers", "swaps.csv")


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


def _said(lost: int, count: int, what: str, file: str) -> list[str]:
    return [f"{lost} of {count} {what} (all are in {file})"] if lost else []
