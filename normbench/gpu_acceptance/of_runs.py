"""Lines by what the doctor, the sweeps, the profiles and the steps measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from normbench import traffic, units
from normbench.gpu_acceptance import limits
from normbench.gpu_acceptance.evidence import Evidence
from normbench.gpu_acceptance.lines import Found, NotShown
from normbench.records import Cache, CaseProfile, CaseResult, Cell, DeviceInfo, DType, Mode, Op, Status

SUMMARIES = 2
"""Files that are written when everything is judged."""
CHAIN, FUSED = "eager-rmsnorm", "nn-rmsnorm"

_FAR_BEYOND = 4
"""So many times the cache and more is what a call goes through where memory alone decides."""
_NEAR = 0.01
_SHOWN = 3


def bandwidth_of_the_largest(evidence: Evidence) -> Found:
    """What the floor reaches in the largest cold cell, of the computed peak."""
    shares = dict(_shares_of_peak(evidence))
    largest = max(shares, key=lambda cell: (traffic.touched_bytes(cell), cell.mode is Mode.FORWARD))
    share = shares[largest]
    peak = _peak(evidence)
    figure = f"{units.percent(share)} of {units.bandwidth(peak)} ({units.bandwidth(share * peak)} at {largest})"
    return Found(figure=figure, holds=share >= limits.LEAST_OF_PEAK)


def no_bandwidth_beyond_the_peak(evidence: Evidence) -> Found:
    """The most that the floor reaches in any cold cell that is far larger than the cache.

    What a smaller one writes may still lie in the cache when its call has ended: bytes ÷ time is no bandwidth of
    memory then, and is told without being judged.
    """
    shares = dict(_shares_of_peak(evidence))
    cache = _device(evidence).cache_bytes or 0
    beyond = {cell: share for cell, share in shares.items() if traffic.touched_bytes(cell) >= _FAR_BEYOND * cache}
    if not beyond:
        raise NotShown("no cell is far larger than the cache")
    worst = max(beyond, key=lambda cell: beyond[cell])
    figure = f"{units.percent(beyond[worst])} at most, at {worst}"
    smaller = {cell: share for cell, share in shares.items() if cell not in beyond}
    if smaller:
        most = max(smaller, key=lambda cell: smaller[cell])
        figure += f"; {units.percent(smaller[most])} at {most}, which the cache holds in part"
    return Found(figure=figure, holds=beyond[worst] <= limits.MOST_OF_PEAK)


def noise(evidence: Evidence) -> Found:
    """The least difference that each of the doctor's A/A tests can tell; the largest counts."""
    if evidence.diagnosis is None:
        raise NotShown(evidence.unread.get("doctor", "the doctor did not run"))
    tests = evidence.diagnosis.noise
    if not tests:
        raise NotShown("the doctor has no A/A test")
    worst = max(tests, key=lambda test: test.least_difference)
    against = "a fresh copy" if worst.fresh else "itself"
    figure = f"{units.percent(worst.least_difference)} at most of {len(tests)} ({worst.cell} against {against})"
    return Found(figure=figure, holds=worst.least_difference < limits.NOISE)


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
    of_bytes = _op_bytes(chain) / _op_bytes(fused)
    of_time = _seconds(evidence, chain.case.cell, CHAIN) / _seconds(evidence, fused.case.cell, FUSED)
    off = abs(of_time / of_bytes - 1)
    said = f"time {units.times(of_time)}, bytes {units.times(of_bytes)}: {units.percent(off)} off"
    return Found(figure=f"{said} (at {chain.case.cell})", holds=off <= limits.OFF_THE_BYTES)


def a_status_each(evidence: Evidence) -> Found:
    """How many cases the plans have, and how many lack a final status."""
    planned, final = _counted(evidence)
    if not planned:
        raise NotShown("no run can be read")
    missing = planned - final
    absent = [f"{name}: {why}" for name, why in evidence.unread.items() if name not in ("doctor", "tests")]
    figure = f"{final} of {planned} cases"
    return Found(figure="; ".join((figure, *absent)), holds=not missing and not absent)


def all_right(evidence: Evidence) -> Found:
    """How the cases ended: whatever does not run here is unsupported, and everything else ok."""
    statuses: Counter[Status] = Counter()
    bad = []
    for name, where, status, reason in _ended(evidence):
        statuses[status] += 1
        if status not in (Status.OK, Status.UNSUPPORTED):
            bad.append(f"{name} at {where} is {status}: {reason}")
    if not statuses:
        raise NotShown("no run can be read")
    more = [f"and {len(bad) - _SHOWN} more"] if len(bad) > _SHOWN else []
    figure = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    return Found(figure="; ".join((figure, *bad[:_SHOWN], *more)), holds=not bad)


def every_part(evidence: Evidence) -> Found:
    """How many parts of the command ended well, and what became of the others; those not begun show nothing."""
    if not evidence.endings:
        raise NotShown("no part ran")
    bad = [f"{ending.name}: {ending.why}" for ending in evidence.endings if not ending.is_well]
    figure = f"{len(evidence.endings) - len(bad)} of {len(evidence.endings)}"
    if bad and all(ending.is_well or ending.code is None for ending in evidence.endings):
        raise NotShown("; ".join((figure, *bad)))
    return Found(figure="; ".join((figure, *bad)), holds=not bad)


def output(evidence: Evidence) -> Found:
    """What the command leaves: what is packed, and the two files of its summary."""
    if evidence.left is None:
        raise NotShown("it is not packed")
    files = evidence.left.files + SUMMARIES
    figure = f"{units.size(evidence.left.bytes)} in {units.count(files, 'file')}"
    return Found(figure=figure, holds=evidence.left.bytes <= limits.MOST_BYTES and files <= limits.MOST_FILES)


def counted(evidence: Evidence) -> Found:
    """What hardware counters saw, as a multiple of the op bytes, or why they may not be read: told, not judged."""
    counting = [run for run in evidence.profiles.values() if run.header.plan.counters]
    profiles = [profile for run in counting for profile in run.profiles]
    if not profiles:
        raise NotShown("no profile with counters was made")
    return Found(figure="; ".join(dict.fromkeys(map(_counted_by_hardware, profiles))), holds=True)


def _counted_by_hardware(profile: CaseProfile) -> str:
    if profile.counted is None:
        return f"none: {profile.counted_reason}"
    dram, moved = profile.counted.dram_read_bytes + profile.counted.dram_written_bytes, profile.op_bytes
    of_ops = f", {units.times(dram / moved)} its op bytes" if moved else ""
    return f"{profile.case.implementation} {units.size(dram)}{of_ops}"


def _shares_of_peak(evidence: Evidence) -> Iterator[tuple[Cell, float]]:
    """The floor's effective bandwidth in each cold cell that it has a time in, as a share of the computed peak."""
    peak, is_any = _peak(evidence), False
    for run in evidence.sweeps.values():
        for result in run.results:
            cell = result.case.cell
            if result.case.implementation == run.header.plan.floor and cell.cache is Cache.COLD and result.timing:
                is_any = True
                yield cell, traffic.floor_bytes(Op.COPY, cell) / result.timing.time_s.value / peak
    if not is_any:
        raise NotShown("the floor has no time in a cold cell")


def _device(evidence: Evidence) -> DeviceInfo:
    if not evidence.sweeps:
        raise NotShown("no sweep can be read")
    return next(iter(evidence.sweeps.values())).header.device


def _peak(evidence: Evidence) -> float:
    peak = _device(evidence).peak_bytes_per_s
    if peak is None:
        raise NotShown("this torch does not tell the memory's clock and width")
    return peak


def _profile_of(evidence: Evidence, name: str) -> CaseProfile:
    """The profile of an implementation's forward in bf16."""
    for profile in (profile for run in evidence.profiles.values() for profile in run.profiles):
        case = profile.case
        if (case.implementation, case.cell.mode, case.cell.dtype) == (name, Mode.FORWARD, DType.BF16):
            return profile
    raise NotShown(f"there is no profile of {name}")


def _op_bytes(profile: CaseProfile) -> int:
    if profile.op_bytes is None:
        raise NotShown(f"{profile.case.implementation}: {profile.ops_reason or 'its bytes were not counted'}")
    return profile.op_bytes


def _seconds(evidence: Evidence, cell: Cell, name: str) -> float:
    """What a sweep, which has more placements than a profile, says of a case; a profile where none has it."""
    for result in (result for run in evidence.runs for result in run.results):
        if (result.case.cell, result.case.implementation) == (cell, name) and result.timing is not None:
            return result.timing.time_s.value
    raise NotShown(f"{name} has no time at {cell}")


def _counted(evidence: Evidence) -> tuple[int, int]:
    """Cases of the plans, and those with a final status."""
    planned = final = 0
    for run in evidence.runs:
        planned += len(list(run.header.plan.cells())) * len(run.header.plan.implementations)
        final += sum(result.status.is_final for result in run.results)
    for steps in evidence.steps.values():
        planned += len(steps.header.plan.cells) * len(steps.header.plan.implementations)
        final += sum(result.status.is_final for result in steps.results)
    return planned, final


def _ended(evidence: Evidence) -> Iterator[tuple[str, str, Status, str]]:
    """Implementation, place, status and reason of every case."""
    for result in (result for run in evidence.runs for result in run.results):
        yield _named(result)
    for one in (one for steps in evidence.steps.values() for one in steps.results):
        yield one.implementation, str(one.cell), one.status, one.reason or ""


def _named(result: CaseResult) -> tuple[str, str, Status, str]:
    return result.case.implementation, str(result.case.cell), result.status, result.reason or ""


def _is_near(value: float, wanted: float) -> bool:
    return abs(value / wanted - 1) <= _NEAR
