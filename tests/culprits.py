"""Implementations that cost the process they run in, for tests of what that costs the others.

Their names say when and how: ``build-abort``, ``check-segfault``, ``timed-hang``. Found by ``find``, in workers too.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from normbench.implementations import ALL, Catalog, Implementation, by_name, eager
from normbench.implementations.base import Bind, Setting, binding
from normbench.records import Op


def _fork() -> None:
    """Leave a copy of this process that raises, as it returns in the other."""
    if os.fork() == 0:
        raise RuntimeError("the copy")


def _raise_mute() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise self

    raise MuteError


ENDS: dict[str, Callable[[], object]] = {
    "segfault": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "exit": lambda: os._exit(3),
    "quit": lambda: sys.exit("good-bye"),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "hang": lambda: time.sleep(3600),
    "close": lambda: os.closerange(3, 256),
    "fork": _fork,
    "mute": _raise_mute,
    "spin": lambda: re.match(r"(a+)+$", "a" * 60 + "b"),  # one call into C that keeps Python's lock for years
}
"""Ways to end a process, never to come back, or to spoil what others need."""


WHEN = ("build", "check", "timed")
"""In the build, in the first call, in a call that is timed: after the first calls of checking and finding a batch."""

_CHECKING_CALLS = 12


def find(name: str) -> Implementation:
    """A culprit by its name, or a built-in implementation."""
    when, _, how = name.partition("-")
    return _culprit(name, when, ENDS[how]) if when in WHEN and how in ENDS else by_name(name)


def _culprit(name: str, when: str, end: Callable[[], object]) -> Implementation:
    calls: list[int] = []

    def function(x: torch.Tensor, gain: Any, bias: Any, eps: float) -> torch.Tensor:
        calls.append(1)
        if when == "check" or (when == "timed" and len(calls) > _CHECKING_CALLS):
            end()
        return eager.rmsnorm(x, gain, bias, eps)

    def build(setting: Setting) -> Bind:
        if when == "build":
            end()
        return binding(function, setting.eps)

    return Implementation(name=name, op=Op.RMSNORM, provider=when, summary="a culprit", build=build)


def catalog() -> Catalog:
    """All of them, behind the built-in implementations."""
    names = [f"{when}-{how}" for when in WHEN for how in ENDS]
    return Catalog(implementations=(*ALL, *found(names)))


def found(names: Sequence[str]) -> tuple[Implementation, ...]:
    """Several of them."""
    return tuple(find(name) for name in names)
