"""``report.html``: a report as one page that needs nothing else, with every result to sort and filter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import jinja2
from markupsafe import Markup

from normbench.reporters import entries
from normbench.reporters.document import Document
from normbench.reporters.entries import Source
from normbench.reporters.merged import Merged


def render(shown: Document | Merged, sources: Sequence[Source], pictures: Iterable[tuple[str, str]] = ()) -> str:
    """The page of a run, or of several.

    Args:
        shown: What it says.
        sources: The runs and how their samples spread, in the order of the document.
        pictures: Titles and SVG fragments, which are put in as they are.
    """
    name = "report.html.j2" if isinstance(shown, Document) else "merged.html.j2"
    columns = entries.columns([source.run for source in sources])
    return (
        _environment()
        .get_template(name)
        .render(
            document=shown,
            pictures=[(title, Markup(svg)) for title, svg in pictures],
            columns=columns,
            rows=entries.rows(sources, columns),
        )
    )


def _fields(row: object) -> tuple[object, ...]:
    """The fields of a row, in their order."""
    return tuple(vars(row).values())


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("normbench.reporters"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["fields"] = _fields
    return environment
