"""Lines by bytes: counted op by op, by hardware, and against the time that they take."""

from __future__ import annotations

from normbench import traffic, units
from normbench.gpu_acceptance import limits
from normbench.gpu_acceptance.evidence import Evidence
from normbench.gpu_acceptance.lines import Found, NotPermitted, NotShown
from normbench.gpu_acceptance.of_floor import DOUBTFUL
from normbench.records import CaseProfile, Cell, DType, Mode, Op

CHAIN, FUSED = "eager-rmsnorm", "nn-rmsnorm"

_NEAR = 0.01


def bytes_of_the_chain(evidence: Evidence) -> Found:
    """Op bytes of the op chain in bf16, forward: of x's, and of the fused floor's."""
    profile = _profile_of(evidence, CHAIN)
    cell, moved = profile.case.cell, _op_bytes(profile)
    passes = moved / (cell.elements * cell.dtype.itemsize)
    of_floor = moved / traffic.floor_bytes(Op.RMSNORM, cell)
    figure = f"{units.times(passes, 4)} x's, {units.times(of_floor, 4)} the floor's ({moved:,} bytes at {cell})"
    holds = _is_near(passes, limits.CHAIN_PASSES) and _is_near(of_floor, limits.CHAIN_OF_FLOOR)
    return Found(figure=figure, holds=holds)


def time_by_the_bytes(evidence: Evidence) -> Found:
    """The op chain's time ÷ the fused kernel's, against the same ratio of their op bytes, in the same cell."""
    chain, fused = _profile_of(evidence, CHAIN), _profile_of(evidence, FUSED)
    cell = chain.case.cell
    if fused.case.cell != cell:
        raise NotShown(f"{CHAIN} and {FUSED} were not profiled in one cell")
    of_bytes = _op_bytes(chain) / _op_bytes(fused)
    of_time = _seconds(evidence, cell, CHAIN) / _seconds(evidence, cell, FUSED)
    off = abs(of_time / of_bytes - 1)
    said = f"time {units.times(of_time)}, bytes {units.times(of_bytes)}: {units.percent(off)} off"
    return Found(figure=f"{said} (at {cell})", holds=off <= limits.OFF_THE_BYTES)


def counted(evidence: Evidence) -> Found:
    """What hardware counters saw of memory, as a multiple of the op bytes."""
    counting = [run for run in evidence.profiles.values() if run.header.plan.counters]
    profiles = [profile for run in counting for profile in run.profiles]
    if not profiles:
        raise NotShown("no profile with counters was made")
    shares = {profile.case.implementation: _share_counted(profile) for profile in profiles}
    found = {name: share for name, share in shares.items() if share is not None}
    if not found:
        raise NotPermitted("; ".join(dict.fromkeys(profile.counted_reason or "no reason" for profile in profiles)))
    figure = ", ".join(f"{name} {units.times(share)}" for name, share in found.items())
    return Found(
        figure=figure, holds=all(limits.LEAST_COUNTED <= share <= limits.MOST_COUNTED for share in found.values())
    )


def _share_counted(profile: CaseProfile) -> float | None:
    """Bytes that moved between memory and cache ÷ op bytes; None where one of them was not counted."""
    if profile.counted is None or not profile.op_bytes:
        return None
    return (profile.counted.dram_read_bytes + profile.counted.dram_written_bytes) / profile.op_bytes


def _profile_of(evidence: Evidence, name: str) -> CaseProfile:
    """The profile of an implementation's forward in bf16."""
    for profile in (profile for run in evidence.profiles.values() for profile in run.profiles):
        case = profile.case
        if (case.implementation, case.cell.mode, case.cell.dtype) == (name, Mode.FORWARD, DType.BF16):
            return profile
    raise NotShown(f"there is no profile of {name}")


def _op_bytes(profile: CaseProfile) -> int:
    if not profile.op_bytes:
        raise NotShown(f"{profile.case.implementation}: {profile.ops_reason or 'its bytes were not counted'}")
    return profile.op_bytes


def _seconds(evidence: Evidence, cell: Cell, name: str) -> float:
    """What a sweep, which has more placements than a profile, says of a case; a profile where none has it."""
    for result in (result for run in evidence.runs for result in run.results):
        if (result.case.cell, result.case.implementation) != (cell, name) or set(DOUBTFUL) & set(result.flags):
            continue
        if result.timing is not None:
            return result.timing.time_s.value
    raise NotShown(f"{name} has no time of the device alone at {cell}")


def _is_near(value: float, wanted: float) -> bool:
    return abs(value / wanted - 1) <= _NEAR
