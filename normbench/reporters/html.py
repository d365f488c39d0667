"""``report.html``: a report as one page that needs nothing else, with every result to sort and filter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import jinja2
from markupsafe import Markup

from normbench.reporters import document, entries
from normbench.reporters.entries import Source
from normbench.reporters.merged import Merged


def render(source: Source, pictures: Iterable[tuple[str, str]] = ()) -> str:
    """The page of a run.

    Args:
        source: The run and how its samples spread.
        pictures: Titles and SVG fragments, which are put in as they are.
    """
    return _page("report.html.j2", document.of_run(source.run), [source], pictures)


def render_merged(shown: Merged, sources: Sequence[Source], pictures: Iterable[tuple[str, str]] = ()) -> str:
    """The page of several runs, in the order and with the labels of their document."""
    return _page("merged.html.j2", shown, sources, pictures)


def _page(template: str, shown: object, sources: Sequence[Source], pictures: Iterable[tuple[str, str]]) -> str:
    columns = entries.columns([source.run for source in sources])
    return (
        _environment()
        .get_template(template)
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
