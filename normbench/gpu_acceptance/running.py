"""Runs one part as a program of its own, until its time is over: then it is asked to keep what it has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

GRACE_S = 20.0
"""For the reports of what was measured, after a part was asked to end."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a part ended.

    Args:
        name: The part's.
        seconds: What it took.
        code: Its exit code; None where it was not run.
        why: Why it did not end well: the error that it told, or that its time was over; empty where it did.
        is_interrupted: Whether somebody asked for the end of it all meanwhile.
    """

    name: str
    seconds: float = 0.0
    code: int | None = None
    why: str = ""
    is_interrupted: bool = False

    @property
    def is_well(self) -> bool:
        """Whether it ran to its end, and nothing was wrong there."""
        return self.code == 0 and not self.why


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

    The program has a session of its own, so that a terminal's Ctrl-C reaches it through here, once.

    Args:
        name: The part's.
        words: What to run.
        results: The file for what it prints; the log where None.
        log: What it says is added there.
        root: The folder that it runs in, and in which the package is found.
        most_s: Seconds after which it is asked to end.
        now: A monotonic clock.
    """
    began = now()
    with ExitStack() as stack:
        said = stack.enter_context(log.open("ab"))
        said.write(f"\n$ python -m {' '.join(words)}\n".encode())
        said.flush()
        start = said.tell()
        printed: IO[bytes] = said if results is None else stack.enter_context(results.open("wb"))
        process = subprocess.Popen(
            [sys.executable, "-m", *words],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=said,
            cwd=root,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(_paths(root)), "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
        why, is_interrupted = _waited_for(process, most_s)
    return Ending(
        name=name,
        seconds=now() - began,
        code=process.returncode,
        why=why or ("" if process.returncode == 0 else _last_error(log, start)),
        is_interrupted=is_interrupted,
    )


def _paths(root: Path) -> list[str]:
    return [str(root), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]


def _waited_for(process: subprocess.Popen[bytes], most_s: float) -> tuple[str, bool]:
    """Why it was asked to end, if it was, and whether somebody interrupted it all."""
    try:
        process.wait(most_s)
    except subprocess.TimeoutExpired:
        _end(process)
        return f"its {most_s:.0f} s were over: it kept what it had", False
    except KeyboardInterrupt:
        _end(process)
        return "interrupted", True
    return "", False


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask a program to end; what still runs after a while, or after another Ctrl-C, is killed with all it started."""
    process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
        process.wait(GRACE_S)
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_error(log: Path, start: int) -> str:
    """The last error that was said since ``start``, or what was said last."""
    with log.open("rb") as file:
        file.seek(start)
        said = [line.strip() for line in file.read().decode(errors="replace").split("\n") if line.strip()]
    errors = [line for line in said if line.startswith("error: ")]  # a hint may follow
    return next(reversed(errors or said), "it said nothing")
