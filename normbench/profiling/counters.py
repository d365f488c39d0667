"""Counted bytes: Nsight Compute, run as a program of its own on exactly one case. No time is ever taken from it.

The interface leaves room for AMD's rocprofv3: a counter is a name, a reason why it can't be used, and ``count``.
"""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from normbench import private
from normbench.legible import visible
from normbench.records import Ability, CountedTraffic

METRICS = ("dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum")
"""Read from memory, written to memory, and through the tag stage of the L2 cache, in bytes."""

RANGE = "normbench-timed"
"""The NVTX range around the call: kernels outside it are not counted."""

_SCALE = {"byte": 1, "Kbyte": 10**3, "Mbyte": 10**6, "Gbyte": 10**9, "Tbyte": 10**12}
_REFUSED = "ERR_NVGPUCTRPERM"
_PATIENCE_S = 300.0

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


class CounterError(Exception):
    """Nothing was counted: why, in one line, and what to do."""


class Counter(Protocol):
    """A way to read hardware counters."""

    name: str

    def ability(self) -> Ability:
        """Whether it can be used here, and if not, what to do."""

    def count(self, arguments: Sequence[str]) -> CountedTraffic:
        """What one call of a case moves; ``arguments`` are those of ``normbench.profiling.one_case``."""


@dataclass(frozen=True, kw_only=True)
class NsightCompute:
    """``ncu`` as a counter.

    Args:
        able: Whether it can be used here.
        run: Runs a command and returns what it printed; tests bring recorded output.
    """

    able: Ability
    run: Run
    name: str = "ncu"

    def ability(self) -> Ability:
        """See ``Counter.ability``."""
        return self.able

    def count(self, arguments: Sequence[str]) -> CountedTraffic:
        """See ``Counter.count``.

        Raises:
            CounterError: It was refused, failed, or saw no kernel.
        """
        done = self.run([*command(), sys.executable, "-m", "normbench.profiling.one_case", *arguments])
        if _REFUSED in done.stdout + done.stderr:
            raise CounterError(
                f"{_REFUSED}: the driver lets only administrators read counters: run as root, or load it with "
                "NVreg_RestrictProfilingToAdminUsers=0"
            )
        if done.returncode != 0:
            last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            said = visible(private.scrubbed(last))
            raise CounterError(f"ncu ended with exit code {done.returncode}: {said}")
        return parse(done.stdout)


def ability(
    kind: str,
    params: Path = Path("/proc/driver/nvidia/params"),
    devices: Path = Path("/sys/bus/event_source/devices"),
) -> Ability:
    """Whether hardware counters of memory traffic can be read, and if not, what to do.

    Args:
        kind: ``cpu`` or ``cuda``.
        params: What NVIDIA's driver says of itself.
        devices: Where the kernel lists its counters.
    """
    if kind == "cpu":
        nodes = [*devices.glob("uncore_imc*"), *devices.glob("amd_umc*")]
        if not nodes:
            return Ability(works=False, detail="this machine exposes no memory-controller counters (usual in VMs)")
        return Ability(
            works=True, detail=f"{len(nodes)} memory controllers can be counted, as root or with perf allowed"
        )
    if shutil.which("ncu") is None:
        return Ability(works=False, detail="Nsight Compute is not on the PATH: install it and add its folder")
    try:
        refused = "RmProfilingAdminOnly: 1" in params.read_text(encoding="utf-8")
    except OSError:
        refused = False
    if refused:
        return Ability(
            works=False,
            detail="the driver lets only administrators read them: run as root, or load it with "
            "NVreg_RestrictProfilingToAdminUsers=0",
        )
    return Ability(works=True, detail="Nsight Compute is there, and the driver does not refuse")


def run_program(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and keep what it prints."""
    return subprocess.run(list(words), capture_output=True, text=True, check=False, timeout=_PATIENCE_S)


def command() -> list[str]:
    """The part of the command that is Nsight Compute's.

    Caches are left as they are between its replays, so that the case's own cache state is what is counted, and
    clocks are not locked.
    """
    return [
        *("ncu", "--csv", "--page", "raw", "--metrics", ",".join(METRICS)),
        *("--nvtx", "--nvtx-include", f"{RANGE}/", "--cache-control", "none", "--clock-control", "none"),
        *("--target-processes", "application-only"),
    ]


def parse(text: str) -> CountedTraffic:
    """What ``ncu --csv --page raw`` printed, summed over kernels.

    Lines before the table (``==PROF==`` and the program's own) are passed over; the row below the header holds
    the units.

    Raises:
        CounterError: There is no table, a metric is missing, or no kernel was seen.
    """
    lines = text.splitlines()
    first = next((n for n, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        raise CounterError("ncu printed no table: it saw no kernel in the timed range")
    units, *rows = list(csv.DictReader(io.StringIO("\n".join(lines[first:]))))
    missing = [metric for metric in METRICS if metric not in units]
    if missing:
        raise CounterError(f"ncu did not report {', '.join(missing)}: this GPU or this version has no such metric")
    if not rows:
        raise CounterError("ncu saw no kernel in the timed range")
    read, written, through_l2 = (sum(_bytes(row[metric], units[metric]) for row in rows) for metric in METRICS)
    return CountedTraffic(dram_read_bytes=read, dram_written_bytes=written, l2_bytes=through_l2)


def _bytes(text: str, unit: str) -> int:
    try:
        return round(float(text.replace(",", "")) * _SCALE[unit])
    except (ValueError, KeyError) as error:
        raise CounterError(f"ncu reported {text!r} {unit!r}, which is no number of bytes") from error
