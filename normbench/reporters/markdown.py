"""``verdict.md``: a report as GitHub-flavoured markdown, always short enough for a pull request."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import jinja2

from normbench.records import Run
from normbench.reporters import document, room, statements, templating
from normbench.reporters.document import Document
from normbench.reporters.merged import Merged
from normbench.reporters.room import Room

R = TypeVar("R")

MOST_CHARACTERS = 60_000
"""A description takes 65,536 code points and a comment 262,144 bytes; the rest is for whoever pastes it."""


def render(run: Run) -> str:
    """The verdict of a run."""
    return render_document(document.of_run(run))


def render_document(whole: Document | Merged) -> str:
    """A report of a run or of several, with what there is room for."""
    return fitting(room.ROOMS, lambda space: _render(whole, space))


def fitting(rooms: Sequence[R], render: Callable[[R], str]) -> str:
    """A text in the first of some rooms in which it is short enough; in the last one whatever it is."""
    return next(text for space in rooms if len(text := render(space)) < MOST_CHARACTERS or space is rooms[-1])


def _render(whole: Document | Merged, space: Room) -> str:
    name = "verdict.md.j2" if isinstance(whole, Document) else "merged.md.j2"
    shown, left_out = room.shortened(whole, space)
    template = templates(space.characters, space.answer).get_template(name)
    return template.render(document=shown, left_out=left_out, most=MOST_CHARACTERS)


def escape(text: object, most: int | None = None) -> str:
    """Text inside a markdown table or sentence: no pipe ends a cell, no markup is read out of data.

    Nor does GitHub make a mention, a reference or an emoji of it: what it looks for is parted by a character of no
    width, since it looks after the escapes have been read.

    What would be more than ``most`` characters, as they are written, is cut, with an ellipsis.
    """
    flat = statements.clipped(text)
    marked = _MARKER.sub(r"\1\\\2", flat[: None if most is None else most + 1].translate(_ESCAPES))
    escaped = _SOUGHT.sub(r"\1&#8203;", marked)
    if most is None or len(escaped) <= most:
        return escaped
    return _CUT_ESCAPE.sub(r"\1", escaped[: most - 1]) + "…"


_MARKER = re.compile(r"^(\d*)([-+.)])(?=[ -]|$)")
"""What would begin a list, or be a rule, at the beginning of a line, a list's line too."""

_SOUGHT = re.compile(r"(@|#(?=\d)|\bGH(?=-\d)|(?<!:):(?=[\w+\\-]+:(?!:)))", re.IGNORECASE)
"""Where a mention, the number of an issue (also GH-1) or an emoji begins; not at the colons of a C++ name."""

_CUT_ESCAPE = re.compile(r"&[#a-z\d]*$|(?<!\\)((?:\\\\)*)\\$")
"""What is left of an escape, at the end, that was cut through."""

_ESCAPES = str.maketrans({**{c: f"\\{c}" for c in "\\|`*_[]~#$"}, "<": "&lt;", ">": "&gt;", "&": "&amp;"})


def escape_code(text: object, most: int | None = None) -> str:
    """Text inside a code span, which a backtick would end."""
    return statements.clipped(text, most).replace("`", "'")


def templates(most: int | None = None, answer: int | None = None) -> jinja2.Environment:
    """The templates, with filters that escape what is put into them, and that cut texts.

    Args:
        most: The most characters of a text.
        answer: The most characters of a text that is the report's answer.
    """
    environment = templating.environment(autoescape=False)
    environment.filters["md"] = partial(escape, most=most)
    environment.filters["answer"] = partial(escape, most=answer)
    environment.filters["whole"] = escape
    environment.filters["code"] = partial(escape_code, most=most)
    return environment
