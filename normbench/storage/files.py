"""Files and folders: written as a whole or not at all, never over another run, with errors that name them."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from normbench.errors import StorageError, UsageError


def write_text(path: Path, text: str) -> None:
    """Write a text file as a whole or not at all."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        write_through(temporary, "w", text)
        temporary.replace(path)
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> StorageError:
    """What is said of a file that can't be written."""
    return StorageError(f"{path}: can't be written: {error.strerror}")


def write_through(path: Path, mode: str, text: str) -> None:
    """Write text, which is on the disk when this returns."""
    with path.open(mode, encoding="utf-8", newline="") as file:
        file.write(text)
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
