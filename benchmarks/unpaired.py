"""How often the interval between two separate runs covers the truth, with placements of unlike spread and number.

Run it as ``python -m benchmarks.unpaired`` to make the table in ``docs/measurement.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from normbench import gate, stats, verdict
from normbench.records import Outcome

Draw = Callable[[np.random.Generator, int], np.ndarray]


def normal(random: np.random.Generator, count: int) -> np.ndarray:
    """Undisturbed placements."""
    return random.normal(size=count)


def disturbed(random: np.random.Generator, count: int) -> np.ndarray:
    """One placement in ten is ten times as far off: something else ran all through it."""
    return random.normal(size=count) * np.where(random.random(count) < 0.1, 10, 1)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Two runs: how many placements each has, and the standard deviation of their logarithms."""

    counts: tuple[int, int]
    sigmas: tuple[float, float]
    draw: Draw = normal


SETTINGS = tuple(
    Setting(counts=counts, sigmas=sigmas)
    for counts in ((5, 5), (5, 20), (10, 10), (10, 40), (40, 40))
    for sigmas in ((0.01, 0.01), (0.01, 0.05), (0.05, 0.01))
)
DISTURBED = tuple(
    Setting(counts=counts, sigmas=(0.01, 0.01), draw=disturbed) for counts in ((5, 5), (10, 10), (40, 40))
)


@dataclass(frozen=True, kw_only=True)
class Study:
    """Fractions of the trials: covered, and called unlike by more than 2 % where nothing differs."""

    coverage: float
    alarms: float


def study(setting: Setting, trials: int, *, confidence: float = stats.CONFIDENCE, seed: int = 0) -> Study:
    """Many pairs of runs between which nothing changed."""
    random = np.random.default_rng(seed)
    covered = alarms = 0
    for _ in range(trials):
        runs = [_run(setting.draw(random, n) * s) for n, s in zip(setting.counts, setting.sigmas, strict=True)]
        ratio = stats.unpaired_ratio(runs[0], runs[1], confidence)
        assert ratio is not None
        assert ratio.low is not None
        assert ratio.high is not None
        covered += ratio.low <= 1 <= ratio.high
        alarms += verdict.judge(ratio, 0.02)[0] in (Outcome.FASTER, Outcome.SLOWER)
    return Study(coverage=covered / trials, alarms=alarms / trials)


def false_failures(
    setting: Setting, trials: int, *, cases: int, threshold: float, seed: int = 0
) -> tuple[float, float]:
    """How often a gate of many unchanged cases would fail: with each one's own interval, and with widened ones."""
    random = np.random.default_rng(seed)
    failures = [0, 0]
    for _ in range(trials):
        pairs = [
            [_run(setting.draw(random, n) * s) for n, s in zip(setting.counts, setting.sigmas, strict=True)]
            for _ in range(cases)
        ]
        for number, confidence in enumerate((stats.CONFIDENCE, gate.confidence(cases))):
            failures[number] += any(_is_slower(one, other, confidence, threshold) for one, other in pairs)
    return failures[0] / trials, failures[1] / trials


def _is_slower(
    one: dict[stats.PlacementKey, float], other: dict[stats.PlacementKey, float], confidence: float, threshold: float
) -> bool:
    ratio = stats.unpaired_ratio(one, other, confidence)
    assert ratio is not None
    return verdict.judge(ratio, threshold)[0] is Outcome.SLOWER


def _run(logarithms: Iterable[float]) -> dict[stats.PlacementKey, float]:
    return {(0, placement): float(value) for placement, value in enumerate(logarithms)}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20_000)
    trials = parser.parse_args().trials
    print("| placements | their spread | disturbed | coverage | `faster`/`slower` of what is the same |")
    print("|---|---|---|---:|---:|")
    for setting in (*SETTINGS, *DISTURBED):
        found = study(setting, trials)
        counts, sigmas = setting.counts, setting.sigmas
        print(
            f"| {counts[0]} and {counts[1]} | {sigmas[0]:.0%} and {sigmas[1]:.0%} "
            f"| {'yes' if setting.draw is disturbed else 'no'} | {found.coverage:.1%} | {found.alarms:.2%} |"
        )
    print(
        "\n| spread | a gate of 84 unchanged cases fails by their own intervals | by widened ones |\n|---|---:|---:|"
    )
    for sigma in (0.01, 0.03, 0.05):
        setting = Setting(counts=(5, 5), sigmas=(sigma, sigma))
        own, widened = false_failures(setting, trials // 20, cases=84, threshold=0.05)
        print(f"| {sigma:.0%} | {own:.1%} | {widened:.1%} |")


if __name__ == "__main__":
    main()
