"""What the parts left, read again: runs, a diagnosis, the tests' report; what can't be read is absent, with its reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from normbench.errors import NormbenchError
from normbench.gpu_acceptance.parts import Kind, Part
from normbench.gpu_acceptance.tested import Tests, read_tests
from normbench.records import Diagnosis, Run, StepRun
from normbench.storage import diagnosis_of, load, load_steps

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything that lines are judged by.

    Args:
        on_gpu: Whether the device is one.
        diagnosis: The doctor's.
        sweeps: Of the norms, as far as they got.
        profiles: The same, with what was counted.
        steps: Of training steps.
        tests: What the tests marked ``gpu`` said.
        unread: Why what a part should have left is not among these, by the part's name.
    """

    on_gpu: bool
    diagnosis: Diagnosis | None = None
    sweeps: tuple[Run, ...] = ()
    profiles: tuple[Run, ...] = ()
    steps: tuple[StepRun, ...] = ()
    tests: Tests | None = None
    unread: tuple[tuple[str, str], ...] = ()

    @property
    def runs(self) -> tuple[Run, ...]:
        """Sweeps and profiles: whatever has results of cases."""
        return (*self.sweeps, *self.profiles)


def gathered(parts: Sequence[Part], out: Path, *, on_gpu: bool) -> Evidence:
    """What there is of the parts below ``out``.

    Args:
        parts: Those that were to run.
        out: Where each left its folder or file.
        on_gpu: Whether they ran on a GPU.
    """
    unread: list[tuple[str, str]] = []

    def read(kind: Kind, reader: Callable[[Path], T]) -> tuple[T, ...]:
        found = []
        for part in (part for part in parts if part.kind is kind):
            try:
                found.append(reader(part.path(out)))
            except (NormbenchError, OSError, ValueError) as error:
                unread.append((part.name, str(error)))
        return tuple(found)

    return Evidence(
        on_gpu=on_gpu,
        diagnosis=next(iter(read(Kind.DOCTOR, _diagnosis)), None),
        sweeps=read(Kind.SWEEP, load),
        profiles=read(Kind.PROFILE, load),
        steps=read(Kind.STEP, load_steps),
        tests=next(iter(read(Kind.TESTS, read_tests)), None),
        unread=tuple(unread),
    )


def _diagnosis(path: Path) -> Diagnosis:
    return diagnosis_of(json.loads(path.read_text(encoding="utf-8")))
