"""Lines by what the floor reaches, and by how far identical things seem to differ."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from normbench import traffic, units
from normbench.gpu_acceptance import limits
from normbench.gpu_acceptance.evidence import Evidence
from normbench.gpu_acceptance.lines import Found, NotShown
from normbench.records import Cache, Cell, DeviceInfo, Flag, Op

DOUBTFUL = (Flag.QUEUE_NOT_HELD, Flag.SHARED_DEVICE)
"""What no time of the device alone has."""

_FAR_BEYOND = 4
"""So many times the cache and more is what a call goes through where memory alone decides."""


def bandwidth_of_the_largest(evidence: Evidence) -> Found:
    """What the floor reaches in the largest cold cell, of the computed peak; the pass counts in which it is less."""
    shares = dict(_shares_of_peak(evidence))
    sizes = {cell: cell.elements * cell.dtype.itemsize for cell in shares}
    largest = max(sizes.values())
    worst = min((cell for cell in shares if sizes[cell] == largest), key=lambda cell: shares[cell])
    share, peak = shares[worst], _peak(evidence)
    figure = f"{units.percent(share)} of {units.bandwidth(peak)} ({units.bandwidth(share * peak)} at {worst})"
    return Found(figure=figure, holds=share >= limits.LEAST_OF_PEAK)


def no_bandwidth_beyond_the_peak(evidence: Evidence) -> Found:
    """The most that the floor reaches in any cold cell that is far larger than the cache.

    What a smaller one writes may still lie in the cache when its call has ended: bytes ÷ time is no bandwidth of
    memory then, and is told without being judged.
    """
    shares = dict(_shares_of_peak(evidence))
    cache = _device(evidence).cache_bytes
    if cache is None:
        raise NotShown("the device does not tell the size of its cache")
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
    least = [test.least_difference for test in tests]
    assert all(map(isfinite, least)), "an interval has ends"
    worst = tests[least.index(max(least))]
    against = "a fresh copy" if worst.fresh else "itself"
    figure = f"{units.percent(max(least))} at most of {len(tests)} ({worst.cell} against {against})"
    return Found(figure=figure, holds=max(least) < limits.NOISE)


def _shares_of_peak(evidence: Evidence) -> Iterator[tuple[Cell, float]]:
    """The floor's effective bandwidth in each cold cell that it has a time in, as a share of the computed peak."""
    peak, is_any = _peak(evidence), False
    for run in evidence.sweeps.values():
        for result in run.results:
            cell = result.case.cell
            if result.case.implementation != run.header.plan.floor or cell.cache is not Cache.COLD:
                continue
            if result.timing is not None and not set(DOUBTFUL) & set(result.flags):
                is_any = True
                yield cell, traffic.floor_bytes(Op.COPY, cell) / result.timing.time_s.value / peak
    if not is_any:
        raise NotShown("the floor has no time of the device alone in a cold cell")


def _device(evidence: Evidence) -> DeviceInfo:
    """The one that all sweeps ran on."""
    devices = list(dict.fromkeys(run.header.device for run in evidence.sweeps.values()))
    if len(devices) != 1:
        raise NotShown("the sweeps ran on different devices" if devices else "no sweep can be read")
    if devices[0].kind != "cuda":
        raise NotShown(f"the sweeps ran on {devices[0].name}")
    return devices[0]


def _peak(evidence: Evidence) -> float:
    peak = _device(evidence).peak_bytes_per_s
    if peak is None:
        raise NotShown("this torch does not tell the memory's clock and width")
    return peak
