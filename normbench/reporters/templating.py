"""The templates, as every report that is made of one opens them."""

from __future__ import annotations

import jinja2
from markupsafe import Markup

from normbench.legible import visible


def environment(*, autoescape: bool) -> jinja2.Environment:
    """The templates: a tag takes its line with it, a name that is not there is an error, no text acts."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("normbench.reporters"),
        autoescape=autoescape,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        finalize=_visible,
    )


def _visible(value: object) -> object:
    """The last that happens to what is put in, whoever forgot to: markup and numbers are as they are."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
