"""Repositories as they were at a commit, in temporary folders that are gone afterwards, however a run ends."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from normbench.interruption import tidied
from normbench.sources.git import Repository

_PREFIX = "normbench-tree-"
_LOCK = "lock"
"""A file that is locked as long as somebody uses the folder: it can be told from what a killed run has left."""


@contextmanager
def checked_out(repository: Repository, commit: str) -> Iterator[Path]:
    """A folder that holds the repository as it was at a commit, for as long as the context lasts.

    It has the repository's own name, since that is a package's where the root holds an ``__init__.py``. What runs
    that were killed have left of such folders is removed on the way.

    Raises:
        UsageError: It can't be checked out.
    """
    _remove_left()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    with tidied(lambda: shutil.rmtree(folder, ignore_errors=True)):
        lock = _locked(folder)
        try:
            tree = folder / "at" / (repository.root.name.removesuffix(".git") or "root")
            tree.mkdir(parents=True)
            repository.write(commit, tree, folder / "index")
            yield tree
        finally:
            if lock is not None:
                os.close(lock)


def _locked(folder: Path) -> int | None:
    """The descriptor of the folder's locked file; None where there are no locks: then nobody else removes it.

    The file has its name only once it is locked, so that nobody ever finds it there and free.
    """
    descriptor = os.open(folder / "new", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (folder / "new").rename(folder / _LOCK)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_left() -> None:
    """Remove this user's folders that nobody uses any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid == os.getuid():
                _remove_unused(folder)


def _remove_unused(folder: Path) -> None:
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)
