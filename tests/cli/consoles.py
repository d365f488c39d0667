"""The command as a process of its own: in any environment, with any streams, on a terminal of any width."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "normbench")
_COLOURS = ("COLORTERM", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "TERM", "TTY_")
_PLACES = ("COLUMNS", "LINES", "CI", "GITHUB_ACTIONS", "MPLBACKEND", "DISPLAY", "JPY_PARENT_PID")
_ENCODINGS = ("LC_", "LANG", "PYTHONIO", "PYTHONUTF8", "PYTHONCOERCE")
SEQUENCE = re.compile(r"\x1b\[([\d;?]*)([A-Za-z])")
"""A command of the terminal."""


def environment(changes: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without whatever says how to print, and with these."""
    apart = (*_COLOURS, *_PLACES, *_ENCODINGS)
    others = {name: value for name, value in os.environ.items() if not name.startswith(apart)}
    return {**others, **changes}


def piped(changes: Mapping[str, str], *words: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the command with both streams in pipes, unless ``options`` of ``subprocess.run`` say otherwise."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "check": False, "timeout": 120, **options}
    return subprocess.run([*COMMAND, *words], env=environment(changes), **given)


def in_shell(line: str, *words: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run a line of bash in which ``"$@"`` is the command with these words."""
    shell = ["bash", "-c", line, "bash", *COMMAND, *map(str, words)]
    return subprocess.run(shell, env=environment({}), capture_output=True, check=False, timeout=120)


def on_terminal(changes: Mapping[str, str], columns: int, *words: str | Path) -> tuple[int, str]:
    """Run the command on a terminal, and give its exit code and all that the terminal was sent."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    with subprocess.Popen([*COMMAND, *words], env=environment({"TERM": "xterm", **changes}), **streams) as process:  # type: ignore[call-overload]
        os.close(theirs)
        sent = b""
        while data := _read(ours):
            sent += data
        os.close(ours)
        code = process.wait(timeout=120)
    return code, sent.decode("utf-8").replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # nobody writes any more
        return b""
