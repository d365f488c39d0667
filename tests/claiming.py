"""Other processes that claim a device: real ones, of this user or another, until they are told to end or killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

_CODE = """
import os, sys
from pathlib import Path
from normbench import locks
at, device, what, share, user = sys.argv[1:]
if int(user):
    os.setgroups([]); os.setgid(int(user)); os.setuid(int(user))
os.umask(0o077)
try:
    claim = locks.claim(device, what, share=share == "share", at=Path(at))
except locks.TakenError as taken:
    print("taken by", *(holder.pid for holder in taken.holders), flush=True)
    sys.exit()
print("holds", flush=True)
sys.stdin.read()
claim.release()
"""


class Other:
    """A process that tries to claim a device."""

    def __init__(self, at: Path, device: str, what: str, *, share: bool, user: int) -> None:
        words = [sys.executable, "-c", _CODE, str(at), device, what, "share" if share else "", str(user)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid

    @cached_property
    def said(self) -> str:
        """What came of it; waited for."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        """End it by SIGKILL: nothing of it can tidy up."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        """Let it give the device back, and end."""
        self._process.communicate()


@contextmanager
def other(
    at: Path, device: str = "cpu", what: str = "sweep", *, share: bool = False, user: int = 0
) -> Iterator[Other]:
    """Another process that claims a device, as another user where one is given."""
    process = Other(at, device, what, share=share, user=user)
    try:
        assert process.said
        yield process
    finally:
        process.end()
