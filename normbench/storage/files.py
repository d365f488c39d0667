"""Files and folders: written as a whole or not at all, never over another run, with errors that name them."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from normbench.errors import StorageError, UsageError
from normbench.storage import leftovers

_IS_FULL = "make room there"
_IS_CLOSED = "make it writable"
_REMEDIES = {
    errno.ENOSPC: _IS_FULL,
    errno.EDQUOT: _IS_FULL,
    errno.EFBIG: _IS_FULL,
    errno.EROFS: _IS_CLOSED,
    errno.EACCES: _IS_CLOSED,
    errno.EPERM: _IS_CLOSED,
}
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES)
"""What a file system says of a folder that it can't, or may not, write through."""


def opened(path: Path) -> BinaryIO:
    """A file open for reading; links are followed.

    Raises:
        OSError: It can't be opened, or is no regular file: a pipe would be waited for, a device may never end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # so that a pipe is not waited for either
    try:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file")
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def read_at_most(path: Path, most: int) -> bytes:
    """The bytes of a file.

    Raises:
        OSError: As ``opened``, or there are more than ``most``.
    """
    with opened(path) as file:
        data = file.read(min(os.fstat(file.fileno()).st_size, most) + 1)
    if len(data) > most:
        raise too_large(most)
    return data


def too_large(most: int) -> OSError:
    """What is said of a file that is larger than anything a run writes."""
    return OSError(errno.EFBIG, f"more than {most} bytes, the most that is read of such a file")


def write_text(path: Path, text: str) -> None:
    """Write a text file as a whole or not at all; it is on the disk when this returns."""
    write_whole(path, [encoded(text)])


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file as a whole or not at all, in a folder that is made where it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error
    write_whole(path, [data])


def write_whole(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file of some pieces: what was there stays until all of them are on the disk.

    Whatever ends it early, an interrupt too, leaves no half file; a killed process does, under a name of its own.
    """
    temporary = leftovers.name_for(path)
    try:
        temporary.unlink(missing_ok=True)  # of an earlier process; a link in its place would be written through
        with temporary.open("xb") as file:
            for piece in pieces:
                file.write(piece)
            _sync(file)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def append(path: Path, text: str) -> None:
    """Add to a file that exists; it is on the disk when this returns, in part where it fails."""
    try:
        with path.open("r+b") as file:
            file.seek(0, os.SEEK_END)
            file.write(encoded(text))
            _sync(file)
    except OSError as error:
        raise unwritable(path, error) from error


def remove(path: Path) -> None:
    """Remove a file, for good when this returns."""
    try:
        path.unlink()
        sync_folder(path.parent)
    except OSError as error:
        raise unwritable(path, error) from error


def encoded(text: str) -> bytes:
    """Text as every file holds it; half of a surrogate pair, which has no UTF-8, as its escape."""
    return text.encode("utf-8", "backslashreplace")


def unwritable(path: Path, error: OSError) -> StorageError:
    """What is said of a file that can't be written."""
    return StorageError(f"{path}: can't be written: {error.strerror}", hint=_REMEDIES.get(error.errno or 0))


def sync_folder(path: Path) -> None:
    """Have the names in a folder on the disk: a new file's, or that something was renamed or removed."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def make_folder(path: Path, hint: str = "name a new folder") -> None:
    """Make a new folder, parents included.

    Args:
        path: The folder.
        hint: What to do where it exists.

    Raises:
        UsageError: It exists, or it can't be written.
    """
    try:
        path.mkdir(parents=True)
    except OSError as error:
        raise _no_folder(path, error, hint) from error


@contextmanager
def new_folder(path: Path, hint: str) -> Iterator[Path]:
    """A folder to be filled, which has its name once all is in it: killed before, there is none of that name.

    Args:
        path: The folder's name; parents that are missing are made.
        hint: What to do where it exists.

    Raises:
        UsageError: It exists, or it can't be written.
    """
    try:
        if os.path.lexists(path):  # a link that leads nowhere too
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        path.parent.mkdir(parents=True, exist_ok=True)
        leftovers.remove(path.parent, of=path.name)
        temporary = leftovers.name_for(path)
        temporary.mkdir()
        try:
            yield temporary
            temporary.rename(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        sync_folder(path.parent)
    except OSError as error:
        raise _no_folder(path, error, hint) from error
    except StorageError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        raise _no_folder(path, error.__cause__, hint) from error


def _no_folder(path: Path, error: OSError, hint: str) -> UsageError:
    if error.errno in _TAKEN and os.path.lexists(path):
        return UsageError(f"--out {path}: exists, and no run is ever overwritten", hint=hint)
    why = os.strerror(errno.ENOTDIR) if error.errno == errno.EEXIST else error.strerror  # a parent is a file
    return UsageError(f"--out {path}: can't be written: {why}", hint="name another folder")


def new_path(name: str) -> Path:
    """Where a new folder goes: ``reports/<UTC time>-NAME``, numbered where that is there already."""
    path = Path("reports") / f"{datetime.now(UTC).strftime('%Y%m%dT%H%M%SZ')}-{name}"
    numbered = (path.with_name(f"{path.name}-{number}") for number in range(2, 100))
    return path if not path.exists() else next(p for p in numbered if not p.exists())
