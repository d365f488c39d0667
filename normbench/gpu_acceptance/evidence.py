"""What the parts left, read again: runs, a diagnosis, the tests' report; what can't be read is absent, with why."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from normbench.errors import NormbenchError
from normbench.gpu_acceptance.packing import Left
from normbench.gpu_acceptance.parts import Kind, Part
from normbench.gpu_acceptance.running import Ending
from normbench.gpu_acceptance.tested import Tests, read_tests
from normbench.legible import one_line
from normbench.private import scrubbed
from normbench.records import Diagnosis, Run, StepRun
from normbench.storage import diagnosis_of, load, load_steps

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything that lines are judged by.

    Args:
        on_gpu: Whether the device is one.
        diagnosis: The doctor's.
        sweeps: Of the norms, as far as they got, by the name of their part; so are the others.
        profiles: The same, with what was counted.
        steps: Of training steps.
        tests: What the tests marked ``gpu`` said.
        unread: Why what a part should have left is not among these.
        endings: How the parts ended.
        left: What the command leaves, but for its summary; None where it is not packed yet.
    """

    on_gpu: bool
    diagnosis: Diagnosis | None = None
    sweeps: Mapping[str, Run] = field(default_factory=dict)
    profiles: Mapping[str, Run] = field(default_factory=dict)
    steps: Mapping[str, StepRun] = field(default_factory=dict)
    tests: Tests | None = None
    unread: Mapping[str, str] = field(default_factory=dict)
    endings: tuple[Ending, ...] = ()
    left: Left | None = None

    @property
    def runs(self) -> tuple[Run, ...]:
        """Sweeps and profiles: whatever has results of cases."""
        return (*self.sweeps.values(), *self.profiles.values())


def gathered(parts: Sequence[Part], out: Path, endings: Sequence[Ending], *, on_gpu: bool) -> Evidence:
    """What there is of the parts below ``out``.

    Args:
        parts: Those that were to run.
        out: Where each left its folder or file.
        endings: How they ended.
        on_gpu: Whether they ran on a GPU.
    """
    not_run = {ending.name: ending.why for ending in endings if ending.code is None}
    unread: dict[str, str] = {}

    def read(kind: Kind, reader: Callable[[Path], T]) -> dict[str, T]:
        found = {}
        for part in (part for part in parts if part.kind is kind):
            try:
                found[part.name] = reader(part.path(out))
            except (NormbenchError, OSError, ValueError) as error:
                unread[part.name] = not_run.get(part.name, scrubbed(one_line(str(error))))
        return found

    return Evidence(
        on_gpu=on_gpu,
        diagnosis=next(iter(read(Kind.DOCTOR, _diagnosis).values()), None),
        sweeps=read(Kind.SWEEP, load),
        profiles=read(Kind.PROFILE, load),
        steps=read(Kind.STEP, load_steps),
        tests=next(iter(read(Kind.TESTS, read_tests).values()), None),
        unread=unread,
        endings=tuple(endings),
    )


def _diagnosis(path: Path) -> Diagnosis:
    return diagnosis_of(json.loads(path.read_text(encoding="utf-8")))
