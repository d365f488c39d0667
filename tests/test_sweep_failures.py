from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
import torch

from normbench import compilation, traffic
from normbench.implementations import Implementation, eager
from normbench.implementations.base import Function
from normbench.records import DType, Mode, Op, Outcome, Reason, Status
from tests.cheats import declared
from tests.fakes import THREE, FakeClock, FakeDevice, Watcher, anywhere, fake_sweep, quickly, row
from tests.helpers import COMPILED_EAGERLY, EVERY, own

RMS = eager.rmsnorm


def later(clock: FakeClock, then: Callable[[torch.Tensor], object], function: Function = RMS) -> Function:
    """``function``, which also does ``then`` from the moment on that something has been timed."""

    def call(x: torch.Tensor, gain: torch.Tensor | None, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        if clock.log:
            then(x)
        return function(x, gain, bias, eps)

    return call


def boom(*_: Any) -> torch.Tensor:
    raise RuntimeError("boom")


def statuses(sweep: Any) -> list[dict[str, Status]]:
    return [{r.case.implementation: r.status for r in records.results} for records in sweep.run()]


def test_an_implementation_that_fails_costs_only_its_own_row() -> None:
    wrong = own(Op.RMSNORM, lambda *args: RMS(*args) * 2, name="wrong")
    broken = own(Op.RMSNORM, boom, name="broken")
    missing = own(Op.RMSNORM, RMS, name="missing", unsupported=lambda *_: "not installed")
    found = statuses(fake_sweep((*THREE, wrong, broken, missing), widths=(64, 32)))
    right = dict.fromkeys((i.name for i in THREE), Status.OK)
    failed = {"wrong": Status.INCORRECT, "broken": Status.FAILED, "missing": Status.UNSUPPORTED}
    assert found == [{**right, **failed}] * 2


def test_a_case_without_a_time_is_compared_as_undecided_for_want_of_a_candidate() -> None:
    wrong = own(Op.RMSNORM, lambda *args: RMS(*args) * 2, name="wrong")
    (records,) = fake_sweep((*THREE, wrong)).run()
    comparison = records.comparisons[-1]
    assert (comparison.candidate, comparison.speedup) == ("wrong", None)
    assert (comparison.outcome, comparison.reason) == (Outcome.UNDECIDED, Reason.NO_CANDIDATE)


def test_an_implementation_that_fails_while_it_is_timed_costs_only_its_own_row() -> None:
    clock = FakeClock(lambda _: 1e-3)
    broken = own(Op.RMSNORM, later(clock, boom), name="broken")
    (records,) = fake_sweep((*THREE, broken), clock=clock).run()
    result = row(records, "broken")
    assert (result.status, result.reason) == (Status.FAILED, "RuntimeError: boom")
    assert all(row(records, i.name).status is Status.OK for i in THREE)


def test_without_a_baseline_every_candidate_is_undecided() -> None:
    broken = replace(THREE[1], build=lambda _: lambda *_: boom)
    (records,) = fake_sweep((THREE[0], broken, THREE[2])).run()
    assert row(records, "nn-layernorm").status is Status.FAILED
    assert row(records, "eager-rmsnorm").status is Status.OK
    (comparison,) = records.comparisons
    assert (comparison.outcome, comparison.reason) == (Outcome.UNDECIDED, Reason.NO_BASELINE)


def test_an_impossible_size_is_out_of_memory_without_being_tried_and_the_other_cells_run() -> None:
    """N21."""
    sweep = fake_sweep(widths=(256, 2**50, 64))
    small, huge, last = sweep.run()
    assert {(r.status, r.timing) for r in huge.results} == {(Status.OUT_OF_MEMORY, None)}
    (reason,) = {r.reason for r in huge.results}
    assert (reason or "").startswith("estimated ")
    assert (reason or "").endswith(", available 7.20 GiB: not attempted")
    assert huge.samples == ()
    assert {r.status for records in (small, last) for r in records.results} == {Status.OK}
    assert sweep.device.released == 2, "nothing was allocated in the one between"


def test_values_that_cannot_be_allocated_after_all_are_out_of_memory() -> None:
    first, second = fake_sweep(widths=(2**50, 64), device=FakeDevice(free=2**80)).run()
    assert {r.status for r in first.results} == {Status.OUT_OF_MEMORY}
    assert all("can't allocate memory" in (r.reason or "") for r in first.results)
    assert {r.status for r in second.results} == {Status.OK}


def test_a_row_that_is_too_long_for_one_implementation_is_unsupported_by_it_alone() -> None:
    """N21: 64 KiB a row."""

    def limit(setting: Any, _device: Any) -> str | None:
        size = setting.cell.width * setting.cell.dtype.itemsize
        return "rows above 64 KiB" if size > 2**16 else None

    found = statuses(fake_sweep((*THREE, own(Op.RMSNORM, RMS, unsupported=limit)), widths=(16384, 16385), rows=(2,)))
    assert [cell["own-rmsnorm"] for cell in found] == [Status.OK, Status.UNSUPPORTED]
    assert {cell[i.name] for cell in found for i in THREE} == {Status.OK}


def test_cells_that_the_total_budget_leaves_no_time_for_are_not_run() -> None:
    sweep = fake_sweep(widths=(64, 32, 16), precision=quickly(total_seconds=1e-3))
    first, *others = sweep.run()
    assert {r.status for r in first.results} == {Status.OK}
    for records in others:
        assert {r.status for r in records.results} == {Status.NOT_RUN}
        assert {r.reason for r in records.results} == {"the sweep's time budget was spent before it"}
        assert (records.comparisons, records.samples) == ((), ())


def test_a_graph_that_is_built_inside_the_timed_region_fails_what_is_compiled() -> None:
    clock = FakeClock(lambda _: 1e-3)

    def recompile(_x: torch.Tensor) -> None:
        torch.compile(lambda tensor: tensor + 1, backend="eager", dynamic=False)(torch.ones(2))

    def build(setting: Any) -> Any:
        bind = anywhere(COMPILED_EAGERLY[1]).build(setting)
        return lambda gain, bias: (
            lambda x: later(clock, recompile, lambda x, *_: bind(gain, bias)(x))(x, None, None, 0)
        )

    restless = replace(own(Op.RMSNORM, RMS, name="restless", compiled=True), build=build)
    (records,) = fake_sweep((*THREE, restless), clock=clock).run()
    result = row(records, "restless")
    assert result.status is Status.FAILED
    assert result.reason == "torch.compile built another graph inside the timed region"
    assert result.compile_s is not None
    assert {row(records, i.name).status for i in THREE} == {Status.OK}


def test_more_cells_than_dynamo_recompiles_for_are_all_compiled() -> None:
    """N14: without a reset the ninth width would run eagerly, or end the sweep."""
    widths = tuple(range(8, 18))
    assert len(widths) > torch._dynamo.config.recompile_limit
    before = compilation.graph_count()
    found = statuses(fake_sweep((*THREE, anywhere(COMPILED_EAGERLY[1])), widths=widths))
    assert [cell["compile-rmsnorm"] for cell in found] == [Status.OK] * len(widths)
    assert compilation.graph_count() - before == len(widths), "one static graph a width"


@pytest.mark.parametrize("mode", Mode)
def test_what_is_written_into_x_by_mistake_does_not_reach_the_others(mode: Mode) -> None:
    clock, watcher = FakeClock(lambda _: 1e-3), Watcher()
    seen: list[float] = []

    def look(x: torch.Tensor) -> None:
        if len(watcher.progress) < 5:  # not after timing, when everybody's inputs are changed
            seen.append(float(x.detach().sum()))

    careless = later(clock, lambda x: x.data.zero_(), lambda x, *others: RMS(x.clone(), *others))
    watching = own(Op.RMSNORM, later(clock, look), name="watching")
    implementations: tuple[Implementation, ...] = (own(Op.RMSNORM, careless, name="careless"), *THREE, watching)
    (records,) = fake_sweep(implementations, modes=(mode,), clock=clock, watcher=watcher).run()
    result = row(records, "careless")
    assert (result.status, result.timing) == (Status.INCORRECT, None)
    assert result.reason == "wrote into x without declaring it, while it was timed"
    assert {row(records, i.name).status for i in (*THREE, watching)} == {Status.OK}
    assert any(sample.implementation == "careless" for sample in records.samples), "nothing is thrown away"
    assert len(seen) > 10
    assert len(set(seen)) == 1
    assert seen[0] != 0


def test_an_interrupt_ends_the_sweep_and_releases_the_device() -> None:
    clock = FakeClock(lambda _: 1e-3)
    times = count()

    def interrupt(_x: torch.Tensor) -> None:
        if next(times) == 5:
            raise KeyboardInterrupt

    sweep = fake_sweep((*THREE, own(Op.RMSNORM, later(clock, interrupt))), clock=clock)
    with pytest.raises(KeyboardInterrupt):
        sweep.run()
    assert sweep.device.released == 1


def test_where_x_is_shared_who_wrote_into_it_is_named_and_nobody_has_a_time() -> None:
    clock = FakeClock(lambda _: 1e-3)
    careless = own(Op.RMSNORM, later(clock, lambda x: x.data.zero_()), name="careless")
    implementations = (*THREE, careless)
    (cell,) = fake_sweep(implementations).plan.cells()
    short = FakeDevice(free=int(traffic.cell_bytes(cell, len(implementations)) / 0.9 - 1))
    (records,) = fake_sweep(implementations, clock=clock, device=short).run()
    assert row(records, "careless").status is Status.INCORRECT
    assert row(records, "careless").reason == "wrote into x without declaring it, while it was timed"
    for other in THREE:
        result = row(records, other.name)
        assert result.status is Status.FAILED
        assert (
            result.reason
            == "careless wrote into x, which all share for want of memory: what was timed was not what was checked"
        )


def test_a_baseline_that_was_wrong_after_all_says_nothing_of_the_noise() -> None:
    clock = FakeClock(lambda _: 1e-3)
    wrong = replace(own(Op.RMSNORM, later(clock, lambda x: x.data.zero_())), name="nn-layernorm")
    (records,) = fake_sweep((THREE[0], wrong, THREE[2]), clock=clock).run()
    assert row(records, "nn-layernorm").status is Status.INCORRECT
    assert records.noise is None
    (comparison,) = records.comparisons
    assert (comparison.outcome, comparison.reason) == (Outcome.UNDECIDED, Reason.NO_BASELINE)


def test_what_cannot_be_bound_to_a_later_placement_costs_only_its_own_row() -> None:
    clock = FakeClock(lambda _: 1e-3)

    def build(_setting: Any) -> Any:
        def bind(gain: Any, _bias: Any) -> Any:
            if clock.log:
                raise RuntimeError("no second placement")
            return lambda x: RMS(x, gain, None, 1e-6)

        return bind

    broken = replace(own(Op.RMSNORM, RMS, name="broken"), build=build)
    (records,) = fake_sweep((*THREE, broken), clock=clock).run()
    assert (row(records, "broken").status, row(records, "broken").reason) == (
        Status.FAILED,
        "RuntimeError: no second placement",
    )
    assert {row(records, i.name).status for i in THREE} == {Status.OK}


def test_a_graph_is_blamed_on_whoever_built_it() -> None:
    clock = FakeClock(lambda _: 1e-3)

    def compile_something(_x: torch.Tensor) -> None:
        torch.compile(lambda tensor: tensor + 1, backend="eager", dynamic=False)(torch.ones(2))

    restless = own(Op.RMSNORM, later(clock, compile_something), name="restless")
    (records,) = fake_sweep((*THREE, restless, anywhere(COMPILED_EAGERLY[1])), clock=clock).run()
    assert row(records, "restless").status is Status.FAILED
    assert row(records, "restless").reason == "torch.compile built another graph inside the timed region"
    assert row(records, "compile-rmsnorm").status is Status.OK


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("dtype", DType)
def test_every_implementation_is_still_right_after_it_was_timed(mode: Mode, dtype: DType) -> None:
    everyone = (*map(anywhere, EVERY), *declared(mode))
    (records,) = fake_sweep(everyone, modes=(mode,), dtypes=(dtype,), rows=(100,)).run()
    assert {r.case.implementation: r.reason for r in records.results} == dict.fromkeys(i.name for i in everyone)
