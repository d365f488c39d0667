"""``check.md``: a check as GitHub-flavoured markdown, always short enough for a pull request."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from normbench import units
from normbench.grades import Card, Grade
from normbench.records import ROUNDING, Check, Mark, Output
from normbench.reporters import brought, method
from normbench.reporters import checks as words
from normbench.reporters.markdown import MOST_CHARACTERS, fitting, templates

_NO_LIMIT = 10**9


@dataclass(frozen=True, kw_only=True)
class _Room:
    """How much of each part is shown at most.

    Args:
        has_spots: Whether each figure says where it is.
        tables: Implementations whose figures are shown.
        failures: Rows of what fails, and of what is only coarsely right.
        implementations: Columns of the table of grades.
        packages: Rows of device and software.
        answer: Characters of the first line.
        characters: Characters of each other text.
    """

    has_spots: bool = True
    tables: int = _NO_LIMIT
    failures: int = _NO_LIMIT
    implementations: int = _NO_LIMIT
    packages: int = _NO_LIMIT
    answer: int = 4000
    characters: int = 4000


_ROOMS = (
    _Room(),
    _Room(has_spots=False),
    _Room(has_spots=False, tables=6, characters=2000),
    _Room(has_spots=False, tables=3, failures=100, characters=1000),
    _Room(tables=0, failures=60, implementations=20, packages=40, characters=600),
    _Room(tables=0, failures=15, implementations=8, packages=20, characters=300),
    _Room(tables=0, failures=5, implementations=4, packages=12, answer=1500, characters=200),
)
"""From everything to the least: the figures, which are in a file anyway, go first, and the answer last."""


def render(card: Card) -> str:
    """A check, with what there is room for."""
    return fitting(_ROOMS, lambda room: _render(card, room))


def _render(card: Card, room: _Room) -> str:
    header = card.run.header
    order = _worst_first(card)
    shown, with_figures = set(order[: room.implementations]), set(order[: room.tables])
    names = [name for name in card.names if name in shown]
    detailed = [name for name in card.names if name in with_figures]
    failures, coarse = words.failures(card), words.coarse(card)
    environment = method.made(header.device, header.environment, header.created_utc)
    left_out = [
        *_left(len(card.names) - len(names), "implementation"),
        *_left(len(card.names) - len(detailed), "table of figures", "tables of figures"),
        *_left(len(failures) - room.failures, "failure"),
        *_left(
            len(coarse) - room.failures, "row of what is right only coarsely", "rows of what is right only coarsely"
        ),
    ]
    return (
        templates(room.characters, room.answer)
        .get_template("check.md.j2")
        .render(
            headline=words.headline(card),
            totals=words.totals(card),
            end=words.end(card),
            scope=words.scope(card),
            notes=words.notes(card),
            left_out=left_out,
            most=MOST_CHARACTERS,
            legend=words.LEGEND,
            names=names,
            grades=[
                {"what": asked, "cells": [words.cell(card.by_pair.get((name, asked))) for name in names]}
                for asked in header.plan.properties
            ],
            failures=failures[: room.failures],
            coarse=coarse[: room.failures],
            details=[_details(card, name, room) for name in detailed],
            has_spots=room.has_spots,
            rounding=ROUNDING,
            properties=header.plan.properties,
            brought=brought.rows(header.implementations)[: room.implementations],
            environment=environment[: room.packages],
            command=shlex.join(header.command),
        )
    )


def _worst_first(card: Card) -> list[str]:
    """The implementations, those that fail before the others."""
    failing = {grade.implementation for grade in card.failing}
    return sorted(card.names, key=lambda name: name not in failing)


def _left(count: int, one: str, several: str | None = None) -> list[str]:
    return [f"{count} {several}" if several and count > 1 else units.count(count, one)] if count > 0 else []


def _details(card: Card, name: str, room: _Room) -> dict[str, Any]:
    own = card.by_name[name]
    counts = [(mark, sum(grade.mark is mark for grade in own)) for mark in Mark]
    return {
        "name": name,
        "said": ", ".join(f"{count} {mark}" for mark, count in counts if count) or "not come to",
        "rows": [_detail(grade, room) for grade in own],
    }


def _detail(grade: Grade, room: _Room) -> dict[str, Any]:
    return {
        "what": grade.property,
        "said": _said(grade),
        "cells": [_figure(grade.worst.get(output), room) for output in Output],
    }


def _said(grade: Grade) -> str:
    """The grade, and why it was not asked, or not everywhere."""
    unasked = "; ".join(grade.unasked)
    if grade.mark is Mark.NOT_APPLICABLE:
        return f"n.a.: {unasked}"
    word = "FAIL" if grade.mark is Mark.FAIL else "coarse" if grade.is_coarse else "ok"
    allowed = " (allowed)" if grade.allowed else ""
    return f"{word}{allowed}{f', not asked everywhere: {unasked}' if unasked else ''}"


def _figure(check: Check | None, room: _Room) -> str:
    if check is None or check.gap is None:
        return ""
    figure = f"{units.ulps(check.gap.ulp)} ({units.scientific(check.gap.relative)})"
    return f"{figure}, {check.spot}" if room.has_spots else figure
