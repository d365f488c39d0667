"""What the command runs: each part a program of its own, with the time that it may take at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Kind(StrEnum):
    """What a part is, and with that what it leaves."""

    DOCTOR = "doctor"
    TESTS = "tests"
    SWEEP = "sweep"
    PROFILE = "profile"
    STEP = "step"


_FILES = {Kind.DOCTOR: ".json", Kind.TESTS: ".xml"}


@dataclass(frozen=True, kw_only=True)
class Part:
    """One program.

    Args:
        kind: What it is.
        name: What it leaves is called so: a run folder, or a file.
        options: Of its command, the device and the place of what it leaves apart.
        most_s: Seconds after which it is asked to end, and to keep what it has.
    """

    kind: Kind
    name: str
    options: tuple[str, ...] = ()
    most_s: float

    @property
    def is_folder(self) -> bool:
        """Whether it leaves a run folder rather than a file."""
        return self.kind not in _FILES

    def path(self, out: Path) -> Path:
        """What it leaves below ``out``."""
        return out / f"{self.name}{_FILES.get(self.kind, '')}"

    def words(self, out: Path, device: str, tests: Sequence[str]) -> tuple[str, ...]:
        """What Python is told to run, ``-m`` left out.

        Args:
            out: Where to.
            device: On which device.
            tests: What pytest is told beside the marker: where the tests lie.
        """
        if self.kind is Kind.TESTS:
            how = ("-q", "-rs", "--continue-on-collection-errors", f"--junitxml={self.path(out)}")
            return ("pytest", "-m", "gpu", *how, *self.options, *tests)
        there = ("--out", str(self.path(out))) if self.is_folder else ("--json",)
        return ("normbench", str(self.kind), *self.options, "--device", device, *there)


def _sweep(name: str, options: str, most_s: float) -> Part:
    return Part(kind=Kind.SWEEP, name=f"sweep-{name}", options=tuple(options.split()), most_s=most_s)


def _profile(name: str, options: str, most_s: float) -> Part:
    return Part(kind=Kind.PROFILE, name=f"profile{name}", options=tuple(options.split()), most_s=most_s)


_PASSES = "--modes forward backward --max-seconds 1.5"
_LARGE = "--widths 4096 --rows 32768 --dtype bf16 --caches cold"

ON_A_GPU = (
    Part(kind=Kind.DOCTOR, name="doctor", options=("--max-seconds", "2"), most_s=45),
    Part(kind=Kind.TESTS, name="tests", most_s=150),
    _sweep("bf16", f"--widths 256:16384:x2 --rows 4096 --dtype bf16 --caches cold {_PASSES}", 95),
    _sweep("bf16-large", f"{_LARGE} --modes forward backward --max-seconds 4", 40),
    _profile("", f"{_LARGE} --modes forward backward --no-counters", 45),
    _sweep("fp16-fp32", f"--widths 1024 4096 16384 --rows 4096 --dtypes fp16 fp32 --caches cold {_PASSES}", 80),
    _sweep("bf16-warm", f"--widths 1024 4096 16384 --rows 4096 --dtype bf16 --caches warm {_PASSES}", 50),
    Part(kind=Kind.STEP, name="step", options=("--preset", "small", "--max-seconds", "6"), most_s=55),
    _profile("-counted", f"{_LARGE} --modes forward --impls eager-rmsnorm nn-rmsnorm --counters", 70),
)
"""In the order of what they are worth: where the time is over, the last ones go without."""

_FEWER = "--impls eager-rmsnorm nn-rmsnorm --max-seconds 0.5"
_FEW = f"{_FEWER} --processes 1"

REHEARSED = (
    Part(kind=Kind.DOCTOR, name="doctor", options=("--max-seconds", "0.3"), most_s=120),
    Part(kind=Kind.TESTS, name="tests", options=("--rehearse",), most_s=240),
    _sweep("bf16", "--widths 64 256 --rows 64 --dtype bf16 --caches cold --max-seconds 0.5 --processes 1", 150),
    _sweep("bf16-large", f"--widths 256 --rows 512 --dtype bf16 {_FEW}", 60),
    _profile("", f"--widths 1024 --rows 64 --dtype bf16 {_FEWER}", 90),
    _sweep("fp16-fp32", f"--widths 64 --rows 64 --dtypes fp16 fp32 {_FEW}", 60),
    _sweep("bf16-warm", f"--widths 64 --rows 64 --dtype bf16 --caches warm {_FEW}", 60),
    Part(
        kind=Kind.STEP,
        name="step",
        options=tuple(f"--widths 64 --layers 1 --batch 2 --context 64 --quick {_FEWER}".split()),
        most_s=120,
    ),
)
"""The same on a CPU, as small as can be: whether every part runs to its end, and nothing of a GPU."""
