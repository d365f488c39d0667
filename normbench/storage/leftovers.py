"""What a killed process leaves half-written: under which names, and how it is removed."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

_NAME = re.compile(r"\.(?P<of>.+)\.(?P<process>\d{1,10})\.part")


def name_for(path: Path) -> Path:
    """Where this process writes what will be called ``path`` once it is whole."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def remove(folder: Path, of: str | None = None) -> None:
    """Remove what processes that are gone left half-written in a folder.

    Args:
        folder: The folder, and not those below it; one that is missing holds nothing.
        of: The name of what was to be written; any where it is None.
    """
    with suppress(OSError):
        for path in list(folder.iterdir()):
            found = _NAME.fullmatch(path.name)
            if found and of in (None, found["of"]) and _is_gone(int(found["process"])):
                _remove(path)


def remove_below(folder: Path) -> None:
    """The same in a folder and in all below it, whatever was to be written there."""
    for path, _folders, _files in os.walk(folder):
        remove(Path(path))


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _is_gone(process: int) -> bool:
    """Whether nobody writes there any more; what has this process's own number is of an earlier one."""
    if process == os.getpid():
        return True
    try:
        os.kill(process, 0)
    except PermissionError:  # somebody else's, but alive
        return False
    except (OSError, OverflowError):
        return True
    return False
