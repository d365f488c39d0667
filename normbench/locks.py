"""Locks that end with their process: whose claim a device is, told to every user of the machine."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import secrets
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "NORMBENCH_LOCKS"
"""The environment variable that names the folder of all claims, where the usual one will not do."""

_USUAL = (Path("/run/lock"), Path("/tmp"))
_PATIENCE_S = 5.0
_MOST_BYTES = 4096
_WORD = re.compile(r"[a-z-]{1,20}")
_PROCESSES_SEEN = Path("/proc/self/ns/pid")


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A run that holds a device.

    Args:
        what: Its command, such as ``sweep``; ``run`` where it does not say.
        pid: Its process; None where that has no number here, since it runs in another container.
        since_s: When it began, in seconds since 1970.
    """

    what: str
    pid: int | None
    since_s: float


class TakenError(Exception):
    """Others hold the device; nothing was claimed."""

    def __init__(self, holders: tuple[Holder, ...]) -> None:
        super().__init__(holders)
        self.holders = holders


class Claim:
    """This process's claim on a device, until it is released or the process ends.

    A claim is a locked file of its own beside those of others, so that no user has to write into another's file:
    in a sticky folder Linux may not let them. A file that nobody has locked is what a killed process left.

    Args:
        folder: Where the claims on the device lie.
        file: This one's file.
        lock: Its descriptor, locked.
    """

    def __init__(self, folder: Path, file: Path, lock: int) -> None:
        self._folder, self._file, self._lock = folder, file, lock
        self._had_company = bool(self.others())
        self._changed_ns = self._last_change()

    def others(self) -> tuple[Holder, ...]:
        """Who else holds the device now."""
        return tuple(holder for _file, holder in _holders(self._folder) if _file != self._file)

    def had_company(self) -> bool:
        """Whether anybody else held the device at any time since this was last asked, or since the claim began.

        Who came and went between is seen by the folder, which a claim changes.
        """
        before, changed_ns = self._had_company, self._changed_ns
        self._changed_ns = self._last_change()
        self._had_company = bool(self.others())
        return before or self._had_company or self._changed_ns != changed_ns

    def release(self) -> None:
        """Give the device back."""
        with contextlib.suppress(OSError):  # whoever finds it later sees that nobody has locked it
            self._file.unlink()
        os.close(self._lock)

    def _last_change(self) -> int:
        try:
            return self._folder.stat().st_mtime_ns
        except OSError:
            return 0


def place() -> Path:
    """Where claims lie: a folder that everybody on the machine shares, whatever their TMPDIR."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    shared = (folder for folder in _USUAL if _is_for_everybody(folder))
    return next(shared, Path(tempfile.gettempdir())) / "normbench"


def claim(device: str, what: str, *, share: bool = False, at: Path | None = None) -> Claim:
    """Claim a device.

    Args:
        device: What tells it from all others, whatever number it has in this process.
        what: The command that wants it.
        share: Whether to claim it although others do.
        at: Where claims lie, unless at the usual place.

    Raises:
        TakenError: Others hold it.
        OSError: The place can't be written, or has no locks.
    """
    folder = (at or place()) / re.sub(r"[^A-Za-z0-9-]", "-", device)
    for path in (folder.parent, folder):
        _make_for_everybody(path)
    with _alone_in(folder):
        holders = tuple(holder for _file, holder in _holders(folder))
        if holders and not share:
            raise TakenError(holders)  # and nothing is changed, by which holders would think that they had company
        _clear(folder)
        return _written(folder, what)


def lock(descriptor: int) -> bool:
    """Lock an open file or folder for this process; whether nobody else has.

    The lock ends when the descriptor is closed, by the end of the process at the latest.

    Raises:
        OSError: There are no locks where it lies.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def open_folder(path: Path) -> int:
    """A descriptor of a folder, to lock it by."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def holder_of(descriptor: int) -> int | None:
    """The process that holds a file's or folder's lock, as far as the system tells."""
    inode = os.fstat(descriptor).st_ino
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    # 1: FLOCK  ADVISORY  WRITE 4711 fe:00:12345 0 EOF
    fields = [line.split() for line in lines]
    found = {f[4] for f in fields if len(f) == 8 and f[1] == "FLOCK" and f[5].endswith(f":{inode}")}
    pid = int(found.pop()) if len(found) == 1 else 0
    return pid if pid > 0 else None  # 0 and less are processes of other containers


def _is_for_everybody(folder: Path) -> bool:
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_ISVTX and mode & stat.S_IWOTH) and os.access(folder, os.W_OK)


def _make_for_everybody(path: Path) -> None:
    """Make a folder in which everybody makes files and nobody removes another's."""
    before = os.umask(0)
    try:
        path.mkdir(mode=0o1777)
    except FileExistsError:
        if path.is_symlink():  # somebody else's, to lead claims astray
            raise NotADirectoryError(errno.ENOTDIR, "is a link and no folder", str(path)) from None
    finally:
        os.umask(before)


@contextmanager
def _alone_in(
    folder: Path, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
) -> Iterator[None]:
    """A context in which nobody else looks for claims and makes one; it takes a millisecond."""
    descriptor = open_folder(folder)
    try:
        deadline = now() + _PATIENCE_S
        while not lock(descriptor):
            if now() > deadline:
                raise TimeoutError(None, f"another process has kept the folder locked for {_PATIENCE_S:.0f} s")
            sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _holders(folder: Path) -> list[tuple[Path, Holder]]:
    """The claims that somebody holds, the oldest first."""
    found = [(file, holder) for file in _files(folder) if (holder := _holder(file)) is not None]
    return sorted(found, key=lambda pair: pair[1].since_s)


def _files(folder: Path) -> list[Path]:
    try:
        return [file for file in folder.iterdir() if not file.name.startswith(".")]
    except OSError:
        return []


def _holder(file: Path) -> Holder | None:
    """Who holds this claim; None where nobody does, or it can't be read."""
    try:
        with _open(file) as descriptor:
            if not _is_locked(descriptor):
                return None
            return _parsed(os.read(descriptor, _MOST_BYTES), os.fstat(descriptor).st_mtime)
    except OSError:
        return None


@contextmanager
def _open(file: Path) -> Iterator[int]:
    """A claim to look at, which is no link, and no pipe that is waited for."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _parsed(text: bytes, written_s: float) -> Holder:
    """What a claim says, of which nothing is believed that it can't say: anybody may have written it."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    said = said if isinstance(said, dict) else {}
    what, pid = said.get("what"), said.get("pid")
    is_here = said.get("processes") == _process_numbers()
    return Holder(
        what=what if isinstance(what, str) and _WORD.fullmatch(what) else "run",
        pid=pid if isinstance(pid, int) and not isinstance(pid, bool) and pid > 0 and is_here else None,
        since_s=written_s,
    )


def _process_numbers() -> str | None:
    """What tells from which container's point of view processes are numbered."""
    try:
        return os.readlink(_PROCESSES_SEEN)  # noqa: PTH115 - no path but pid:[4026531836]
    except OSError:
        return None


def _written(folder: Path, what: str) -> Claim:
    """A new claim, which is locked before anybody can see it."""
    name = f"{os.getpid()}-{secrets.token_hex(4)}"
    hidden, file = folder / f".{name}", folder / name
    descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        os.fchmod(descriptor, 0o644)  # whatever the umask is
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        said = {"what": what, "pid": os.getpid(), "processes": _process_numbers()}
        os.write(descriptor, json.dumps(said).encode())
        hidden.rename(file)
        return Claim(folder, file, descriptor)
    except BaseException:
        with contextlib.suppress(OSError):
            hidden.unlink()
        os.close(descriptor)
        raise


def _clear(folder: Path) -> None:
    """Remove what killed processes left, as far as this user may. Nobody else is making a claim meanwhile."""
    for file in folder.iterdir():
        with contextlib.suppress(OSError), _open(file) as descriptor:
            if not _is_locked(descriptor):
                file.unlink()
