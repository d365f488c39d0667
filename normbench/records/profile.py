"""What profiling a case gives: bytes by op, kernels with their times, memory; each count has a field of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from normbench.records.cases import Case, is_below

MOST_BYTES = 2**63
"""No count of bytes reaches it."""


def check_bytes(counts: Iterable[int | None]) -> None:
    """A ValueError where one is no count of bytes; None is none."""
    for count in counts:
        if count is not None and not 0 <= count < MOST_BYTES:
            raise ValueError("a number of bytes is 0 or more, and below 2^63")


@dataclass(frozen=True, kw_only=True)
class OpTraffic:
    """What one op, or one generated kernel, reads and writes by the shapes of its tensors, in one call of a case.

    Args:
        name: The op's name, or what was fused into the kernel.
        calls: How often it occurs.
        bytes: All that it reads and writes in these calls.
        read_bytes: What of it is read; None where only the sum is known.
        written_bytes: What of it is written; None where only the sum is known.
    """

    name: str
    calls: int
    bytes: int
    read_bytes: int | None = None
    written_bytes: int | None = None

    def __post_init__(self) -> None:
        check_bytes((self.bytes, self.read_bytes, self.written_bytes))
        if not 1 <= self.calls < MOST_BYTES:
            raise ValueError("what was counted was called once at least")


@dataclass(frozen=True, kw_only=True)
class KernelTime:
    """A kernel (on a GPU) or an op (on a CPU) as the profiler saw it in one call of a case.

    Args:
        name: As the profiler calls it.
        calls: How often it ran.
        seconds: Its own time, children apart.
        bytes: Op bytes, where exactly one op of that name was counted; None where they can't be attributed.
    """

    name: str
    calls: float
    seconds: float
    bytes: int | None = None

    def __post_init__(self) -> None:
        check_bytes((self.bytes,))
        if not (0 < self.calls < inf and 0 <= self.seconds < inf):
            raise ValueError("what ran was called, and took a time")


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What a case needs beyond its inputs, in bytes; None where it could not be told.

    Args:
        saved_bytes: Kept for the backward and for nothing else.
        alive_bytes: Kept for the backward, and alive anyway: inputs, parameters, the output.
        peak_bytes: The most that was allocated at once above the inputs.
        net_bytes: What was allocated and not freed again: the net allocation, which is no traffic.
    """

    saved_bytes: int | None = None
    alive_bytes: int | None = None
    peak_bytes: int | None = None
    net_bytes: int | None = None

    def __post_init__(self) -> None:
        check_bytes((self.saved_bytes, self.alive_bytes, self.peak_bytes))
        check_bytes((None if self.net_bytes is None else abs(self.net_bytes),))


@dataclass(frozen=True, kw_only=True)
class CountedTraffic:
    """What hardware counters saw in one call, in bytes."""

    dram_read_bytes: int
    dram_written_bytes: int
    l2_bytes: int | None = None

    def __post_init__(self) -> None:
        check_bytes((self.dram_read_bytes, self.dram_written_bytes, self.l2_bytes))


@dataclass(frozen=True, kw_only=True)
class CaseProfile:
    """Everything that was found about a case. What could not be had is None or empty, with its reason.

    Args:
        case: Whose.
        ops: Op bytes, in order of first appearance.
        ops_reason: Why there are none.
        kernels: Times by the profiler.
        kernels_reason: Why there are none.
        counted: By hardware counters.
        counted_reason: Why not.
        memory: See there.
        findings: What was seen that should not be there, such as a gradient that is accumulated.
        trace: The name of its trace below ``traces/``; None where none was written.
    """

    case: Case
    ops: tuple[OpTraffic, ...] = ()
    ops_reason: str | None = None
    kernels: tuple[KernelTime, ...] = ()
    kernels_reason: str | None = None
    counted: CountedTraffic | None = None
    counted_reason: str | None = None
    memory: Memory = Memory()
    findings: tuple[str, ...] = ()
    trace: str | None = None

    def __post_init__(self) -> None:
        if self.trace is not None and not is_below(self.trace):
            raise ValueError("trace is the name of a file below traces/")

    @property
    def op_bytes(self) -> int | None:
        """What its ops read and write together; None where it was not counted."""
        return sum(op.bytes for op in self.ops) if self.ops else None

    @property
    def launches(self) -> float | None:
        """Kernels, or ops, that one call runs; None without a profile."""
        return sum(kernel.calls for kernel in self.kernels) if self.kernels else None

    @property
    def kernel_seconds(self) -> float | None:
        """Their time together; None without a profile."""
        return sum(kernel.seconds for kernel in self.kernels) if self.kernels else None
