"""How many placements a cell takes: asks for one after the other until every ratio is known, or the time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from normbench import stats, verdict
from normbench.failures import Failure
from normbench.interruption import Interruption, Never
from normbench.records import LEAST_PLACEMENTS, Precision, Sample, Spent
from normbench.rounds import Pace, Placed

_PATIENCE = 3.0


class Bench(Protocol):
    """Where placements are measured: this process, or another one."""

    def measure(self, placement: int, pace: Pace, names: Collection[str]) -> Placed:
        """A placement of the tasks that are named; see ``Rounds.measure``."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where measuring a cell stands, after each placement."""

    placements: int
    rounds: int
    seconds: float
    settled: bool


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What measuring gave. A task that raised is in ``failures`` and was not timed further.

    ``is_cut`` says that it was interrupted before it had the least number of placements.
    """

    samples: tuple[Sample, ...]
    failures: Mapping[str, Failure]
    spent: Spent
    is_cut: bool = False


@dataclass(frozen=True, kw_only=True)
class Measurer:
    """Measures the tasks of one cell.

    Args:
        precision: How many placements, and when to stop.
        baseline: The name of the task that ratios are taken against.
        floor: The name of the floor's task, which no pair is judged of.
        beside: The names of the other clocks, whose samples settle nothing.
        interruption: Asked after each placement whether to stop.
        now: A monotonic clock for the budget.
        on_progress: Told after each placement.
    """

    precision: Precision
    baseline: str
    floor: str
    beside: Collection[str] = ()
    interruption: Interruption = field(default_factory=Never)
    now: Callable[[], float] = time.monotonic
    on_progress: Callable[[Progress], None] = lambda _progress: None

    def measure(self, benches: Sequence[Bench], names: Collection[str]) -> Measurement:
        """Measure until every pair is settled or the budget is spent; the benches take turns.

        Args:
            benches: One for each process.
            names: The tasks to time.
        """
        samples: list[Sample] = []
        failures: dict[str, Failure] = {}
        spent, began, is_cut = Spent(), self.now(), False
        for index in range(self.precision.looks[-1] if names else 0):
            placement, process = divmod(index, len(benches))
            alive = [name for name in names if name not in failures]
            placed = benches[process].measure(placement, self._pace(), alive)
            samples += placed.samples
            failures |= placed.failures
            spent += placed.spent
            settled = index + 1 in self.precision.looks and self._is_settled(samples, failures)
            seconds = self.now() - began
            self.on_progress(Progress(placements=index + 1, rounds=placed.rounds, seconds=seconds, settled=settled))
            if settled or self._is_over(index + 1, seconds) or len(failures) == len(names):
                break
            if self.interruption.is_asked_for:
                is_cut = index + 1 < self.precision.placements
                break
        return Measurement(samples=tuple(samples), failures=failures, spent=spent, is_cut=is_cut)

    def _pace(self) -> Pace:
        first, *_, last = self.precision.looks
        budget_s = self.precision.max_seconds
        return Pace(share_s=budget_s / last, most_s=budget_s / first)

    def _is_over(self, placements: int, spent: float) -> bool:
        """Whether to stop undecided: the budget is spent, or three of them where an interval is not in reach yet."""
        patience = 1.0 if placements >= LEAST_PLACEMENTS else _PATIENCE
        return spent >= patience * self.precision.max_seconds

    def _is_settled(self, samples: Sequence[Sample], failures: Collection[str]) -> bool:
        """Whether every candidate's interval is narrow enough; without a baseline nothing more would settle."""
        by_name: dict[str, list[Sample]] = {}
        for sample in stats.without_clocks(samples, self.beside):
            by_name.setdefault(sample.implementation, []).append(sample)
        baseline = by_name.get(self.baseline)
        if baseline is None or self.baseline in failures:
            return True
        apart = (self.baseline, self.floor, *failures)
        candidates = [own for name, own in by_name.items() if name not in apart]
        return verdict.is_settled(baseline, candidates, self.precision)
