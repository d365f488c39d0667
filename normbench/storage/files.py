"""Files and folders: written as a whole or not at all, never over another run, with errors that name them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from normbench.errors import StorageError, UsageError


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
    """Write a text file as a whole or not at all."""
    write_parts(path, [text])


def write_parts(path: Path, parts: Iterable[str]) -> None:
    """Write a text file, a part at a time, as a whole or not at all; ``parts`` may be made from the old one."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        temporary.unlink(missing_ok=True)  # of a killed process; a link in its place would be written through
        write_through(temporary, "x", parts)
        temporary.replace(path)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def unwritable(path: Path, error: OSError) -> StorageError:
    """What is said of a file that can't be written."""
    return StorageError(f"{path}: can't be written: {error.strerror}")


def write_through(path: Path, mode: str, parts: Iterable[str]) -> None:
    """Write text, which is on the disk when this returns."""
    with path.open(mode, encoding="utf-8", newline="") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file, in a folder that is made where it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise unwritable(path, error) from error


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
    except FileExistsError as error:
        raise UsageError(f"--out {path}: exists, and no run is ever overwritten", hint=hint) from error
    except OSError as error:
        raise UsageError(f"--out {path}: can't be written: {error.strerror}", hint="name another folder") from error


def new_path(name: str) -> Path:
    """Where a new folder goes: ``reports/<UTC time>-NAME``, numbered where that is there already."""
    path = Path("reports") / f"{datetime.now(UTC).strftime('%Y%m%dT%H%M%SZ')}-{name}"
    numbered = (path.with_name(f"{path.name}-{number}") for number in range(2, 100))
    return path if not path.exists() else next(p for p in numbered if not p.exists())
