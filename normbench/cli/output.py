"""Results on stdout: all at once when they are complete, and a message where nobody reads any more."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from normbench.errors import OutputClosedError

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def results() -> Iterator[Console]:
    """A console whose text goes to stdout at the end."""
    from normbench.reporters.console import console

    text = io.StringIO()
    yield console(sys.stdout, text)
    emit(text.getvalue())


def emit(text: str) -> None:
    """Write to stdout.

    Raises:
        OutputClosedError: Whoever read it has gone, as ``head`` does.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError as error:
        # What is still buffered must not be flushed into the pipe again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputClosedError(
            "stdout was closed before everything was printed",
            hint="nothing is lost: see the run folder, if there is one",
        ) from error
    except OSError as error:
        raise OutputClosedError(f"stdout can't be written: {error.strerror}") from error
