"""A simulated device with known true times, to prove the statistics on: the engine is the real one, only time is not.

Run it as ``python -m benchmarks.simulation`` to make the table in ``docs/measurement.md``.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.stats import binomtest

from normbench import stats, verdict
from normbench.clock import Task, Timed
from normbench.measure import Measurer
from normbench.records import Cache, Outcome, Precision
from normbench.rounds import Batching, Rounds, Sampling

TRUE_S = 100e-6
"""True seconds of a call of the baseline."""

_BLOCK = 4096


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What disturbs the simulated machine. All factors are on times; sigmas are of their logarithms.

    Args:
        name: For the table.
        process: Sigma of each implementation's own bias in each process.
        placement: Sigma of each implementation's own bias in each placement.
        sample: Sigma of each sample's own noise.
        machine: Sigma of noise that all share, correlated over ``machine_s`` seconds.
        machine_s: Correlation time of the shared noise.
        bursts: Bursts a second in which something else runs.
        burst_s: Mean length of a burst.
        burst_factor: How much slower everything is in one.
        drop_after: Fraction of the time budget after which the clock speed drops to 85 %.
        slow_mode: Chance that a sample falls into a mode that is 15 % slower.
        slow_placement: The same, for a whole placement of the candidate.
        overhead_s: Fixed launch overhead of each call, of both.
    """

    name: str
    process: float = 0.0
    placement: float = 0.01
    sample: float = 0.02
    machine: float = 0.03
    machine_s: float = 0.05
    bursts: float = 0.0
    burst_s: float = 0.1
    burst_factor: float = 2.0
    drop_after: float | None = None
    slow_mode: float = 0.0
    slow_placement: float = 0.0
    overhead_s: float = 0.0


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(name="quiet", placement=0.003, sample=0.01, machine=0.01),
    Scenario(name="placement bias", placement=0.03),
    Scenario(name="autocorrelated noise", machine=0.15, machine_s=0.5),
    Scenario(name="bursts", bursts=2.0, burst_factor=3.0),
    Scenario(name="clock drops half way", drop_after=0.5),
    Scenario(name="bimodal samples", slow_mode=0.4),
    Scenario(name="launch overhead", overhead_s=50e-6),
    Scenario(
        name="everything", placement=0.03, machine=0.1, bursts=2.0, drop_after=0.5, slow_mode=0.3, overhead_s=20e-6
    ),
)
"""Scenarios that coverage is required in."""

PROCESS_BIAS = Scenario(name="process bias", process=0.015)
"""What fresh processes are for: code layout, hash seed and memory of a process bias all of its placements."""

WHOLE_PLACEMENTS = Scenario(name="bimodal placements", slow_placement=0.15)
"""A mode that one implementation falls into a whole placement at a time: shown, not required."""


@dataclass(frozen=True, kw_only=True)
class SimulatedTask(Task):
    """A task that takes ``seconds`` a call, its placement's bias included."""

    seconds: float = field(kw_only=True)


class SimulatedDevice:
    """A clock, and the time that passes: both of one simulated machine.

    Args:
        scenario: What disturbs it.
        budget_s: The cell's time budget, which ``drop_after`` is a fraction of.
        seed: Decides everything.
    """

    name = "simulated"

    def __init__(self, scenario: Scenario, budget_s: float, seed: int) -> None:
        self._scenario = scenario
        self._budget_s = budget_s
        self._random = np.random.default_rng(seed)
        self._now = 0.0
        self._machine = 0.0
        self._burst_until = 0.0
        self._next_burst = self._wait(scenario.bursts)
        self._normals: list[float] = []

    def now(self) -> float:
        """Simulated seconds since the beginning."""
        return self._now

    def process(self, true_seconds: Mapping[str, float]) -> Callable[[], list[Task]]:
        """A fresh process, in which each implementation has a bias of its own: makes its placements."""
        biased = {
            n: seconds * math.exp(self._scenario.process * self._normal()) for n, seconds in true_seconds.items()
        }
        return lambda: [self._task(name, seconds) for name, seconds in biased.items()]

    def time(self, task: Task, *, calls: int, cache: Cache) -> Timed:
        """What the clock shows for some calls, after one untimed call."""
        del cache
        assert isinstance(task, SimulatedTask)
        per_call = task.seconds * math.exp(self._noise(task)) + self._scenario.overhead_s
        seconds = per_call * calls * self._slowness()
        self._now += seconds + per_call
        return Timed(seconds=seconds, clock=self.name)

    def _task(self, name: str, seconds: float) -> SimulatedTask:
        bias = self._scenario.placement * self._normal()
        if name != "baseline" and self._random.random() < self._scenario.slow_placement:
            bias += math.log(1.15)
        return SimulatedTask(
            name=name, prepare=lambda: lambda: None, repeatable=True, seconds=seconds * math.exp(bias)
        )

    def _noise(self, task: SimulatedTask) -> float:
        scenario = self._scenario
        memory = math.exp(-task.seconds * 3 / scenario.machine_s)
        self._machine = memory * self._machine + scenario.machine * math.sqrt(1 - memory**2) * self._normal()
        mode = math.log(1.15) if scenario.slow_mode and self._random.random() < scenario.slow_mode else 0.0
        return scenario.sample * self._normal() + self._machine + mode

    def _slowness(self) -> float:
        scenario = self._scenario
        factor = 1.0
        if scenario.drop_after is not None and self._now > scenario.drop_after * self._budget_s:
            factor /= 0.85
        if self._now >= self._next_burst:
            self._burst_until = self._now + self._random.exponential(scenario.burst_s)
            self._next_burst = self._burst_until + self._wait(scenario.bursts)
        return factor * (scenario.burst_factor if self._now < self._burst_until else 1.0)

    def _wait(self, rate: float) -> float:
        return float(self._random.exponential(1 / rate)) if rate else math.inf

    def _normal(self) -> float:
        if not self._normals:
            self._normals = self._random.standard_normal(_BLOCK).tolist()
        return self._normals.pop()


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One simulated comparison."""

    covered: bool
    outcome: Outcome
    half_width: float
    placements: int


def compare_once(scenario: Scenario, ratio: float, precision: Precision, seed: int) -> Trial:
    """Measure a candidate that takes ``ratio`` times as long as the baseline, with the real engine."""
    device = SimulatedDevice(scenario, precision.max_seconds, seed)
    true = {"baseline": TRUE_S, "candidate": TRUE_S * ratio}
    sampling = Sampling(clock=device, cache=Cache.WARM, batching=Batching(), now=device.now)
    benches = [
        Rounds(sampling, device.process(true), baseline="baseline", seed=seed + process, process=process)
        for process in range(precision.processes)
    ]
    measurer = Measurer(precision=precision, baseline="baseline", floor="floor", now=device.now)
    measurement = measurer.measure(benches, true)
    baseline, candidate = (stats.of_implementation(measurement.samples, name) for name in true)
    speedup = stats.ratio_estimate(baseline, candidate)
    assert speedup is not None
    assert speedup.low is not None
    assert speedup.high is not None
    truth = (TRUE_S + scenario.overhead_s) / (TRUE_S * ratio + scenario.overhead_s)
    return Trial(
        covered=speedup.low <= truth <= speedup.high,
        outcome=verdict.judge(speedup, precision.margin)[0],
        half_width=stats.relative_half_width(speedup),
        placements=len(stats.placement_logs(baseline)),
    )


@dataclass(frozen=True, kw_only=True)
class Study:
    """What many trials of one scenario gave, as fractions of them."""

    scenario: Scenario
    processes: int
    trials: int
    coverage: float
    coverage_low: float
    coverage_high: float
    false_alarms: float
    found: float
    half_width: float
    placements: float


def summarise(scenario: Scenario, processes: int, same: Sequence[Trial], slower: Sequence[Trial]) -> Study:
    """Coverage and false alarms of identical implementations, and how often a true 5 % is found."""
    covered = sum(trial.covered for trial in same)
    interval = binomtest(covered, len(same)).proportion_ci(0.95, method="wilson")
    alarms = sum(trial.outcome in (Outcome.FASTER, Outcome.SLOWER) for trial in same)
    return Study(
        scenario=scenario,
        processes=processes,
        trials=len(same),
        coverage=covered / len(same),
        coverage_low=float(interval.low),
        coverage_high=float(interval.high),
        false_alarms=alarms / len(same),
        found=sum(trial.outcome is Outcome.SLOWER for trial in slower) / max(len(slower), 1),
        half_width=float(np.median([trial.half_width for trial in same])),
        placements=float(np.mean([trial.placements for trial in same])),
    )


def study(
    scenario: Scenario, trials: int, precision: Precision, *, slower_trials: int | None = None, workers: int = 1
) -> Study:
    """Many simulated comparisons of one scenario; the same arguments give the same result."""
    same = _many(scenario, 1.0, precision, range(trials), workers)
    count = trials if slower_trials is None else slower_trials
    return summarise(
        scenario, precision.processes, same, _many(scenario, 1.05, precision, range(trials, trials + count), workers)
    )


def _many(scenario: Scenario, ratio: float, precision: Precision, seeds: Iterable[int], workers: int) -> list[Trial]:
    once = partial(compare_once, scenario, ratio, precision)
    if workers == 1:
        return [once(seed) for seed in seeds]
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        return pool.map(once, seeds, chunksize=16)


def table(studies: Iterable[Study]) -> str:
    """The studies as a markdown table."""
    lines = [
        "| scenario | processes | comparisons | coverage (its own 95 % interval) "
        "| `faster`/`slower` of identical ones | a true 5 % found | median half-width | placements |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {s.scenario.name} | {s.processes} | {s.trials} "
        f"| {s.coverage:.1%} ({s.coverage_low:.1%} to {s.coverage_high:.1%}) "
        f"| {s.false_alarms:.2%} | {s.found:.1%} | {s.half_width:.2%} | {s.placements:.0f} |"
        for s in studies
    ]
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    arguments = parser.parse_args()
    every = [(scenario, 1) for scenario in SCENARIOS]
    every += [(PROCESS_BIAS, processes) for processes in (1, 5, 10)]
    every += [(SCENARIOS[-1], 5), (WHOLE_PLACEMENTS, 1)]
    studies = (
        study(scenario, arguments.trials, Precision(processes=processes), workers=arguments.workers)
        for scenario, processes in every
    )
    print(table(studies))


if __name__ == "__main__":
    main()
