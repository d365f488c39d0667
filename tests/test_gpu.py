"""What only a real GPU can show. Skipped where there is none."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import pytest
import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity, profile

from normbench.checking import examine
from normbench.clock import CudaEventClock, WallClock
from normbench.device import CudaDevice, detect, flush_bytes, make_flush, runs_fused_rmsnorm
from normbench.implementations import ALL, catalog
from normbench.instruments import instruments
from normbench.local_bench import LocalBench
from normbench.records import (
    PRESETS,
    Cache,
    CheckPlan,
    DType,
    Flag,
    Mark,
    Mode,
    Part,
    Precision,
    Property,
    Status,
    StepCell,
    StepPlan,
)
from normbench.steps.timing import Steps
from normbench.sweeping import Sweep
from tests.fakes import Watcher, fake_task, plan_of, quickly

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

REPEATS = 20


@pytest.fixture(scope="module")
def gpu() -> CudaDevice:
    found = detect("cuda:0")
    assert isinstance(found, CudaDevice)
    return found


@pytest.fixture(scope="module")
def clock(gpu: CudaDevice) -> CudaEventClock:
    return CudaEventClock(torch.cuda, flush=make_flush(gpu))


def kernel_seconds(call: Callable[[], object]) -> float:
    """The median over several calls of what the profiler says the one kernel of ``call`` took."""
    call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(REPEATS):
            call()
        torch.cuda.synchronize()
    on_device = (e for e in profiler.events() if e.device_type == DeviceType.CUDA)
    spans = [e.time_range.elapsed_us() for e in on_device if "elementwise" in e.name]
    assert len(spans) == REPEATS, "one kernel a call"
    return float(median(spans)) * 1e-6


@pytest.mark.parametrize("caches", [4, 16], ids=["4 times the cache", "16 times the cache"])
def test_device_time_agrees_with_the_profilers_within_3_percent(
    gpu: CudaDevice, clock: CudaEventClock, caches: int
) -> None:
    """Above 20 µs, on an input so large that what the last call left in the cache does not matter."""
    x = torch.randn(caches * flush_bytes(gpu.info) // 8, device=gpu.torch_device)
    call = lambda: torch.add(x, 0)  # noqa: E731
    timed = [clock.time(fake_task("add", call), calls=1, cache=Cache.WARM) for _ in range(REPEATS)]
    assert {t.clock for t in timed} == {"cuda-event"}
    seconds = median(t.seconds for t in timed)
    assert seconds > 20e-6
    assert seconds == pytest.approx(kernel_seconds(call), rel=0.03)


def test_an_empty_pair_of_events_costs_less_than_20_microseconds(clock: CudaEventClock) -> None:
    assert 0 <= clock._empty_s < 20e-6


def test_device_time_has_no_launch_gaps_in_it_and_wall_time_has(gpu: CudaDevice, clock: CudaEventClock) -> None:
    x = torch.randn(1024, device=gpu.torch_device)

    def many_small_kernels() -> None:
        for _ in range(100):
            x.add_(1)

    task = fake_task("small", many_small_kernels)
    wall = WallClock(flush=lambda: None, synchronize=torch.cuda.synchronize)
    device_s = median(clock.time(task, calls=1, cache=Cache.WARM).seconds for _ in range(REPEATS))
    wall_s = median(wall.time(task, calls=1, cache=Cache.WARM).seconds for _ in range(REPEATS))
    assert device_s < wall_s


def test_a_call_that_waits_for_the_device_says_that_its_queue_was_not_held(gpu: CudaDevice) -> None:
    x = torch.ones(8, device=gpu.torch_device)
    clock = CudaEventClock(torch.cuda, flush=make_flush(gpu), attempts=3)
    timed = clock.time(fake_task("waits", lambda: x.sum().item()), calls=1, cache=Cache.WARM)
    assert timed.clock == "cuda-event-unheld"


def test_the_several_calls_of_one_hold_take_as_long_as_one_call_each(gpu: CudaDevice, clock: CudaEventClock) -> None:
    x = torch.randn(flush_bytes(gpu.info) // 4, device=gpu.torch_device)
    task = fake_task("add", lambda: torch.add(x, 0))
    one = median(clock.time(task, calls=1, cache=Cache.COLD).seconds for _ in range(REPEATS))
    ten = median(clock.time(task, calls=10, cache=Cache.COLD).seconds / 10 for _ in range(REPEATS))
    assert ten == pytest.approx(one, rel=0.05)


@pytest.mark.parametrize("dtype", DType)
def test_rmsnorm_is_one_kernel_where_the_dtypes_are_equal(gpu: CudaDevice, dtype: DType) -> None:
    assert runs_fused_rmsnorm(gpu.torch_device, dtype, dtype) is True


def test_rmsnorm_is_a_chain_of_ops_where_the_parameters_have_another_dtype(gpu: CudaDevice) -> None:
    assert runs_fused_rmsnorm(gpu.torch_device, DType.BF16, DType.FP32) is False


@pytest.mark.parametrize("mode", [Mode.FORWARD, Mode.BACKWARD])
def test_a_profiles_kernels_take_as_long_as_the_device_time_says(gpu: CudaDevice, mode: Mode) -> None:
    """Within 5 % above 20 µs; the floor and torch's modules are one kernel forward."""
    plan = plan_of(
        ALL,
        modes=(mode,),
        caches=(Cache.WARM,),
        dtypes=(DType.BF16,),
        rows=(16384,),
        widths=(4096,),
        precision=quickly(placements=5, max_seconds=2.0),
        profile=True,
    )
    tools = instruments(gpu)
    bench = LocalBench(plan=plan, implementations=ALL, device=gpu, tools=tools)
    sweep = Sweep(
        plan=plan, implementations=ALL, device=gpu, benches=[bench], observer=Watcher(), beside=tools.names_beside
    )
    (records,) = sweep.run()
    profiles = {profile.case: profile for profile in records.profiles}
    for result in records.results:
        assert result.timing is not None, result.reason
        profile = profiles[result.case]
        assert profile.kernels_reason is None
        assert profile.kernel_seconds is not None
        assert profile.findings == ()
        if result.timing.time_s.value > 20e-6:
            assert profile.kernel_seconds == pytest.approx(result.timing.time_s.value, rel=0.05), result.case
        if mode is Mode.FORWARD and result.case.implementation in ("copy", "nn-layernorm", "nn-rmsnorm"):
            assert profile.launches == 1
        if mode is Mode.FORWARD and result.case.implementation == "eager-rmsnorm":
            assert profile.launches == 8, "an op a kernel"


@pytest.mark.parametrize("mode", [Mode.FORWARD, Mode.BACKWARD])
def test_every_implementation_is_measured_in_a_cell(gpu: CudaDevice, mode: Mode) -> None:
    plan = plan_of(
        ALL,
        modes=(mode,),
        caches=(Cache.COLD,),
        dtypes=(DType.BF16,),
        rows=(2048,),
        widths=(1024,),
        precision=quickly(placements=3, max_seconds=2.0),
    )
    tools = instruments(gpu, graphs=True)
    bench = LocalBench(plan=plan, implementations=ALL, device=gpu, tools=tools)
    sweep = Sweep(
        plan=plan,
        implementations=ALL,
        device=gpu,
        benches=[bench],
        observer=Watcher(),
        beside=tools.names_beside,
    )
    (records,) = sweep.run()
    for result in records.results:
        assert (result.status, result.reason) == (Status.OK, None), result.case.implementation
        assert result.timing is not None
        assert result.timing.wall_s is not None
        assert result.timing.placements >= 2
        assert Flag.QUEUE_NOT_HELD not in result.flags
        assert Flag.COMPOSITE not in result.flags


def test_every_property_can_be_asked_on_the_device_and_ordinary_values_pass(gpu: CudaDevice) -> None:
    plan = CheckPlan(properties=tuple(Property), dtypes=(DType.FP32, DType.BF16), widths=(64, 1000), eps=1e-6, seed=0)
    checks = list(examine(gpu, plan, [one for one in catalog().norms if not one.compiled]))
    mixed = [check.reason or "" for check in checks if "same device" in (check.reason or "")]
    ordinary = [check for check in checks if check.property is Property.NORMAL_VALUES]

    assert mixed == []
    assert {check.mark for check in ordinary} == {Mark.PASS}
    assert {check.property for check in checks} == set(Property)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager model", "compiled model"])
@pytest.mark.parametrize("autocast", [None, DType.BF16], ids=["fp32", "autocast bf16"])
def test_a_step_of_every_norm_is_timed_in_place_on_the_device(
    gpu: CudaDevice, autocast: DType | None, *, compiled: bool
) -> None:
    cell = StepCell(shape=PRESETS["tiny"], dtype=DType.FP32, autocast=autocast, compiled=compiled)
    names = tuple(implementation.name for implementation in catalog().norms)
    plan = StepPlan(cells=(cell,), implementations=names, precision=Precision(placements=5, max_seconds=2.0))
    steps = Steps(plan=plan, implementations=catalog().norms, device=gpu, observer=Watcher())
    (records,) = steps.run()

    assert {result.implementation: result.reason for result in records.results} == dict.fromkeys(names)
    for result in records.results:
        assert set(result.times) == set(Part)
        assert 0 < result.times[Part.FORWARD].value < result.times[Part.STEP].value < 1
        assert result.peak_memory_bytes
        assert result.saved_bytes
    assert records.noise is not None
    assert records.noise.ratio.value == pytest.approx(1, abs=0.1)
