"""The self-test: what it finds on this processor is measured, and what it says of counters follows the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
import torch

from normbench import compilation, doctor, native
from normbench.clock import CudaEventClock
from normbench.device import CpuDevice
from normbench.doctor import examine, noise_floors
from normbench.instruments import Instruments, instruments
from normbench.records import Diagnosis, DType, Mode
from normbench.rounds import Batching
from tests.fake_cuda import FakeCuda
from tests.fakes import FakeClock, FakeDevice
from tests.helpers import make_cell

EVENT_S = 2.0**-18


@pytest.fixture(scope="module")
def found() -> Iterator[Diagnosis]:
    """This processor, examined in a hurry; compiling is somebody else's test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation.warm_up, "__wrapped__", lambda _device: None)
        patch.setattr(doctor, "_LOAD_S", 0.05)
        device = CpuDevice()
        yield examine(device, instruments(device), seconds=2.0)  # enough for five placements beside other programs


def test_nn_rmsnorm_is_a_chain_of_six_ops_in_fp32_and_eight_in_half_precision(found: Diagnosis) -> None:
    """N01, N20."""
    single, half, mixed = found.rmsnorm
    assert (single.dtype, single.parameter_dtype, len(single.ops)) == ("fp32", "fp32", 6)
    assert (half.dtype, half.parameter_dtype, len(half.ops)) == ("bf16", "bf16", 8)
    assert (mixed.dtype, mixed.parameter_dtype) == ("bf16", "fp32")
    assert not any(choice.fused for choice in found.rmsnorm)
    assert {choice.why for choice in found.rmsnorm} == {"torch has no fused RMSNorm for a CPU"}


def test_the_kernel_languages_are_those_that_torch_would_replace_its_kernels_by(found: Diagnosis) -> None:
    """None in a torch built for a CPU alone, whatever is installed beside it."""
    assert found.environment.native_dsls == native.languages()
    assert torch.version.cuda is not None or native.languages() == ()


def test_the_noise_floor_is_measured_at_three_cells_against_itself_and_a_fresh_copy(found: Diagnosis) -> None:
    assert [(n.cell.rows, n.cell.width, n.fresh) for n in found.noise] == [
        (rows, width, fresh) for rows, width in ((64, 256), (4096, 256), (1024, 4096)) for fresh in (False, True)
    ]
    assert all(noise.least_difference > 0 for noise in found.noise)


def test_the_clock_shows_less_than_a_microsecond_and_costs_less(found: Diagnosis) -> None:
    (wall,) = found.timers
    assert wall.clock == "wall"
    assert 0 < wall.resolution_s < 1e-6
    assert 0 < wall.overhead_s < 1e-6


def test_copying_moves_eight_times_the_cache_at_a_bandwidth_that_can_be(found: Diagnosis) -> None:
    assert found.bandwidth is not None
    assert found.bandwidth.bytes_moved >= 8 * (found.device.cache_bytes or 1)
    assert 1e8 < found.bandwidth.measured_bytes_per_s < 1e13
    assert found.bandwidth.computed_bytes_per_s is None


def test_the_load_of_other_programs_is_looked_at(found: Diagnosis) -> None:
    assert found.conditions.other_cores is not None
    assert found.conditions.cores is not None


def test_an_exact_clock_finds_no_noise_at_all() -> None:
    cell = make_cell(mode=Mode.FORWARD, dtype=DType.FP32)
    tools = Instruments(clock=FakeClock(lambda _: 1e-3), batching=Batching())
    itself, copy = noise_floors(FakeDevice(), tools, cell, seconds=5.0)
    assert (itself.fresh, copy.fresh) == (False, True)
    for noise in (itself, copy):
        assert noise.least_difference == 0
        assert not noise.is_biased


def test_a_clock_that_favours_the_second_is_found_out() -> None:
    tools = Instruments(clock=FakeClock(lambda name: 0.9e-3 if "again" in name else 1e-3), batching=Batching())
    for noise in noise_floors(FakeDevice(), tools, make_cell(), seconds=5.0):
        assert noise.is_biased
        assert noise.least_difference == pytest.approx(1 / 9)


def test_each_round_has_the_two_alone_so_that_neithers_buffers_are_used_more_often() -> None:
    clock = FakeClock(lambda _: 1e-3)
    noise_floors(FakeDevice(), Instruments(clock=clock, batching=Batching()), make_cell(), seconds=5.0)
    counts = Counter(name for name, _calls, _cache in clock.log)
    assert set(counts) == {"nn-layernorm", "nn-layernorm again"}
    assert len(set(counts.values())) == 1


def test_where_memory_is_short_cells_and_the_copy_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation.warm_up, "__wrapped__", lambda _device: None)
    monkeypatch.setattr(doctor, "_LOAD_S", 0.01)
    device = FakeDevice(free=2**22)
    tools = Instruments(clock=FakeClock(lambda _: 1e-3), batching=Batching())
    found = examine(device, tools, seconds=5.0)
    assert found.bandwidth is None
    assert {noise.cell.rows for noise in found.noise} == {64}


def test_a_compiler_that_fails_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_device: str) -> None:
        raise RuntimeError("no headers")

    monkeypatch.setattr(compilation, "missing_compiler", lambda _kind: None)
    monkeypatch.setattr(compilation.warm_up, "__wrapped__", fail)
    found = doctor._try_compiling(FakeDevice())
    assert (found.works, found.detail) == (False, "RuntimeError: no headers")
    monkeypatch.setattr(compilation, "missing_compiler", lambda _kind: "install g++")
    assert doctor._try_compiling(FakeDevice()).detail == "install g++"


def test_an_event_clock_is_examined_too() -> None:
    cuda = FakeCuda(event_s=EVENT_S)
    tools = Instruments(clock=CudaEventClock(cuda, flush=lambda: None), batching=Batching())
    _wall, events = doctor._timers(tools)
    assert events.clock == "cuda-event"
    assert events.overhead_s == pytest.approx(EVENT_S)
    assert events.resolution_s > 0
