"""``verdict.md`` of steps: GitHub-flavoured markdown, the answer first, always short enough for a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from normbench import units
from normbench.records import StepRun
from normbench.reporters import steps_document
from normbench.reporters.markdown import MOST_CHARACTERS, fitting, templates
from normbench.reporters.steps_document import StepDocument

T = TypeVar("T")

_NO_LIMIT = 10**9


@dataclass(frozen=True, kw_only=True)
class _Room:
    """How much of each part is shown at most.

    Args:
        tables: Cells whose tables are shown.
        lines: Rows of each of them.
        rows: Rows of each other table.
        sentences: Of each list of sentences.
        answer: Characters of the first line.
        characters: Characters of each other text.
    """

    tables: int = _NO_LIMIT
    lines: int = _NO_LIMIT
    rows: int = _NO_LIMIT
    sentences: int = _NO_LIMIT
    answer: int = 4000
    characters: int = 4000


_ROOMS = (
    _Room(),
    _Room(tables=24, rows=60, sentences=24, characters=2000),
    _Room(tables=8, lines=20, rows=40, sentences=16, characters=1000),
    _Room(tables=4, lines=16, rows=24, sentences=12, characters=500),
    _Room(tables=2, lines=8, rows=12, sentences=8, characters=250),
    _Room(tables=1, lines=5, rows=5, sentences=5, answer=1500, characters=150),
)
"""From everything to the least: the figures, which are in files anyway, go first, and the answer last."""


def render(run: StepRun) -> str:
    """The verdict of a run of steps, with what there is room for."""
    whole = steps_document.of_run(run)
    return fitting(_ROOMS, lambda room: _render(whole, room))


def _render(whole: StepDocument, room: _Room) -> str:
    shown, left_out = _shortened(whole, room)
    template = templates(room.characters, room.answer).get_template("steps.md.j2")
    return template.render(document=shown, heads=steps_document, left_out=left_out, most=MOST_CHARACTERS)


def _shortened(whole: StepDocument, room: _Room) -> tuple[StepDocument, list[str]]:
    """What there is room for, and what is left out."""
    tables = tuple(replace(table, lines=table.lines[: room.lines]) for table in whole.tables[: room.tables])
    lines = sum(len(table.lines) for table in whole.tables) - sum(len(table.lines) for table in tables)
    rows = {
        name: getattr(whole, name) for name in ("unmeasured", "brought", "gaps", "learning", "curves", "environment")
    }
    said = {name: getattr(whole, name) for name in _SENTENCES}
    left_out = [
        *_left(lines, "result"),
        *_left(sum(_beyond(values, room.rows) for values in rows.values()), "row", "of other tables"),
        *_left(sum(_beyond(values, room.sentences) for values in said.values()), "sentence"),
    ]
    cut = {name: values[: room.rows] for name, values in rows.items()}
    cut |= {name: values[: room.sentences] for name, values in said.items()}
    few = whole.corpora[: room.rows]
    cut["curves"] = tuple(replace(curve, corpora=curve.corpora[: len(few)]) for curve in cut["curves"])
    left_out += _left(len(whole.corpora) - len(few), "column", "of corpora")
    return replace(whole, tables=tables, corpora=few, **cut), left_out


_SENTENCES = ("swaps", "along", "learned", "notes", "parameters", "explanations", "shares", "trust")


def _beyond(values: Sequence[T], most: int) -> int:
    return max(0, len(values) - most)


def _left(count: int, what: str, of: str = "") -> list[str]:
    return [" ".join(filter(None, [units.count(count, what), of]))] if count > 0 else []
