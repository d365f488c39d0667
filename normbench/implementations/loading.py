"""Imports what users bring, once a process, and refuses what could not be told apart there."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from types import ModuleType
from typing import Any, TypeAlias

from torch._library.custom_ops import OPDEFS

from normbench.implementations import folders
from normbench.implementations.located import Located
from normbench.torch_state import TorchState

_Place: TypeAlias = tuple[str | None, str]
"""A folder or None, and the dotted name of a module there."""

_errors: dict[_Place, Exception] = {}
_registered: dict[str, set[str]] = {}
"""By the names of operators, whose code has registered them."""
_replaced: set[str] = set()
"""The operators that were registered twice."""


def load(located: Located) -> Any:
    """What lies there; its file is run once a process.

    Raises:
        Exception: Whatever importing it raises; the same again at every call.
        ImportError: Its import ended the program or changed torch's settings, or it shares the name of an operator
            with other code that was brought.
        AttributeError: There is no such thing in it.
    """
    place = (located.root, located.module)
    if place in _errors:
        raise _errors[place].with_traceback(None)
    try:
        module = _imported(located)
    except Exception as error:  # a second try would meet what the first has left
        _errors[place] = error
        raise
    _refuse_replaced(located)
    try:
        return attrgetter(located.attribute)(module)
    except AttributeError as error:
        raise AttributeError(f"{located.module} has no {located.attribute}") from error


def _imported(located: Located) -> ModuleType:
    state = TorchState.now()
    try:
        with _operators_of(_whose(located)):
            if located.root is None:
                module = importlib.import_module(located.module)
            else:
                module = folders.imported(located.root, located.module)
    except (KeyboardInterrupt, Exception):
        state.restore()
        raise
    except BaseException as end:  # sys.exit, and pytest's skip, which is no Exception either
        state.restore()
        raise ImportError(f"{located.module} ended the program while it was imported: {end!r}") from end
    changes = state.restore()
    if changes is not None:
        raise ImportError(f"{located.module} changes torch's settings for all while it is imported: {changes}")
    return module


def _whose(located: Located) -> str:
    return located.root or located.module.partition(".")[0]


@contextmanager
def _operators_of(whose: str) -> Iterator[None]:
    """A context in which operators are registered by somebody, perhaps in the place of others of their name."""
    before = dict(OPDEFS)
    try:
        yield
    finally:
        for name, made in OPDEFS.items():
            if before.get(name) is not made:
                _registered.setdefault(name, set()).add(whose)
                if name in before:
                    _replaced.add(name)


def _refuse_replaced(located: Located) -> None:
    """An ImportError where other code has registered its operator too: the last one answers the calls to both."""
    shared = sorted(name for name in _replaced if _whose(located) in _registered[name])
    if shared:
        raise ImportError(
            f"the operator {shared[0]} is registered twice by what is compared, and in one process the last one "
            "answers for both: give it another name in one of them"
        )
