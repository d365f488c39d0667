"""``report.html`` of steps: one page that needs nothing else, with the pictures in it."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from normbench.records import StepRun
from normbench.reporters import html, steps_document


def render(run: StepRun, pictures: Iterable[tuple[str, str]] = ()) -> str:
    """The page of a run of steps.

    Args:
        run: The run.
        pictures: Titles and SVG fragments, which are put in as they are.
    """
    template = html.templates().get_template("steps.html.j2")
    return template.render(
        document=steps_document.of_run(run),
        heads=steps_document,
        pictures=[(title, Markup(svg)) for title, svg in pictures],
    )
