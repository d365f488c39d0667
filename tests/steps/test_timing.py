"""Steps of a minute model by the sweep's engine, with a clock that is not real: exact ratios, and who has none."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch

from normbench.device import CpuDevice
from normbench.implementations import Bind, Forward, Implementation, Setting, by_name
from normbench.measure import Progress
from normbench.records import (
    DType,
    Flag,
    ModelShape,
    Op,
    Outcome,
    Part,
    Precision,
    Reason,
    Status,
    StepCell,
    StepPlan,
    StepRecords,
    StepResult,
)
from normbench.steps.timing import Steps
from normbench.steps.variants import Batch

SHAPE = ModelShape(width=16, layers=1, heads=2, context=4, batch=2, vocabulary=11)
CELL = StepCell(shape=SHAPE, dtype=DType.FP32)
BASELINE = by_name("nn-layernorm")
QUICK = Precision(placements=5, max_seconds=5.0)


@dataclass
class Ticks:
    """A timer that is 1 ms later each time it is looked at, and later yet by what was added."""

    now: float = 0.0

    def __call__(self) -> float:
        self.now += 1e-3
        return self.now


@dataclass
class Seen:
    """Takes down what it is told."""

    said: list[str] = field(default_factory=list)
    after: Callable[[str], None] = lambda _what: None

    def _say(self, what: str) -> None:
        self.said.append(what)
        self.after(what)

    def step_cell_started(self, cell: StepCell, index: int, count: int) -> None:
        self._say(f"cell {index} of {count}: {cell.shape.width}")

    def preparing(self, name: str) -> None:
        self._say(name)

    def timing(self, part: Part) -> None:
        self._say(f"timing {part}")

    def measured(self, progress: Progress) -> None:
        self._say(f"{progress.placements} placements")


@dataclass
class Asked:
    """An interruption that can be asked for, and knows whether it may wait."""

    is_asked_for: bool = False
    waits: int = 0

    def may_wait(self) -> Any:
        self.waits += 1
        return nullcontext()


def norm(
    name: str = "my-rmsnorm",
    op: Op = Op.RMSNORM,
    *,
    each_call: Callable[[int], None] = lambda _call: None,
    result: Callable[[torch.Tensor, int], torch.Tensor] = lambda y, _call: y,
) -> Implementation:
    """A right norm that does something besides, told how many calls there were."""
    calls = 0

    def build(setting: Setting) -> Bind:
        def bind(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
            assert gain is not None

            def forward(x: torch.Tensor) -> torch.Tensor:
                nonlocal calls
                calls += 1
                each_call(calls)
                h = x - x.mean(-1, keepdim=True) if op is Op.LAYERNORM else x
                y = h * (h.square().mean(-1, keepdim=True) + setting.eps).rsqrt() * gain
                return result(y if bias is None else y + bias, calls)

            return forward

        return bind

    return Implementation(name=name, op=op, provider="my", summary="mine", build=build)


def run(
    implementations: Sequence[Implementation], cells: Sequence[StepCell] = (CELL,), **changes: Any
) -> list[StepRecords]:
    """The records of some cells, by a timer of ticks unless told."""
    precision = changes.pop("precision", QUICK)
    everyone = (BASELINE, *implementations)
    plan = StepPlan(cells=tuple(cells), implementations=tuple(each.name for each in everyone), precision=precision)
    fields: dict[str, Any] = {"observer": Seen(), "timer": Ticks(), **changes}
    return list(Steps(plan=plan, implementations=everyone, device=CpuDevice(), **fields).run())


def result(records: StepRecords, name: str = "my-rmsnorm") -> StepResult:
    """The result of an implementation."""
    (found,) = (each for each in records.results if each.implementation == name)
    return found


def test_every_part_of_every_variant_has_a_time_and_equal_steps_are_the_same() -> None:
    (records,) = run([norm()])

    for found in records.results:
        assert found.status is Status.OK, found.reason
        assert {part: time.value for part, time in found.times.items()} == pytest.approx(dict.fromkeys(Part, 1e-3))
        assert found.tokens_per_s == pytest.approx(8 / 1e-3)
        assert found.peak_memory_bytes
        assert found.saved_bytes
    (comparison,) = records.comparisons
    assert comparison.speedup is not None
    assert comparison.speedup.value == pytest.approx(1.0)
    assert comparison.outcome is Outcome.SAME


def test_the_baseline_against_itself_is_1_within_the_noise_floor() -> None:
    (records,) = run([norm()])

    assert records.noise is not None
    assert records.noise.implementation == BASELINE.name
    assert records.noise.ratio.low is not None
    assert records.noise.ratio.low <= 1 <= (records.noise.ratio.high or 0)


@pytest.mark.slow
def test_the_baseline_against_itself_is_1_within_the_noise_floor_by_a_real_clock() -> None:
    shape = replace(SHAPE, width=64, context=32, layers=2)
    cells = [replace(CELL, shape=replace(shape, batch=2 + number)) for number in range(6)]
    precision = Precision(placements=10, max_seconds=6.0)
    tests = [records.noise for records in run([norm()], cells, timer=time.perf_counter, precision=precision)]
    ratios = [test.ratio for test in tests if test is not None]
    assert len(ratios) == 6
    inside = sum(ratio.low is not None and ratio.low <= 1 <= (ratio.high or 0) for ratio in ratios)
    assert inside >= 4  # of six 97 % intervals; with the true coverage less than two in ten thousand fail here


def test_a_norm_that_takes_longer_makes_the_step_longer_by_as_much_as_there_are_norms() -> None:
    ticks = Ticks()

    def slower(_call: int) -> None:
        ticks.now += 1e-3

    (records,) = run([norm(each_call=slower)], timer=ticks)

    times = {part: time.value for part, time in result(records).times.items()}
    assert SHAPE.norms == 3
    expected = {Part.STEP: 4e-3, Part.FORWARD: 4e-3, Part.BACKWARD: 1e-3, Part.OPTIMIZER: 1e-3}
    assert times == pytest.approx(expected)
    (comparison,) = records.comparisons
    assert comparison.speedup is not None
    assert comparison.speedup.value == pytest.approx(0.25)
    assert (comparison.outcome, comparison.reason) == (Outcome.SLOWER, Reason.INTERVAL_EXCLUDES_1)


def test_every_variant_is_timed_once_in_every_round_in_an_order_that_changes() -> None:
    (records,) = run([norm(), by_name("eager-rmsnorm")])

    rounds: dict[tuple[int, int], dict[int, str]] = {}
    for sample in records.samples[Part.STEP]:
        rounds.setdefault((sample.placement, sample.round), {})[sample.position] = sample.implementation
    everyone = {BASELINE.name, f"{BASELINE.name} again", "my-rmsnorm", "eager-rmsnorm"}
    assert all(set(order.values()) == everyone for order in rounds.values())
    assert len({tuple(order[place] for place in sorted(order)) for order in rounds.values()}) > 1
    assert len({placement for placement, _round in rounds}) >= QUICK.placements
    assert set(records.samples) == set(Part)


def test_a_wrong_norm_has_no_time_and_costs_nobody_else_theirs() -> None:
    (records,) = run([norm(result=lambda y, _call: y * 1.01)])

    found = result(records)
    assert (found.status, found.times) == (Status.INCORRECT, {})
    assert found.reason is not None
    assert found.reason.startswith("norm ")
    assert result(records, BASELINE.name).status is Status.OK
    (comparison,) = records.comparisons
    assert (comparison.outcome, comparison.reason) == (Outcome.UNDECIDED, Reason.NO_CANDIDATE)
    assert {sample.implementation for sample in records.samples[Part.STEP]} == {
        BASELINE.name,
        f"{BASELINE.name} again",
    }


def test_a_norm_that_is_wrong_only_once_it_is_timed_has_no_time() -> None:
    (records,) = run([norm(result=lambda y, call: y if call <= 12 else y.detach() * 1.5)])

    found = result(records)
    assert found.status is Status.INCORRECT
    assert found.reason is not None
    assert found.reason.startswith("after it was timed, norm ")


def test_a_norm_that_raises_while_it_is_timed_has_failed_and_the_others_go_on() -> None:
    def fail(call: int) -> None:
        if call > 20:
            raise RuntimeError("the device has had enough")

    (records,) = run([norm(each_call=fail)])

    assert (result(records).status, result(records).reason) == (
        Status.FAILED,
        "RuntimeError: the device has had enough",
    )
    assert result(records, BASELINE.name).status is Status.OK


def test_a_norm_that_changes_how_others_are_timed_has_no_time() -> None:
    threads = torch.get_num_threads()

    def change(call: int) -> None:
        if call > 20:
            torch.set_num_threads(threads + 1)

    try:
        (records,) = run([norm(each_call=change)])
    finally:
        torch.set_num_threads(threads)

    assert result(records).status is Status.INCORRECT
    assert "changed torch's settings: threads" in (result(records).reason or "")


def test_without_its_baseline_nothing_is_compared() -> None:
    bad = norm("bad-layernorm", Op.LAYERNORM, result=lambda y, _call: y * 2)
    everyone = (bad, norm())
    plan = StepPlan(
        cells=(CELL,), implementations=tuple(each.name for each in everyone), baseline=bad.name, precision=QUICK
    )
    (records,) = Steps(plan=plan, implementations=everyone, device=CpuDevice(), observer=Seen(), timer=Ticks()).run()

    assert [comparison.reason for comparison in records.comparisons] == [Reason.NO_BASELINE]
    assert records.noise is None
    assert result(records).status is Status.OK


def test_an_interrupt_before_there_are_enough_placements_leaves_the_cell_for_later() -> None:
    asked = Asked()
    seen = Seen(after=lambda what: setattr(asked, "is_asked_for", what == "2 placements" or asked.is_asked_for))
    (records,) = run(
        [norm()], [CELL, replace(CELL, shape=replace(SHAPE, width=32))], interruption=asked, observer=seen
    )

    assert {found.status for found in records.results} == {Status.NOT_RUN}
    assert records.comparisons == ()
    assert records.noise is None
    assert asked.waits == 1


def test_an_interrupt_after_that_keeps_what_was_timed_and_leaves_out_the_parts() -> None:
    asked = Asked()
    seen = Seen(after=lambda what: setattr(asked, "is_asked_for", what == "5 placements" or asked.is_asked_for))
    precision = Precision(placements=5, target=1e-9, max_seconds=5.0)
    ticks = Ticks()
    noisy = norm(each_call=lambda call: setattr(ticks, "now", ticks.now + 1e-5 * (call % 7)))
    (records,) = run([noisy], interruption=asked, observer=seen, precision=precision, timer=ticks)

    assert {found.status for found in records.results} == {Status.OK}
    assert {tuple(found.times) for found in records.results} == {(Part.STEP,)}
    assert len(records.comparisons) == 1


def test_a_cell_that_the_time_budget_leaves_nothing_for_is_not_run() -> None:
    (records,) = run([norm()], deadline=-1.0)

    assert {(found.status, found.reason) for found in records.results} == {
        (Status.NOT_RUN, "the time budget was spent before it")
    }


def test_a_model_that_does_not_fit_is_not_attempted_and_the_next_is_measured() -> None:
    cell = replace(CELL, shape=replace(SHAPE, vocabulary=2**34))
    seen = Seen()
    (records, after) = run([norm()], [cell, CELL], observer=seen)

    assert {found.status for found in records.results} == {Status.OUT_OF_MEMORY}
    assert "not attempted" in str(records.results[0].reason)
    assert seen.said[1] == "cell 1 of 2: 16"
    assert {found.status for found in after.results} == {Status.OK}


def test_what_goes_wrong_before_any_variant_is_everyones(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("can't allocate memory: you tried to allocate 9 bytes")

    monkeypatch.setattr(Batch, "draw", fail)
    (records,) = run([norm()])

    assert {found.status for found in records.results} == {Status.OUT_OF_MEMORY}


def test_a_busy_machine_and_few_placements_are_flagged() -> None:
    class Busy:
        def cores(self) -> float:
            return 1.5

    (records,) = run([norm()], load=Busy)
    assert all(Flag.BUSY_MACHINE in found.flags for found in records.results)
    (records,) = run([norm()], precision=Precision(placements=10, max_seconds=1e-3))
    assert all(Flag.FEW_SAMPLES in found.flags for found in records.results)


def test_whoever_watches_is_told_of_each_variant_and_part() -> None:
    seen = Seen()
    run([norm()], observer=seen)

    assert seen.said[:4] == ["cell 0 of 1: 16", BASELINE.name, "my-rmsnorm", f"{BASELINE.name} again"]
    assert [what for what in seen.said if what.startswith("timing")] == [f"timing {part}" for part in Part]
    assert seen.said[-2:] == [f"{BASELINE.name} once more", "my-rmsnorm once more"]


@pytest.mark.slow
def test_a_compiled_model_is_timed_without_a_graph_built_meanwhile() -> None:
    (records,) = run([by_name("eager-rmsnorm")], [replace(CELL, compiled=True)])

    assert {found.status for found in records.results} == {Status.OK}
    assert all(found.compile_s is not None and found.compile_s > 0.1 for found in records.results)
