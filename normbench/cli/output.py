"""Results on stdout, all at once when they are complete; messages on stderr."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def results() -> Iterator[Console]:
    """A console whose text goes to stdout at the end."""
    from normbench.reporters.terminal import console

    text = io.StringIO()
    yield console(sys.stdout, text)
    emit(text.getvalue())


def emit(text: str) -> None:
    """Write to stdout; what can't be written is an error (:mod:`normbench.cli.streams`)."""
    sys.stdout.write(text)
    sys.stdout.flush()


def json_text(value: object) -> str:
    """One JSON document that any reader takes: what is no number or infinite is null."""
    return json.dumps(_finite(value), indent=1, allow_nan=False) + "\n"


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


def note(message: str, *, quiet: bool = False) -> None:
    """Say something on stderr that is neither a warning nor an error."""
    if not quiet:
        print(message, file=sys.stderr)
