"""``explain`` as GitHub-flavoured markdown."""

from __future__ import annotations

from normbench.reporters import templating, walkthrough
from normbench.reporters.walkthrough import Explained
from normbench.reporters.walkthrough_table import number


def render(found: Explained) -> str:
    """The same as on the terminal; every text is the tool's own, so that nothing needs an escape."""
    environment = templating.environment(autoescape=False)
    environment.filters["number"] = number
    return environment.get_template("walkthrough.md.j2").render(
        found=found, norms=list(walkthrough.NAMES.values()), notes=(*found.notes, walkthrough.SPEED)
    )
