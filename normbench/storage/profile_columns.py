"""The columns of ``traffic.csv`` and ``kernels.csv``: what a profile becomes, and how it is read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from normbench.records import Case, CaseProfile, Cell, KernelTime, OpTraffic, Run, RunHeader
from normbench.storage.columns import CELL, Row, Values, as_row, cell, cell_values
from normbench.storage.table import FieldError
from normbench.traffic import floor_bytes

TRAFFIC: dict[str, str] = {
    **CELL,
    "implementation": "`provider-op`",
    "floor_bytes": "the least bytes that this formula must move in this mode",
    "op_bytes": "what its ops, or generated kernels, read and write by their tensors' shapes; empty if not counted",
    "amplification": "`op_bytes` ÷ `floor_bytes`",
    "ops": "ops or generated kernels that were counted; on a CPU several of these may become one function",
    "launches": "kernels (on a GPU) or ops (on a CPU) that the profiler saw in one call; empty without a profile",
    "profiled_s": "their time together, in seconds",
    "dram_read_bytes": "read from memory by hardware counters; empty where they can't be read",
    "dram_written_bytes": "written to memory by hardware counters",
    "l2_bytes": "through the L2 cache by hardware counters",
    "saved_bytes": "kept for the backward and for nothing else",
    "alive_bytes": "kept for the backward, and alive anyway: inputs, parameters, the output",
    "peak_bytes": "the most that was allocated at once above the inputs",
    "net_bytes": "net allocation: allocated and not freed again in one call; no traffic",
    "ops_reason": "why there are no op bytes",
    "kernels_reason": "why there is no profile",
    "counted_reason": "why there are no counted bytes",
    "findings": "what ran in the timed region and has no place there, separated by `;`",
    "trace": "the trace's file below `traces/`",
}

KERNELS: dict[str, str] = {
    **CELL,
    "implementation": "`provider-op`",
    "source": "`count` (op bytes by shapes) or `profile` (times by torch.profiler): two passes, never mixed",
    "position": "position in its list: of a count the order of appearance, of a profile the longest first",
    "name": "the op's or the kernel's name; of a generated kernel in a count, what was fused into it",
    "calls": "how often it runs in one call",
    "bytes": "what it reads and writes in these calls; empty where it can't be attributed",
    "read_bytes": "what of it is read; empty where only the sum is known",
    "written_bytes": "what of it is written; empty where only the sum is known",
    "time_s": "its seconds in one call; empty in a count",
    "share": "its share of the profile's time",
    "effective_bytes_per_s": "`bytes` ÷ `time_s`",
    "floor_share": "`effective_bytes_per_s` ÷ what the floor reached in the same cell's profile",
}

_CASE = TypeAdapter(Case)
_OP = TypeAdapter(OpTraffic)
_KERNEL = TypeAdapter(KernelTime)
_PROFILE = TypeAdapter(CaseProfile)
_COUNTED = ("dram_read_bytes", "dram_written_bytes", "l2_bytes")
_MEMORY = ("saved_bytes", "alive_bytes", "peak_bytes", "net_bytes")
_REASONS = ("ops_reason", "kernels_reason", "counted_reason")


@dataclass(frozen=True, kw_only=True)
class Kernels:
    """The rows of ``kernels.csv`` of one case, in their order."""

    ops: list[OpTraffic] = field(default_factory=list)
    times: list[KernelTime] = field(default_factory=list)


def traffic_rows(profiles: Iterable[CaseProfile], header: RunHeader) -> Iterator[Row]:
    """The rows of ``traffic.csv``."""
    return (as_row(traffic_values(profile, header)) for profile in profiles)


def kernel_rows(profiles: Sequence[CaseProfile], header: RunHeader) -> Iterator[Row]:
    """The rows of ``kernels.csv``."""
    reached = _floor_bandwidths(profiles, header)
    return (as_row(v) for profile in profiles for v in kernel_values(profile, reached.get(profile.case.cell)))


def _floor_bandwidths(profiles: Iterable[CaseProfile], header: RunHeader) -> dict[Cell, float]:
    """What the floor reached in each cell's profile, in bytes a second: in the same pass as the kernels."""
    return {
        p.case.cell: p.op_bytes / p.kernel_seconds
        for p in profiles
        if p.case.implementation == header.plan.floor and p.op_bytes and p.kernel_seconds
    }


def traffic_values(profile: CaseProfile, header: RunHeader) -> Values:
    """A row of ``traffic.csv``, numbers as numbers."""
    least = floor_bytes(header.info(profile.case.implementation).op, profile.case.cell)
    counted = profile.counted
    return {
        **cell_values(profile.case.cell),
        "implementation": profile.case.implementation,
        "floor_bytes": least,
        "op_bytes": profile.op_bytes,
        "amplification": None if profile.op_bytes is None else profile.op_bytes / least,
        "ops": sum(op.calls for op in profile.ops) if profile.ops else None,
        "launches": profile.launches,
        "profiled_s": profile.kernel_seconds,
        **{name: getattr(counted, name) if counted else None for name in _COUNTED},
        **{name: getattr(profile.memory, name) for name in _MEMORY},
        **{name: getattr(profile, name) for name in _REASONS},
        "findings": ";".join(profile.findings),
        "trace": profile.trace,
    }


def kernel_values(profile: CaseProfile, floor_bytes_per_s: float | None) -> Iterator[Values]:
    """The rows of ``kernels.csv`` of one case, numbers as numbers."""
    start = {**cell_values(profile.case.cell), "implementation": profile.case.implementation}
    for position, op in enumerate(profile.ops):
        yield {
            **start,
            "source": "count",
            "position": position,
            "name": op.name,
            "calls": op.calls,
            "bytes": op.bytes,
            "read_bytes": op.read_bytes,
            "written_bytes": op.written_bytes,
            **dict.fromkeys(("time_s", "share", "effective_bytes_per_s", "floor_share")),
        }
    total = profile.kernel_seconds or 0.0
    for position, kernel in enumerate(profile.kernels):
        reached = kernel.bytes / kernel.seconds if kernel.bytes and kernel.seconds else None
        yield {
            **start,
            "source": "profile",
            "position": position,
            "name": kernel.name,
            "calls": kernel.calls,
            "bytes": kernel.bytes,
            **dict.fromkeys(("read_bytes", "written_bytes")),
            "time_s": kernel.seconds,
            "share": kernel.seconds / total if total else None,
            "effective_bytes_per_s": reached,
            "floor_share": reached / floor_bytes_per_s if reached and floor_bytes_per_s else None,
        }


def profiles_of(run: Run) -> dict[str, list[Values]]:
    """What a run's profiles found, as a program reads it; nothing where it has none."""
    if not run.profiles:
        return {}
    reached = _floor_bandwidths(run.profiles, run.header)
    return {
        "traffic": [traffic_values(profile, run.header) for profile in run.profiles],
        "kernels": [v for p in run.profiles for v in kernel_values(p, reached.get(p.case.cell))],
    }


def kernel(row: Mapping[str, str]) -> tuple[Case, OpTraffic | KernelTime]:
    """A row of ``kernels.csv``; pydantic's ValidationError where a field is wrong."""
    case = _CASE.validate_python({"cell": cell(row), "implementation": row["implementation"]})
    if row["source"] == "count":
        names, absent = ("name", "calls", "bytes"), ("read_bytes", "written_bytes")
        return case, _OP.validate_python({**{n: row[n] for n in names}, **{n: row[n] or None for n in absent}})
    if row["source"] != "profile":
        raise FieldError("source", f"{row['source'][:40]!a} is neither count nor profile")
    found = {"name": row["name"], "calls": row["calls"], "seconds": row["time_s"], "bytes": row["bytes"] or None}
    return case, _KERNEL.validate_python(found)


def by_case(found: Iterable[tuple[Case, OpTraffic | KernelTime]]) -> dict[Case, Kernels]:
    """The rows of each case."""
    kernels: dict[Case, Kernels] = {}
    for case, one in found:
        own = kernels.setdefault(case, Kernels())
        if isinstance(one, OpTraffic):
            own.ops.append(one)
        else:
            own.times.append(one)
    return kernels


def profile(row: Mapping[str, str], kernels: Mapping[Case, Kernels]) -> CaseProfile:
    """A profile from its row and its case's kernels; pydantic's ValidationError where a field is wrong."""
    case = _CASE.validate_python({"cell": cell(row), "implementation": row["implementation"]})
    own = kernels.get(case, Kernels())
    counted = {name: row[name] or None for name in _COUNTED}
    return _PROFILE.validate_python(
        {
            "case": case,
            "ops": own.ops,
            "kernels": own.times,
            "counted": counted if any(counted.values()) else None,
            "memory": {name: row[name] or None for name in _MEMORY},
            **{name: row[name] or None for name in _REASONS},
            "findings": row["findings"].split(";") if row["findings"] else [],
            "trace": row["trace"] or None,
        }
    )
