"""Runs one part as a program of its own until it ends, or until its time is over: then it is asked to keep what it has."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

GRACE_S = 20.0
"""For the reports of what was measured, after a part was asked to end."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a part ended.

    Args:
        name: The part's.
        seconds: What it took.
        code: Its exit code; None where it was not run.
        why: What there is to say of it: the last line of its messages, or why it did not run; empty where it is done.
    """

    name: str
    seconds: float
    code: int | None
    why: str = ""


def run(
    name: str,
    words: Sequence[str],
    *,
    results: Path | None,
    log: Path,
    root: Path,
    most_s: float,
    now: Callable[[], float] = time.monotonic,
) -> Ending:
    """Run ``python -m`` with some words.

    Args:
        name: The part's.
        words: What to run.
        results: The file for what it prints; the log where None.
        log: What it says is added there.
        root: The folder that it runs in, and in which the package is found.
        most_s: Seconds after which it is asked to end.
        now: A monotonic clock.

    Raises:
        KeyboardInterrupt: Somebody asked for the end of it all; the part has ended, with what it had.
    """
    began = now()
    with contextlib.ExitStack() as stack:
        said = stack.enter_context(log.open("ab"))
        said.write(f"\n$ python -m {' '.join(words)}\n".encode())
        said.flush()
        at = said.tell()
        printed: IO[bytes] = said if results is None else stack.enter_context(results.open("wb"))
        process = subprocess.Popen(
            [sys.executable, "-m", *words],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=said,
            cwd=root,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(_paths(root)), "PYTHONUNBUFFERED": "1"},
        )
        is_over = _ended(process, most_s)
    return Ending(
        name=name,
        seconds=now() - began,
        code=process.returncode,
        why=_why(process.returncode, _last_line(log, at), most_s if is_over else None),
    )


def _paths(root: Path) -> list[str]:
    return [str(root), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]


def _ended(process: subprocess.Popen[bytes], most_s: float) -> bool:
    """Wait until it has ended; whether its time was over."""
    try:
        process.wait(most_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        _end(process)
        return True
    except KeyboardInterrupt:  # the terminal has sent it to the part as well
        _end(process)
        raise
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a program that was asked to end; what then still runs, and all that it started, is killed."""
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        process.kill()
        process.wait()


def _why(code: int, last: str, over_s: float | None) -> str:
    if over_s is not None:
        return f"ended after {over_s:.0f} s, with what it had"
    return "" if code == 0 else last


def _last_line(log: Path, start: int) -> str:
    """The last error that was said since ``start``, or what was said last."""
    with log.open("rb") as file:
        file.seek(start)
        lines = file.read().decode(errors="replace").split("\n")
    said = [line.strip() for line in lines if line.strip()]
    errors = [line for line in said if line.startswith("error: ")]  # a hint may follow
    return next(reversed(errors or said), "it said nothing")
