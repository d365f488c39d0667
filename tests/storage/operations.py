"""What a program does to a file system, seen operation by operation: to look at each state, or to let one fail."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

CHANGING = ("fsync", "replace", "rename", "unlink", "mkdir", "rmdir", "truncate")
"""The calls of ``os`` that all changes go through: what was written to a file is seen when it is synchronised."""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One call that is about to be made.

    Args:
        name: The call.
        path: The file or folder.
        target: What it is renamed to.
    """

    name: str
    path: Path
    target: Path | None = None

    @property
    def is_of_a_file(self) -> bool:
        """Whether bytes have been written to a file, which are now to reach the disk."""
        return self.name == "fsync" and stat.S_ISREG(self.path.stat().st_mode)


@contextmanager
def watched(root: Path, see: Callable[[Operation], None]) -> Iterator[None]:
    """Call ``see`` before each change below ``root``; what ``see`` itself changes is not seen."""
    seeing = False

    def wrapped(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(first: Any, *args: Any, **options: Any) -> Any:
            nonlocal seeing
            path = Path(f"/proc/self/fd/{first}").readlink() if isinstance(first, int) else Path(first)
            if not seeing and path.is_relative_to(root):
                seeing = True
                try:
                    target = Path(args[0]) if name in ("replace", "rename") else None
                    see(Operation(name=name, path=path, target=target))
                finally:
                    seeing = False
            return real(first, *args, **options)

        return call

    with patch.multiple(os, **{name: wrapped(name) for name in CHANGING}):
        yield


def listed(root: Path, act: Callable[[], object]) -> list[Operation]:
    """The changes that ``act`` makes below ``root``."""
    found: list[Operation] = []
    with watched(root, found.append):
        act()
    return found


@contextmanager
def failing(root: Path, at: int, error: BaseException, *, for_good: bool = False) -> Iterator[None]:
    """Let the change with a number fail, a write after half of it; or all from that on, as on a disk that is full.

    Removing and shortening files always works, as it does there.
    """
    number, sizes = -1, _sizes(root)

    def see(operation: Operation) -> None:
        nonlocal number
        number += 1
        half_done = number == at or (for_good and number > at and operation.name in ("fsync", "replace", "mkdir"))
        if half_done and operation.is_of_a_file:
            size, before = operation.path.stat().st_size, sizes.get(operation.path, 0)
            os.truncate(operation.path, before + max(0, size - before) // 2)
        if half_done:
            raise error
        sizes.clear()
        sizes.update(_sizes(root))

    with watched(root, see):
        yield


def _sizes(root: Path) -> dict[Path, int]:
    return {path: path.stat().st_size for path in root.rglob("*") if path.is_file()}


def os_error(code: int) -> OSError:
    """What the operating system says."""
    return OSError(code, os.strerror(code))


FULL, READ_ONLY, REFUSED = os_error(errno.ENOSPC), os_error(errno.EROFS), os_error(errno.EACCES)
