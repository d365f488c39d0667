"""The sentences on how far a run can be trusted: its noise floor, its bandwidth, throttling, where its time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from normbench import bounds, units
from normbench.records import AgainstItself, Case, Cell, Flag, Run, Spent
from normbench.reporters import statements


def noise_notes(run: Run) -> list[str]:
    """What each A/A test along the way says, and whether it exceeds the margin."""
    margin = run.header.plan.precision.margin
    return [
        noise_note(f"{noise.cell.dtype} at {noise.cell.size} {noise.cell.mode}", noise, margin) for noise in run.noise
    ]


def noise_note(where: str, noise: AgainstItself, margin: float) -> str:
    """What one A/A test says: where, and which differences can't be told apart."""
    low, high = noise.ratio.low, noise.ratio.high
    assert low is not None
    assert high is not None
    text = (
        f"Noise floor, {where}: "
        f"{noise.implementation} against itself gives {noise.ratio.value:.4f} ({low:.4f} to {high:.4f}): "
        f"differences below {units.percent(noise.least_difference)} cannot be told apart here"
    )
    if noise.is_biased:
        text += ". The interval misses 1: something disturbs one of two equal things; doubt the smallest effects"
    elif noise.least_difference > margin:
        text += f". That exceeds the margin of {units.percent(margin)}: a quieter machine or more time would help"
    return f"{text}."


def throttled_note(run: Run) -> str | None:
    """How much of the run was taken while the GPU said that it ran throttled; None where nothing was."""
    timed = [result.timing for result in run.results if result.timing is not None]
    throttled, samples = sum(t.throttled_samples for t in timed), sum(t.samples for t in timed)
    if not throttled:
        return None
    return (
        f"{throttled} of {samples} samples were taken in rounds in which the GPU ran throttled. They are kept and "
        "flagged: ratios are of pairs of one round, times are longer than on a cool device."
    )


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What an implementation reaches of the floor's bandwidth at the largest cell of a kind."""

    cell: Cell
    floor_bytes_per_s: float
    shares: tuple[tuple[str, float], ...]


def reaches(run: Run, flags: Mapping[Case, Sequence[Flag]]) -> list[Reach]:
    """For each kind of cell the largest one, where bandwidth is what its times show; others are left out."""
    found = []
    for bandwidth in bounds.bandwidths(run):
        own = {
            r.case.implementation: r
            for r in run.results_by_cell[bandwidth.cell]
            if not bounds.NOT_BANDWIDTH & set(flags[r.case])
        }
        if run.header.plan.floor not in own:
            continue
        shares = [
            (name, reached / bandwidth.floor_bytes_per_s)
            for name, result in own.items()
            if name != run.header.plan.floor and (reached := bounds.effective_bandwidth(run, result))
        ]
        found.append(Reach(cell=bandwidth.cell, floor_bytes_per_s=bandwidth.floor_bytes_per_s, shares=tuple(shares)))
    return found


def limits_note(run: Run, flags: Mapping[Case, Sequence[Flag]]) -> str | None:
    """Which results say nothing about bandwidth, and why; None where all do."""
    timed = [result.case for result in run.results if result.timing is not None]
    parts = []
    for flag, what in ((Flag.LAUNCH_BOUND, "launch-bound"), (Flag.CACHE_RESIDENT, "cache-resident")):
        cases = [case for case in timed if flag in flags[case]]
        if cases:
            places = statements.where(run.header.plan, list(dict.fromkeys(case.cell for case in cases)))
            shown = f" ({'; '.join(places)})" if len(places) <= statements.MOST_PLACES else ""
            parts.append(f"{len(cases)} of {len(timed)} results are {what}{shown}")
    if not parts:
        return None
    return f"{units.join(parts)}: they say nothing about memory bandwidth."


def time_note(spent: Spent, what: str = "The run") -> str | None:
    """Where the time of a run, or of what is named, went; None where nothing is known."""
    if not spent.elapsed_s:
        return None
    apart = spent.elapsed_s - spent.compiling_s - spent.profiling_s
    share = spent.measuring_s / apart if apart > 0 else 0.0
    parts = {
        "in timed calls": spent.timed_s,
        "warming": spent.warming_s,
        "in fresh forwards": spent.preparing_s,
        "in held queues": spent.holding_s,
        "flushing caches": spent.flushing_s,
        "allocating": spent.placing_s,
        "building and checking": spent.checking_s,
        "starting processes": spent.starting_s,
        "profiling": spent.profiling_s,
        "compiling": spent.compiling_s,
    }
    without = "compiling and profiling" if spent.profiling_s else "compiling"
    shown = ", ".join(f"{units.duration(seconds)} {what}" for what, seconds in parts.items() if seconds)
    return (
        f"{what} took {units.duration(spent.elapsed_s)}: {shown}. Without {without}, {units.percent(share)} of it "
        "went into timed calls and what has to be called for them."
    )
