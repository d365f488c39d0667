"""``explain`` as GitHub-flavoured markdown."""

from __future__ import annotations

from normbench.reporters import steps, templating
from normbench.reporters.steps import Explained
from normbench.reporters.steps_table import number


def render(found: Explained) -> str:
    """The same as on the terminal; every text is the tool's own, so that nothing needs an escape."""
    environment = templating.environment(autoescape=False)
    environment.filters["number"] = number
    return environment.get_template("steps.md.j2").render(
        found=found, norms=list(steps.NAMES.values()), notes=(*found.notes, steps.SPEED)
    )
