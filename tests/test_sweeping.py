from __future__ import annotations

import random
from dataclasses import replace
from itertools import count

import pytest
import torch

from normbench import traffic
from normbench.clock import CudaEventClock
from normbench.device import CpuDevice
from normbench.implementations import compiled, eager
from normbench.instruments import instruments
from normbench.local_bench import LocalBench
from normbench.other_load import OtherLoad
from normbench.records import (
    Cache,
    DType,
    Estimate,
    Flag,
    Mode,
    Op,
    Outcome,
    Reason,
    Status,
)
from normbench.sweeping import Sweep
from tests.fakes import THREE, FakeClock, FakeDevice, Watcher, anywhere, fake_sweep, plan_of, quickly, row
from tests.helpers import EVERY, make_plan, own

ALL = tuple(anywhere(implementation) for implementation in EVERY)


def test_every_case_gives_one_record_in_the_order_of_cells_and_implementations() -> None:
    fake = fake_sweep(ALL, widths=(64, 32), modes=tuple(Mode))
    cells = fake.run()
    assert [records.cell for records in cells] == list(fake.plan.cells())
    for records in cells:
        assert [result.case.implementation for result in records.results] == [i.name for i in ALL]
        assert {result.case.cell for result in records.results} == {records.cell}
        assert {(result.status, result.reason) for result in records.results} == {(Status.OK, None)}


def test_only_candidates_are_compared_and_neither_floor_nor_baseline() -> None:
    (records,) = fake_sweep(ALL).run()
    names = [comparison.candidate for comparison in records.comparisons]
    assert names == ["eager-layernorm", "eager-rmsnorm", "nn-rmsnorm", "compile-layernorm", "compile-rmsnorm"]
    assert {comparison.baseline for comparison in records.comparisons} == {"nn-layernorm"}


def test_a_cell_has_a_swap_for_each_provider_with_both_formulas_and_one_for_the_fastest_of_each() -> None:
    cost = {"copy": 1.0, "nn-layernorm": 4.0, "nn-rmsnorm": 5.0, "eager-layernorm": 9.0, "eager-rmsnorm": 6.0}
    cost |= {"compile-layernorm": 7.0, "compile-rmsnorm": 2.0, "nn-layernorm again": 4.0}
    clock = FakeClock({name: seconds / 1024 for name, seconds in cost.items()})
    (records,) = fake_sweep(ALL, clock=clock).run()

    found = {(swap.baseline, swap.candidate): swap.speedup for swap in records.swaps}
    assert {pair: speedup.value for pair, speedup in found.items() if speedup} == {
        ("eager-layernorm", "eager-rmsnorm"): pytest.approx(9 / 6),
        ("nn-layernorm", "nn-rmsnorm"): pytest.approx(4 / 5),
        ("compile-layernorm", "compile-rmsnorm"): pytest.approx(7 / 2),
        ("nn-layernorm", "compile-rmsnorm"): pytest.approx(4 / 2),
    }


def test_a_swap_is_of_pairs_of_the_same_rounds() -> None:
    """Both take ever longer, by the same factor in a round: pairs see a ratio that never changes."""
    cost = {"nn-layernorm": 4.0, "nn-rmsnorm": 5.0}
    grown: dict[str, int] = dict.fromkeys(cost, 0)

    def slower(name: str) -> float:
        grown[name] = grown.get(name, 0) + 1
        return 1e-6 * cost.get(name, 1.0) * (1 + grown[name])

    (records,) = fake_sweep(ALL, clock=FakeClock(slower)).run()
    (swap,) = (s for s in records.swaps if (s.baseline, s.candidate) == ("nn-layernorm", "nn-rmsnorm"))

    assert swap.speedup is not None
    assert swap.speedup.value == pytest.approx(0.8)
    assert swap.speedup.low == pytest.approx(0.8)


def test_a_cell_that_cannot_be_measured_has_swaps_that_say_so() -> None:
    (records,) = fake_sweep(ALL, widths=(2**40,)).run()

    assert {result.status for result in records.results} == {Status.OUT_OF_MEMORY}
    assert {(swap.outcome, swap.reason) for swap in records.swaps} == {(Outcome.UNDECIDED, Reason.NO_BASELINE)}
    assert {swap.candidate for swap in records.swaps} == {"eager-rmsnorm", "nn-rmsnorm", "compile-rmsnorm"}


def test_known_times_come_out_exactly() -> None:
    cost = {"copy": 2.0**-11, "nn-layernorm": 2.0**-10, "eager-rmsnorm": 2.0**-9}
    cost["nn-layernorm again"] = 2.0**-10
    (records,) = fake_sweep(clock=FakeClock(cost)).run()
    timing = row(records, "eager-rmsnorm").timing
    assert timing is not None
    assert timing.time_s.value == pytest.approx(2.0**-9)
    assert timing.floor_ratio == Estimate(value=4.0, low=4.0, high=4.0)
    assert timing.wall_s == pytest.approx(2.0**-9)
    assert (timing.samples, timing.placements) == (17, 5), "the first placement has the pilot in its time"
    assert len(records.samples) == 4 * 17, "the baseline has a twin"
    (comparison,) = records.comparisons
    assert comparison.speedup == Estimate(value=0.5, low=0.5, high=0.5)
    assert (comparison.outcome, comparison.reason) == (Outcome.SLOWER, Reason.INTERVAL_EXCLUDES_1)


def test_cells_that_are_done_are_left_out() -> None:
    fake = fake_sweep(widths=(64, 32, 16))
    first, second, third = fake.plan.cells()
    assert [records.cell for records in fake.run(done={second})] == [first, third]
    started = [entry for entry in fake.watcher.log if isinstance(entry, tuple)]
    assert started == [(first, 0, 2), (third, 1, 2)]


def test_the_observer_is_told_of_each_cell_each_implementation_and_each_placement() -> None:
    fake = fake_sweep(widths=(64, 32))
    fake.run()
    first, second = fake.plan.cells()
    names = [implementation.name for implementation in THREE]
    after = [f"{name} once more" for name in names]
    assert fake.watcher.log == [
        *((first, 0, 2), *names, *after, "nn-layernorm again once more"),
        *((second, 1, 2), *names, *after),
    ]
    assert [(p.placements, p.settled) for p in fake.watcher.progress] == [
        *((n, False) for n in range(1, 5)),
        (5, True),
    ] * 2


def test_the_device_is_released_after_each_cell() -> None:
    fake = fake_sweep(widths=(64, 32, 16))
    fake.run()
    assert fake.device.released == 3


@pytest.mark.parametrize(("cache", "calls"), [(Cache.WARM, 64), (Cache.COLD, 1)])
def test_a_cold_sample_by_wall_time_holds_one_call(cache: Cache, calls: int) -> None:
    (records,) = fake_sweep(clock=FakeClock(lambda _: 1e-6), caches=(cache,)).run()
    assert {sample.calls for sample in records.samples} == {calls}


def test_a_cold_sample_by_device_time_holds_several_calls_for_each_has_its_own_flush() -> None:
    wall = FakeClock(lambda _: 1e-6, name="wall")
    (records,) = fake_sweep(clock=FakeClock(lambda _: 1e-6), wall=wall, caches=(Cache.COLD,)).run()
    assert {sample.calls for sample in records.samples} == {64}


@pytest.mark.parametrize(("wall_s", "flags"), [(1.6e-3, (Flag.LAUNCH_BOUND,)), (1.4e-3, ())])
def test_a_case_whose_wall_time_is_far_above_its_device_time_is_launch_bound(
    wall_s: float, flags: tuple[Flag, ...]
) -> None:
    (records,) = fake_sweep(wall=FakeClock(lambda _: wall_s, name="wall")).run()
    result = row(records, "eager-rmsnorm")
    assert result.flags == flags
    assert result.timing is not None
    assert result.timing.time_s.value == pytest.approx(1e-3)
    assert result.timing.wall_s == pytest.approx(wall_s)
    assert result.timing.samples == 17, "of the device's clock alone"


def test_a_time_whose_queue_was_not_held_says_so() -> None:
    (records,) = fake_sweep(clock=FakeClock(lambda _: 1e-3, name=CudaEventClock.unheld_name)).run()
    assert all(result.flags == (Flag.QUEUE_NOT_HELD,) for result in records.results)


@pytest.mark.parametrize(("threads", "flagged"), [(2, True), (8, False), (None, False)])
def test_a_processor_on_which_others_work_is_flagged_as_busy(threads: int | None, flagged: bool) -> None:
    busy, now = count(0, 3), count(0, 10)  # three processor seconds in ten, none of them this process's
    device = FakeDevice()
    device.info = replace(device.info, threads=threads)
    load = lambda: OtherLoad(lambda: next(busy), lambda: 0.0, lambda: next(now))  # noqa: E731
    (records,) = fake_sweep(device=device, load=load).run()
    for result in records.results:
        assert result.timing is not None
        assert result.timing.other_cores == (None if threads is None else 0.3)
        assert (Flag.BUSY_MACHINE in result.flags) == flagged


@pytest.mark.parametrize(
    ("kind", "cache", "share", "flagged"),
    [
        ("cpu", Cache.WARM, 1.0, True),
        ("cpu", Cache.WARM, 0.25, True),
        ("cpu", Cache.WARM, 2.0, True),
        ("cpu", Cache.WARM, 0.2, False),
        ("cpu", Cache.WARM, 2.5, False),
        ("cpu", Cache.COLD, 1.0, False),
        ("cuda", Cache.WARM, 1.0, False),
    ],
)
def test_a_cell_about_as_large_as_a_cpus_cache_is_flagged(
    kind: str, cache: Cache, share: float, flagged: bool
) -> None:
    device = FakeDevice()
    touched = traffic.touched_bytes(next(fake_sweep(caches=(cache,)).plan.cells()))
    device.info = replace(device.info, kind=kind, cache_bytes=round(touched / share))
    (records,) = fake_sweep(device=device, caches=(cache,)).run()
    assert all((Flag.NEAR_CACHE_SIZE in result.flags) == flagged for result in records.results)


@pytest.mark.parametrize("mutates", [False, True])
def test_where_memory_is_short_inputs_that_nobody_writes_are_shared_and_the_row_says_so(mutates: bool) -> None:
    addresses: set[int] = set()

    def spying(x: torch.Tensor, gain: torch.Tensor | None, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        addresses.add(x.data_ptr())
        return eager.rmsnorm(x, gain, bias, eps)

    spies = [own(Op.RMSNORM, spying, name=name) for name in ("own-1", "own-2")]
    implementations = (*THREE, *spies, own(Op.RMSNORM, eager.rmsnorm, name="own-3", mutates=mutates))
    (cell,) = make_plan().cells()
    need = traffic.cell_bytes(cell, len(implementations))
    for free, shared in ((need / 0.9 + 1, False), (need / 0.9 - 1, not mutates)):
        addresses.clear()
        (records,) = fake_sweep(implementations, device=FakeDevice(free=int(free))).run()
        assert {result.status for result in records.results} == {Status.OK}
        assert {Flag.SHARED_INPUTS in result.flags for result in records.results} == {shared}


def test_a_total_budget_is_shared_out_among_the_cells_that_are_left() -> None:
    luck = random.Random(0)
    clock = FakeClock(lambda name: luck.choice((0.001, 0.03)) if name == "eager-rmsnorm" else 0.01)
    precision = quickly(placements=10, max_seconds=100.0, total_seconds=8.0)
    fake = fake_sweep(clock=clock, widths=(64, 32), precision=precision)
    assert len(fake.run()) == 2
    ends = [
        p.seconds
        for p, after in zip(fake.watcher.progress, [*fake.watcher.progress[1:], None], strict=True)
        if after is None or after.placements == 1
    ]
    assert ends == [pytest.approx(4.0, abs=0.3), pytest.approx(4.0, abs=0.3)]
    assert 8.0 <= clock.timer() < 8.3


def test_the_baseline_competes_with_itself_in_the_first_cell_of_each_dtype_alone() -> None:
    fake = fake_sweep(widths=(64, 32), dtypes=(DType.FP32, DType.BF16))
    noise = {(r.cell.width, r.cell.dtype): r.noise for r in fake.run()}
    assert {key for key, found in noise.items() if found} == {(64, DType.FP32), (64, DType.BF16)}
    for found in filter(None, noise.values()):
        assert (found.implementation, found.least_difference) == ("nn-layernorm", 0.0)


def test_the_twin_of_the_baseline_has_samples_and_neither_a_row_nor_a_comparison() -> None:
    (records,) = fake_sweep().run()
    assert "nn-layernorm again" in {sample.implementation for sample in records.samples}
    assert "nn-layernorm again" not in {result.case.implementation for result in records.results}
    assert {comparison.candidate for comparison in records.comparisons} == {"eager-rmsnorm"}


def test_a_sweep_says_where_its_time_went() -> None:
    (records,) = fake_sweep().run()
    assert records.spent.timed_s == pytest.approx(len(records.samples) * 1e-3 + 4 * 3 * 1e-3), "and the pilot's"
    assert records.spent.elapsed_s >= records.spent.timed_s


def test_checking_after_timing_counts_as_checking() -> None:
    fake = fake_sweep()
    timer = fake.clock.timer

    class Slow(Watcher):
        def preparing(self, name: str) -> None:
            timer.advance(10.0 if name.endswith("once more") else 1.0)

    fake.watcher = Slow()
    (records,) = fake.run()
    assert records.spent.checking_s == pytest.approx(3 * 1.0 + 4 * 10.0), "three are built, four were timed"


def test_a_processor_is_timed_by_wall_time_alone() -> None:
    found = instruments(CpuDevice())
    assert (found.clock.name, found.names_beside) == ("wall", ())


def test_a_sweep_of_tiny_cells_by_the_real_clock_gives_every_case_a_time() -> None:
    device = CpuDevice()
    plan = plan_of(
        THREE, modes=(Mode.FORWARD, Mode.BACKWARD), caches=tuple(Cache), precision=quickly(max_seconds=0.02)
    )
    bench = LocalBench(plan=plan, implementations=THREE, device=device, tools=instruments(device))
    real = Sweep(plan=plan, implementations=THREE, device=device, benches=[bench], observer=Watcher())
    cells = list(real.run())
    assert len(cells) == 4
    for result in (result for records in cells for result in records.results):
        assert result.status is Status.OK
        assert result.timing is not None
        assert 1e-7 < result.timing.time_s.value < 10


def test_unlike_output_dtypes_are_not_compared() -> None:
    (records,) = fake_sweep(dtypes=(DType.BF16,), parameter_dtypes=(DType.FP32,)).run()
    assert row(records, "nn-layernorm").accuracy.out_dtype is DType.BF16  # type: ignore[union-attr]
    assert row(records, "eager-rmsnorm").accuracy.out_dtype is DType.FP32  # type: ignore[union-attr]
    (comparison,) = records.comparisons
    assert (comparison.outcome, comparison.reason) == (Outcome.UNDECIDED, Reason.OUT_DTYPE_DIFFERS)
    assert comparison.speedup is None


def test_a_compiled_backward_has_a_fresh_forward_for_each_sample_and_one_graph() -> None:
    """N17: a second backward through one compiled graph may raise, where its buffers are donated."""
    through_autograd = anywhere(compiled.implementation(Op.RMSNORM, eager.rmsnorm, backend="aot_eager"))
    (records,) = fake_sweep((*THREE, through_autograd), modes=(Mode.BACKWARD,)).run()
    assert row(records, "compile-rmsnorm").status is Status.OK
