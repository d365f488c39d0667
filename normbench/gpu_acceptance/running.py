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

from normbench.interruption import end_with_parent
from normbench.private import scrubbed

_FRAME = " \r=!"
"""What pytest puts around its last lines."""

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
        is_cut: Whether it was not begun, or was asked to end: it shows nothing, and nothing of it broke.
        is_interrupted: Whether somebody asked for the end of it all meanwhile.
    """

    name: str
    seconds: float = 0.0
    code: int | None = None
    why: str = ""
    is_cut: bool = False
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
            preexec_fn=_listen,
        )
        asked, is_interrupted = _waited_for(process, most_s)
    return Ending(
        name=name,
        seconds=now() - began,
        code=process.returncode,
        why=scrubbed(_why(process.returncode, asked, log, start)),
        is_cut=bool(asked),
        is_interrupted=is_interrupted,
    )


def _listen() -> None:
    """In the part, before it is one: it hears an interrupt, also where whoever started all this ignores them.

    And where this program is gone, nobody ends it in time: then it is asked to end at once.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_parent(signal.SIGINT)


def _paths(root: Path) -> list[str]:
    return [str(root), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]


def _waited_for(process: subprocess.Popen[bytes], most_s: float) -> tuple[str, bool]:
    """Why it was asked to end, if it was, and whether somebody interrupted it all."""
    asked, is_interrupted = "", False
    try:
        process.wait(most_s)
    except subprocess.TimeoutExpired:
        asked = f"its {most_s:.0f} s were over"
    except KeyboardInterrupt:
        asked, is_interrupted = "interrupted", True
    if asked:
        _end(process)
    with suppress(ProcessLookupError, PermissionError):  # what it has started, and left
        os.killpg(process.pid, signal.SIGKILL)
    return asked, is_interrupted


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask a program to end; what still runs after a while, or after another Ctrl-C, is killed."""
    process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
        process.wait(GRACE_S)
        return
    process.kill()
    process.wait()


def _why(code: int, asked: str, log: Path, start: int) -> str:
    """What there is to say of how a part ended; nothing where it ended well."""
    killed = f"killed by {signal.Signals(-code).name}" if code < 0 else ""
    if asked:
        return f"{asked}: {killed}, what it had may be lost" if killed else f"{asked}: it kept what it had"
    return killed or ("" if code == 0 else _last_error(log, start))


def _last_error(log: Path, start: int) -> str:
    """The last error that was said since ``start``, or what was said last."""
    with log.open("rb") as file:
        file.seek(start)
        lines = [line.strip(_FRAME) for line in file.read().decode(errors="replace").split("\n")]
    said = [line for line in lines if line]
    errors = [line for line in said if line.startswith("error: ")]  # a hint may follow
    return next(reversed(errors or said), "it said nothing")
