"""The parts in turn, each within its own time and that of all."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import normbench
from normbench import units
from normbench.cli.progress import telling
from normbench.gpu_acceptance import packages, running
from normbench.gpu_acceptance.packing import LOG
from normbench.gpu_acceptance.parts import Kind, Part
from normbench.gpu_acceptance.running import Ending
from normbench.reporters.terminal import console

ROOT = Path(normbench.__file__).parents[1]
"""Where the package lies: a checkout, or among the installed ones."""
TESTS = Path("tests", "gpu")

LEAST_S = 5.0
"""With less left no part is begun."""


def in_turn(asked: Sequence[Part], folder: Path, device: str, deadline: float, *, quiet: bool) -> tuple[Ending, ...]:
    """How each part ended; what there is no time for any more is not begun, nor anything after an interrupt.

    Args:
        asked: The parts.
        folder: Where each leaves what it has.
        device: On which they run.
        deadline: When all must be over, by ``time.monotonic``.
        quiet: No progress.
    """
    endings: list[Ending] = []
    with telling(console(sys.stderr), quiet=quiet) as told:
        for number, part in enumerate(asked, 1):
            try:
                ending = _one(part, folder, device, deadline, endings, _counting(told, number, len(asked)))
            except KeyboardInterrupt:  # between two parts
                ending = Ending(name=part.name, why="interrupted", is_cut=True, is_interrupted=True)
            endings.append(ending)
    return tuple(endings)


def _counting(told: Callable[[str], None], number: int, count: int) -> Callable[[str], None]:
    return lambda what: told(f"[{number}/{count}] {what}")


def _one(
    part: Part,
    folder: Path,
    device: str,
    deadline: float,
    before: Sequence[Ending],
    told: Callable[[str], None],
) -> Ending:
    if any(ending.is_interrupted for ending in before):
        return Ending(name=part.name, why="not begun: interrupted before it", is_cut=True)
    if why := _unable(part):
        return Ending(name=part.name, why=why, is_cut=True)
    left_s = deadline - time.monotonic() - running.GRACE_S
    if left_s < LEAST_S:
        return Ending(name=part.name, why="not begun: the time was over", is_cut=True)
    told(f"{part.name}, at most {units.time_left(min(part.most_s, left_s))}; {units.time_left(left_s)} left for all")
    return running.run(
        part.name,
        part.words(folder, device, ("--gpu", device, str(TESTS))),
        results=part.path(folder) if part.kind is Kind.DOCTOR else None,
        log=folder / LOG,
        root=ROOT,
        most_s=min(part.most_s, left_s),
    )


def _unable(part: Part) -> str:
    """Why a part can't run here; empty where it can."""
    if part.kind is not Kind.TESTS:
        return ""
    if not (ROOT / TESTS).is_dir():
        return "not run: the tests are not installed; run it in a checkout"
    absent = [name for name in ("pytest", "hypothesis") if not packages.is_here(name)]
    return f"not run: {', '.join(absent)} not installed" if absent else ""
