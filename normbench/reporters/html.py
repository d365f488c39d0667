"""``report.html``: a report as one page that needs nothing else, with every result to sort and filter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import jinja2
from markupsafe import Markup, escape

from normbench.legible import visible
from normbench.reporters import entries, templating
from normbench.reporters.document import Document
from normbench.reporters.entries import Source
from normbench.reporters.merged import Merged

_HYPHENED = re.compile(r"(?<![\w-])(-{0,2}\w+(?:-\w+)+|--\w+)(?![\w-])")
"""Names with hyphens, and options."""

_LONGEST = 30
"""Characters that fit beside a bullet in a window of 400 px."""


def render(shown: Document | Merged, sources: Sequence[Source], pictures: Iterable[tuple[str, str]] = ()) -> str:
    """The page of a run, or of several.

    Args:
        shown: What it says.
        sources: The runs and how their samples spread, in the order of the document.
        pictures: Titles and SVG fragments, which are put in as they are.
    """
    name = "report.html.j2" if isinstance(shown, Document) else "merged.html.j2"
    columns = entries.columns(sources)
    return (
        templates()
        .get_template(name)
        .render(
            document=shown,
            pictures=[(title, Markup(svg)) for title, svg in pictures],
            columns=columns,
            rows=entries.rows(sources, columns),
        )
    )


def _whole(text: object) -> Markup:
    """Escaped text in which names such as ``nn-layernorm`` and options are not broken at their hyphens.

    Those that are too long for a narrow window still are.
    """
    parts = _HYPHENED.split(visible(str(text)))
    return Markup("").join(
        Markup('<span class="whole">{}</span>').format(part) if index % 2 and len(part) <= _LONGEST else escape(part)
        for index, part in enumerate(parts)
    )


def _fields(row: object) -> tuple[object, ...]:
    """The fields of a row, in their order."""
    return tuple(vars(row).values())


def templates() -> jinja2.Environment:
    """The templates of pages, with filters for names and rows; all that is put in is escaped."""
    environment = templating.environment(autoescape=True)
    environment.filters["fields"] = _fields
    environment.filters["whole"] = _whole
    return environment
