"""What the profiler saw of the timed call, and of nothing else; an empty profile is an error and never zeros."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from normbench.clock import Task
from normbench.profiling import kernels, op_bytes
from normbench.profiling.kernels import ProfileError, Seen, findings, profile_task, seen_on_cpu, seen_on_gpu, summed
from normbench.records import KernelTime, Mode, OpTraffic
from tests.helpers import BOTH, CPU, cell_for, draw, make_task, place


@dataclass
class Range:
    microseconds: float

    def elapsed_us(self) -> float:
        return self.microseconds


@dataclass
class Event:
    """What torch.profiler tells of one event."""

    name: str
    cpu_time_total: float = 1.0
    cpu_parent: Event | None = None
    device_type: str = "DeviceType.CPU"
    cpu_children: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.cpu_parent is not None:
            self.cpu_parent.cpu_children.append(self)

    @property
    def time_range(self) -> Range:
        return Range(self.cpu_time_total)


MICRO = 1e-6


def test_what_an_op_calls_itself_is_part_of_it() -> None:
    mean = Event("aten::mean", 10.0)
    Event("aten::sum", 7.0, mean)
    events = [mean, Event("aten::mul", 3.0)]
    assert list(seen_on_cpu(events, {"mean", "mul"})) == [
        Seen(name="mean", seconds=10.0 * MICRO),
        Seen(name="mul", seconds=3.0 * MICRO),
    ]


def test_an_op_that_only_calls_counted_ones_is_not_one_itself() -> None:
    outer = Event("aten::layer_norm", 12.0)
    inner = Event("aten::native_layer_norm", 11.0, outer)
    Event("aten::empty", 1.0, inner)
    assert [seen.name for seen in seen_on_cpu([outer], {"native_layer_norm"})] == ["native_layer_norm"]
    assert [seen.name for seen in seen_on_cpu([outer], set())] == ["layer_norm"]


def test_ops_below_an_autograd_node_are_its_ops_and_the_node_is_none() -> None:
    engine = Event("autograd::engine::evaluate_function: MulBackward0")
    node = Event("MulBackward0", cpu_parent=engine)
    events = [engine, node, Event("aten::mul", 5.0, node), Event("graph_0_cpp_fused_mul_0", 2.0)]
    roots = [event for event in events if event.cpu_parent is None]
    assert [seen.name for seen in seen_on_cpu(roots, {"mul"})] == ["mul", "graph_0_cpp_fused_mul_0"]


def test_gradients_that_are_summed_in_place_are_the_add_that_was_counted() -> None:
    events = [Event("aten::add_", 2.0), Event("aten::mul_", 3.0)]
    assert [seen.name for seen in seen_on_cpu(events, {"add", "mul_"})] == ["add", "mul_"]


def test_a_gpus_kernels_are_its_device_events() -> None:
    events = [Event("aten::mul"), Event("vectorized_kernel", 12.0, device_type="DeviceType.CUDA")]
    assert list(seen_on_gpu(events)) == [Seen(name="vectorized_kernel", seconds=12.0 * MICRO)]


def test_kernels_are_summed_by_name_the_longest_first_with_the_bytes_of_the_op_that_ran_as_often() -> None:
    call = [Seen(name="mul", seconds=2.0), Seen(name="mul", seconds=4.0), Seen(name="pow", seconds=10.0)]
    ops = {"mul": OpTraffic(name="mul", calls=2, bytes=64), "pow": OpTraffic(name="pow", calls=3, bytes=8)}
    assert summed([call, call], ops) == (
        KernelTime(name="pow", calls=1, seconds=10.0, bytes=None),
        KernelTime(name="mul", calls=2, seconds=6.0, bytes=64),
    )


def test_the_only_kernel_moves_what_was_counted_whatever_it_is_called() -> None:
    ops = {"kernel 0": OpTraffic(name="kernel 0", calls=1, bytes=3), "kernel 1": OpTraffic(name="", calls=1, bytes=4)}
    (kernel,) = summed([[Seen(name="graph_0_cpp_fused_0", seconds=1.0)]], ops)
    assert kernel.bytes == 7


def test_making_a_view_is_left_out_and_an_uncounted_op_that_takes_time_is_not() -> None:
    call = [Seen(name="mul", seconds=1.0), Seen(name="expand", seconds=1.0), Seen(name="odd", seconds=0.5)]
    call.append(Seen(name="brief", seconds=1e-3))
    assert [kernel.name for kernel in summed([call], {})] == ["mul", "odd"]


def test_a_gradient_that_is_accumulated_is_a_finding() -> None:
    node = Event("torch::autograd::AccumulateGrad")
    Event("aten::add_", 1.0, node)
    calls = [list(seen_on_cpu([node], {"add_"}))]
    assert findings(calls, [], casts_expected=True) == ("a gradient was accumulated",)


def test_a_cast_is_a_finding_only_where_everything_has_one_dtype() -> None:
    cast = OpTraffic(name="_to_copy", calls=1, bytes=8)
    assert findings([], [cast], casts_expected=False) == ("a tensor was cast, although everything has one dtype",)
    assert findings([], [cast], casts_expected=True) == ()


def task_of(call: Any) -> Task:
    return Task(name="it", prepare=lambda: call, repeatable=True)


@pytest.mark.parametrize(
    ("on_gpu", "said"), [(True, r"no GPU events \(CUPTI|no GPU events: CUPTI"), (False, "the profiler saw no op")]
)
def test_an_empty_profile_is_an_error(monkeypatch: pytest.MonkeyPatch, on_gpu: bool, said: str) -> None:
    """N26."""
    monkeypatch.setattr(kernels, "_profiled_on_gpu", lambda *_arguments: [[]] * 4)
    monkeypatch.setattr(kernels, "_profiled_on_cpu", lambda *_arguments: [[]] * 4)
    with pytest.raises(ProfileError, match=said):
        profile_task(task_of(lambda: None), synchronize=lambda: None, on_gpu=on_gpu)


def test_calls_that_ran_different_kernels_are_a_partial_profile() -> None:
    turns = iter(range(100))

    def restless() -> torch.Tensor:
        x = torch.ones(4)
        return x.mul(2) if next(turns) // 2 % 2 else x.sub(1)

    with pytest.raises(ProfileError, match="partial"):
        profile_task(task_of(restless), synchronize=lambda: None, on_gpu=False)


@pytest.mark.parametrize("mode", [Mode.FORWARD, Mode.BACKWARD])
@pytest.mark.parametrize("implementation", [i for i in BOTH if not i.compiled], ids=lambda i: i.name)
def test_the_profile_lists_the_ops_that_were_counted_and_no_preparation(mode: Mode, implementation: Any) -> None:
    cell = cell_for(implementation, rows=64, width=64, mode=mode)
    task = make_task(implementation, cell, place(implementation, cell, draw(cell, 0, CPU)))
    ops = op_bytes.count(task.prepare())
    calls = profile_task(task, synchronize=lambda: None, on_gpu=False, names={op.name for op in ops})
    names = {kernel.name for kernel in summed(calls, {op.name: op for op in ops}) if kernel.bytes is not None}
    assert len(calls) == kernels.ACTIVE
    assert names
    assert names == {op.name for op in ops}
    assert findings(calls, ops, casts_expected=False) == ()


def test_the_profilers_own_lines_do_not_reach_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    profile_task(task_of(lambda: torch.ones(4).mul(2)), synchronize=lambda: None, on_gpu=False)
    assert "USDT" not in capfd.readouterr().err
