"""How a run was measured and on what, in sentences and rows that every report shows."""

from __future__ import annotations

from normbench import units
from normbench.records import Cache, DeviceInfo, Environment, Run, RunHeader

_CACHES = {
    Cache.WARM: "one untimed call of the same kind just before",
    Cache.COLD: "the last-level cache is overwritten before each call, outside the clock",
}

_OVER_PROCESSES = (
    "The placements are spread over {processes} fresh processes, since a process's code layout, hash seed and memory "
    "bias all of its placements. A process's ratio is the mean of the middle half of its placements; the estimate is "
    "the geometric mean over processes, its interval Student's t over processes (97 % quantile for a nominal 95 %, "
    "since measuring is looked at up to three times). There is no interval below five processes."
)
_OVER_PLACEMENTS = (
    "The estimate is the geometric mean over the middle half of the placements, its interval Student's t (97 % "
    "quantile for a nominal 95 %, since measuring is looked at up to three times). There is no interval below five "
    "placements. All in one process: another may find code, threads and memory in another state, which the intervals "
    "do not cover (--processes)."
)

_ADDING_APART = ("eager", "nn")
"""Providers whose residual add and norm are two steps, as the code that they stand for has them."""
_ADD_APART = "add in a kernel of their own, before the norm: against them shows what one kernel for both saves."


def sentences(run: Run) -> list[str]:
    """How it was measured."""
    plan = run.header.plan
    precision = plan.precision
    target, margin = units.percent(precision.target), units.percent(precision.margin)
    processes = _processes(run)
    caches = ", ".join(f"{cache} ({_CACHES[cache]})" for cache in plan.caches)
    return [
        *_operation(run),
        f"All implementations of a cell together, in {_placements(run)} (fresh buffers at new addresses; "
        f"{precision.placements} to {precision.looks[-1]} are asked for), each with rounds that time every "
        "implementation once in random order. A placement's ratio is the median over its rounds.",
        _OVER_PROCESSES.format(processes=processes) if processes else _OVER_PLACEMENTS,
        "Speedups are of pairs timed in the same round, so on a disturbed machine they differ from the quotient of "
        "the times.",
        f"Measuring stops when every speedup is known to ±{target}, or after {precision.max_seconds:g} s a cell.",
        f"faster and slower: the interval excludes 1 and the difference exceeds {margin}; same: the interval lies "
        f"within {margin}.",
        "Every result was compared with a float64 reference before it was timed; a wrong one has no time.",
        *_wall(run),
        f"Time is {_clock(run)}. The cache state is made before each sample: {caches}.",
        f"{plan.floor} is the floor: it moves the bytes that any {plan.operation.words} must move and computes "
        "nothing. × floor is the distance from it.",
        f"eps {plan.eps} for all, biased variance, gain and bias seeded (seed {plan.seed}), torch.compile mode "
        f"{plan.compile_mode}.",
    ]


def _operation(run: Run) -> list[str]:
    """What is computed, where that is more than a norm, and by whom in two steps."""
    if not run.header.plan.operation.adds:
        return []
    apart = [info.name for info in run.header.implementations if info.provider in _ADDING_APART]
    return [
        "Each implementation computes h = x + residual and y, the norm of h, and returns both, as a pre-norm block "
        "needs them. Backward it gets the gradients of both; that of x is the residual's as well.",
        *([f"{units.join(apart)} {_ADD_APART}"] if apart else []),
    ]


def _wall(run: Run) -> list[str]:
    if run.header.device.kind == "cpu":
        return []
    graph = "; graph: of one replay of the captured CUDA graph, back to back" if run.header.plan.graphs else ""
    return [f"wall: seconds of one call as an eager loop feels it{graph}."]


def _clock(run: Run) -> str:
    if run.header.device.kind == "cpu":
        return "wall time with the thread count below"
    return "device time by CUDA events while the stream is held until everything is queued, launch gaps not in it"


def _processes(run: Run) -> str | None:
    """Over how many processes the placements were spread, as it was; None where it was one."""
    counts = sorted({result.timing.processes for result in run.results if result.timing is not None})
    if not counts or counts == [1]:
        return None
    return f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"


def _placements(run: Run) -> str:
    """How many placements the times rest on, as it was."""
    counts = sorted(result.timing.placements for result in run.results if result.timing is not None)
    if not counts:
        return "no placement"
    return f"{counts[0]} to {counts[-1]} placements" if counts[0] != counts[-1] else f"{counts[0]} placements"


def environment(header: RunHeader) -> list[tuple[str, str]]:
    """What the run was made on, as name and value; what is absent is left out."""
    resumed = ((f"from {r.created_utc} on", "; ".join(r.differences) or "as at first") for r in header.resumed)
    return [*made(header.device, header.environment, header.created_utc), *resumed]


def made(device: DeviceInfo, environment: Environment, created_utc: str) -> list[tuple[str, str]]:
    """On what something was made, and when, as name and value."""
    return [*machine(device, environment), ("when (UTC)", created_utc)]


def machine(device: DeviceInfo, software: Environment) -> list[tuple[str, str]]:
    """A device and the software on it, as name and value; what is absent is left out."""
    rows: list[tuple[str, str | None]] = [
        ("device", device.name),
        ("memory", units.size(device.memory_bytes)),
        ("last-level cache", units.size(device.cache_bytes) if device.cache_bytes else None),
        ("compute capability", ".".join(map(str, device.capability)) if device.capability else None),
        (
            "bandwidth by its properties",
            units.bandwidth(device.peak_bytes_per_s) if device.peak_bytes_per_s else None,
        ),
        ("threads", str(device.threads) if device.threads else None),
        ("torch", software.torch),
        ("CUDA", software.cuda),
        ("driver", software.driver),
        ("Triton", software.triton),
        ("Python", software.python),
        ("platform", software.platform),
        *software.packages,
        ("normbench", software.normbench),
    ]
    return [(name, value) for name, value in rows if value is not None]
