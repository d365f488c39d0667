"""Whatever runs in this process and is not ours: what it prints, how it crashes, that it ends the program."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout

from normbench.errors import IncompleteError

_STDOUT, _STDERR = 1, 2


@contextmanager
def kept_from_stdout() -> Iterator[None]:
    """A context in which whatever is printed goes to stderr, C's output too: stdout has results and nothing else.

    A crash inside it says in which line, on stderr.
    """
    sys.stdout.flush()
    if not faulthandler.is_enabled():
        faulthandler.enable(_STDERR)
    real = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()
        ctypes.CDLL(None).fflush(None)  # what C has not written yet
        os.dup2(real, _STDOUT)
        os.close(real)


@contextmanager
def alone(what: str) -> Iterator[None]:
    """A context for code that is not ours in this process: it neither prints on stdout nor ends the program."""
    with ends_are_errors(lambda: "", what), kept_from_stdout():
        yield


@contextmanager
def ends_are_errors(doing: Callable[[], str], what: str = "check") -> Iterator[None]:
    """A context in which nothing but an interrupt ends this process as code that is not ours wants it, even with 0.

    Args:
        doing: What is being done.
        what: What it would have ended.

    Raises:
        IncompleteError: It would have, by ``sys.exit`` or an exception that is no error.
    """
    from normbench.failures import describe

    try:
        yield
    except (KeyboardInterrupt, Exception):
        raise
    except BaseException as error:
        at = f" at {doing()}" if doing() else ""
        raise IncompleteError(f"the {what} was ended by what it called{at}: {describe(error)}") from error
