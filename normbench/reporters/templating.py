"""The templates, as every report that is made of one opens them."""

from __future__ import annotations

import jinja2


def environment(*, autoescape: bool) -> jinja2.Environment:
    """The templates: a tag takes its line with it, and a name that is not there is an error."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("normbench.reporters"),
        autoescape=autoescape,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
