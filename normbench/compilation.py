"""What the project knows of torch.compile: an empty cache, the first compile of a process, counting graphs."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
from torch._C._dynamo.eval_frame import set_guard_complete_hook
from torch._dynamo.utils import counters
from torch._inductor.utils import clear_caches, fresh_cache

_CACHE_VARIABLES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Compiled code in a folder of its own, and the seconds that compiling it took."""

    folder: Path
    seconds: float


def reset() -> None:
    """Forget every compiled graph, so that a cell neither reuses another's nor hits the recompile limit."""
    torch._dynamo.reset()


def empty_cache() -> AbstractContextManager[None]:
    """A context in which nothing compiled before, in this process or on disk, is found."""
    return fresh_cache()


@contextmanager
def cache_in(folder: Path) -> Iterator[None]:
    """A context in which compiled code is looked for, and left, in ``folder`` alone."""
    before = {name: os.environ.get(name) for name in _CACHE_VARIABLES}
    clear_caches()
    os.environ.update({_CACHE_VARIABLES[0]: str(folder), _CACHE_VARIABLES[1]: str(folder / "triton")})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        clear_caches()


def graph_count() -> int:
    """Graphs that dynamo has built in this process since its counters began."""
    return int(counters["stats"]["unique_graphs"])


def frame_count() -> int:
    """Frames that dynamo has tried to compile in this process where it may run them eagerly instead.

    A try that leaves no graph behind is a fallback: at the recompile limit, or at what it can't trace.
    """
    return int(counters["frames"]["total"])


@contextmanager
def compiled_frames() -> Iterator[list[bool]]:
    """A context whose list holds an entry for each frame that dynamo has compiled code for and that is entered.

    True where that code's guards let it run. Empty where everything was run eagerly, whatever made it so.
    """
    entered: list[bool] = []

    def note(passed: bool) -> bool:  # noqa: FBT001 - as dynamo calls it
        entered.append(passed)
        return passed

    hook: Any = note  # dynamo's own annotation asks for more than it does
    before = set_guard_complete_hook(hook)
    try:
        yield entered
    finally:
        set_guard_complete_hook(before)


@functools.cache
def warm_up(device: str) -> None:
    """Compile something trivial once a process.

    The first compile pays 10-20 s for imports, for finding the compiler and its vector instructions and
    for precompiled headers; none of it belongs to a norm's compile time.
    """
    x = torch.ones(8, device=device, requires_grad=True)
    with empty_cache(), torch.enable_grad():
        torch.compile(lambda tensor: tensor * 2, dynamic=False)(x).sum().backward()
    torch._dynamo.reset()


def missing_compiler(device_kind: str) -> str | None:
    """Why Inductor can't generate code for this kind of device; None where it can."""
    if device_kind == "cpu":
        found = any(shutil.which(name) for name in (os.environ.get("CXX", ""), "g++", "clang++", "c++") if name)
        return None if found else "torch.compile needs a C++ compiler on a CPU: install g++"
    try:
        import triton  # noqa: F401 - only whether it is there
    except ImportError:
        return "torch.compile needs Triton on a GPU: pip install triton"
    return None
