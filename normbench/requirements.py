"""The packages that nothing here does without: what to say where one is missing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from normbench.errors import IncompleteError

REQUIRED = frozenset(
    ("torch", "typer", "rich", "numpy", "pandas", "matplotlib", "scipy", "jinja2", "pydantic", "tomlkit", "psutil")
)
"""What pyproject.toml asks for and a command can't do without, by the module's name, which is the package's."""


def lacking(error: ModuleNotFoundError) -> IncompleteError | None:
    """The error to tell in place of this one.

    Args:
        error: What an import has ended with. A module inside a package that is there, of this project or of Python
            itself, is no package that anybody could install: there is a fault then.

    Returns:
        An error that names the package and how to get it; None for a fault.
    """
    name = error.name or ""
    if not name or "." in name or name == "normbench" or name in sys.stdlib_module_names:
        return None
    hint = f"pip install {name}" if name in REQUIRED else "pip check says which package needs it"
    return IncompleteError(f"{name}: not installed, and this needs it", hint=hint)


@contextmanager
def named() -> Iterator[None]:
    """A context for what a program itself is made of: a package that is missing there is told, and ends it."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = lacking(error)
        if missing is None:
            raise
        print(f"error: {missing.message}\nhint: {missing.hint}", file=sys.stderr)
        sys.exit(missing.exit_code)
