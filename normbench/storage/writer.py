"""One process writes a run folder at a time: a lock on the folder itself, of which nothing stays in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from normbench import locks
from normbench.errors import BusyError


@contextmanager
def only_writer(path: Path) -> Iterator[bool]:
    """A context in which no other process that asks for it writes this run folder.

    It says whether that is sure: not every network file system has locks.

    Raises:
        BusyError: Another process is writing it.
    """
    descriptor = _opened(path)
    try:
        yield descriptor is not None and _locked(descriptor, path)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _opened(path: Path) -> int | None:
    try:
        return locks.open_folder(path)
    except OSError:
        return None  # whoever reads or writes it next says what is wrong with it


def _locked(descriptor: int, path: Path) -> bool:
    try:
        if locks.lock(descriptor):
            return True
    except OSError:
        return False
    pid = locks.holder_of(descriptor)
    raise BusyError(
        f"{path}: another normbench is writing it{f' (process {pid})' if pid else ''}",
        hint="wait until that has ended; normbench report can read it meanwhile",
    )
