"""Two identical ``nn.LayerNorm`` against each other, by normbench and by the usual ways: how far each is from 1.

Run it as ``python -m benchmarks.others`` to make the table in ``docs/measurement.md``; it takes 35 minutes.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from math import exp, log
from pathlib import Path
from statistics import median

import numpy as np
import torch
from scipy.stats import binomtest
from torch.utils.benchmark import Timer

from normbench import modes, stats
from normbench.clock import Task
from normbench.device import CpuDevice
from normbench.implementations import Bind, Setting, by_name
from normbench.inputs import Operands, Placement, Placer, draw
from normbench.instruments import instruments
from normbench.measure import Measurer
from normbench.records import Cache, Cell, DType, Mode, Precision
from normbench.rounds import Rounds, Sampling

SHAPES = ((64, 256), (4096, 256), (1024, 4096))
"""Rows and width; the last takes 32 MB, as much as many a last-level cache."""

BASELINE = by_name("nn-layernorm")

_BURNER = """
import random, sys, time
luck = random.Random(int(sys.argv[1]))
while True:
    until = time.perf_counter() + luck.uniform(0.01, 0.3)
    while time.perf_counter() < until:
        sum(range(1000))
    time.sleep(luck.uniform(0.01, 0.3))
"""
"""Keeps one core busy half of the time, in bursts of 10 to 300 ms."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One comparison: the ratio that was found, and its interval where the method gives one."""

    method: str
    loaded: bool
    rows: int
    width: int
    ratio: float
    low: float | None
    high: float | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two identical modules, each with its own buffers."""

    cell: Cell
    values: Operands
    seed: int

    def place(self) -> Placement:
        """Fresh buffers for both."""
        return self._placer().place()

    def tasks(self, placement: Placement) -> list[Task]:
        """The two, in a placement."""
        bind = BASELINE.build(Setting(cell=self.cell, eps=1e-6))
        return [self._task("ab"[turn], bind, placement.operands[turn]) for turn in placement.turns]

    def placing(self) -> Callable[[], Sequence[Task]]:
        """What normbench asks for a placement; the old one lives until the new one is there."""
        placer, current = self._placer(), list[Placement]()

        def place() -> Sequence[Task]:
            placement = placer.place()
            current[:] = [placement]
            return self.tasks(placement)

        return place

    def _task(self, name: str, bind: Bind, operands: Operands) -> Task:
        return modes.task(name, self.cell, bind(operands.gain, operands.bias), operands)

    def _placer(self) -> Placer:
        return Placer(self.values, (BASELINE.op, BASELINE.op), gradients=True, shared=False, seed=self.seed)


def by_normbench(pair: Pair, seconds: float, device: CpuDevice) -> tuple[float, float | None, float | None]:
    """Interleaved rounds in placements, until the budget is spent."""
    tools = instruments(device)
    sampling = Sampling(clock=tools.clock, cache=Cache.WARM, batching=tools.batching)
    precision = Precision(max_seconds=seconds, target=1e-9)
    rounds = Rounds(sampling, pair.placing(), baseline="a", seed=pair.seed)
    measurement = Measurer(precision=precision, baseline="a", floor="").measure([rounds], "ab")
    one, other = (stats.of_implementation(measurement.samples, name) for name in "ab")
    estimate = stats.ratio_estimate(one, other)
    assert estimate is not None
    return estimate.value, estimate.low, estimate.high


def by_timer(pair: Pair, seconds: float) -> tuple[float, None, None]:
    """``torch.utils.benchmark.Timer.blocked_autorange``, one after the other, with all threads."""
    one, other = (
        Timer("call()", globals={"call": task.prepare()}, num_threads=torch.get_num_threads())
        .blocked_autorange(min_run_time=seconds / 2)
        .median
        for task in pair.tasks(pair.place())
    )
    return one / other, None, None


def by_loop(pair: Pair, seconds: float) -> tuple[float, None, None]:
    """As ``triton.testing.do_bench``: warm up, then single calls until the time is over, and their median."""
    one, other = (_loop(task.prepare(), seconds / 2) for task in pair.tasks(pair.place()))
    return one / other, None, None


def _loop(call: Callable[[], object], seconds: float) -> float:
    start = time.perf_counter()
    while time.perf_counter() < start + 0.1 * seconds:
        call()
    times = []
    while time.perf_counter() < start + seconds:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return median(times)


@contextmanager
def load(processes: int) -> Iterator[None]:
    """Other programs that keep the cores busy in random bursts."""
    burners = [subprocess.Popen([sys.executable, "-c", _BURNER, str(seed)]) for seed in range(processes)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def trials(count: int, seconds: float, *, loaded: bool, seed: int = 0) -> Iterator[Trial]:
    """Trials of every method at every shape, interleaved in random order so that all meet the same machine.

    The usual ways, of which only a percentile is asked, come along in every third trial.
    """
    device, order = CpuDevice(), random.Random(seed)
    methods: dict[str, Callable[[Pair, float], tuple[float, float | None, float | None]]] = {
        "normbench": partial(by_normbench, device=device),
        "Timer": by_timer,
        "loop": by_loop,
    }
    cells = [_cell(rows, width) for rows, width in SHAPES]
    values = {cell: draw(cell, seed, device.torch_device) for cell in cells}
    for index in range(count):
        names = list(methods) if index % 3 == 0 else ["normbench"]
        todo = [(cell, name) for cell in cells for name in names]
        order.shuffle(todo)
        for cell, name in todo:
            began = time.perf_counter()
            pair = Pair(cell=cell, values=values[cell], seed=seed + index)
            ratio, low, high = methods[name](pair, seconds)
            yield Trial(
                method=name,
                loaded=loaded,
                rows=cell.rows,
                width=cell.width,
                ratio=ratio,
                low=low,
                high=high,
                seconds=time.perf_counter() - began,
            )


def _cell(rows: int, width: int) -> Cell:
    return Cell(
        mode=Mode.FORWARD, rows=rows, width=width, dtype=DType.FP32, parameter_dtype=DType.FP32, cache=Cache.WARM
    )


def table(found: Iterable[Trial]) -> str:
    """The trials as a markdown table."""
    lines = [
        "| machine | shape | trials | normbench | Timer | loop | better of the two ÷ normbench "
        "| coverage (its own 95 % interval) |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    groups: dict[tuple[bool, int, int], dict[str, list[Trial]]] = {}
    for trial in found:
        group = groups.setdefault((trial.loaded, trial.rows, trial.width), {})
        group.setdefault(trial.method, []).append(trial)
    lines += [_line(key, groups[key]) for key in sorted(groups)]
    return "\n".join(lines)


def _line(key: tuple[bool, int, int], by_method: dict[str, list[Trial]]) -> str:
    loaded, rows, width = key
    own = by_method["normbench"]
    far = {name: _percentile(group) for name, group in by_method.items()}
    covered = sum(t.low is not None and t.high is not None and t.low <= 1 <= t.high for t in own)
    interval = binomtest(covered, len(own)).proportion_ci(0.95, method="wilson")
    better = min(far["Timer"], far["loop"]) / far["normbench"]
    cells = [
        "loaded" if loaded else "quiet",
        f"{rows}×{width}",
        f"{len(own)}",
        *(f"{far[name]:.2%}" for name in ("normbench", "Timer", "loop")),
        f"{better:.0f}",
        f"{covered / len(own):.1%} ({interval.low:.1%} to {interval.high:.1%})",
    ]
    return f"| {' | '.join(cells)} |"


def _percentile(group: Sequence[Trial]) -> float:
    """The 95th percentile of how far the ratio is from 1, whichever way."""
    return float(exp(np.percentile([abs(log(trial.ratio)) for trial in group], 95)) - 1)


def main() -> None:
    """Make the trials and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one comparison")
    parser.add_argument("--conditions", nargs="+", choices=("quiet", "loaded"), default=("quiet", "loaded"))
    parser.add_argument("--keep", type=Path, help="write every trial here, a line of JSON each")
    arguments = parser.parse_args()
    found = []
    for condition in arguments.conditions:
        loaded = condition == "loaded"
        with load(2 if loaded else 0):
            for trial in trials(arguments.trials, arguments.seconds, loaded=loaded):
                found.append(trial)
                if arguments.keep:
                    with arguments.keep.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(trial)) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
