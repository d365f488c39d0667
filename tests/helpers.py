"""Small makers for tests: records with sensible fields, and one run of one implementation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from normbench import correctness, modes
from normbench.clock import Task
from normbench.implementations import ALL, Implementation, Setting, compiled, eager
from normbench.implementations.base import binding
from normbench.inputs import Operands, Placer, draw
from normbench.records import (
    Accuracy,
    Cache,
    Case,
    CaseResult,
    Cell,
    DeviceInfo,
    DType,
    Environment,
    Estimate,
    Mode,
    Op,
    Plan,
    RunHeader,
    Sample,
    Status,
    Timing,
)
from tests import runs

EPS = 1e-6
CPU = torch.device("cpu")


def make_cell(**changes: Any) -> Cell:
    """A small float32 forward of twelve rows; the parameters have x's dtype unless told."""
    return runs.make_cell(**{"rows": 12, **changes})


def make_plan(**changes: Any) -> Plan:
    """One float32 forward of the floor, the baseline and one candidate."""
    fields: dict[str, Any] = {
        "widths": (64,),
        "rows": (12,),
        "dtypes": (DType.FP32,),
        "modes": (Mode.FORWARD,),
        "caches": (Cache.WARM,),
        "implementations": ("copy", "nn-layernorm", "nn-rmsnorm"),
    }
    return Plan(**{**fields, **changes})


def make_device_info(**changes: Any) -> DeviceInfo:
    """A CPU without anything special."""
    fields: dict[str, Any] = {"kind": "cpu", "name": "Some CPU", "slug": "some-cpu", "memory_bytes": 2**33}
    return DeviceInfo(**{**fields, **changes})


def make_header(plan: Plan | None = None, **changes: Any) -> RunHeader:
    """The header of a run of ``plan`` with the built-in implementations it names."""
    plan = plan or make_plan()
    fields: dict[str, Any] = {
        "created_utc": "2026-01-02T03:04:05Z",
        "command": ("normbench", "sweep"),
        "plan": plan,
        "device": make_device_info(),
        "environment": Environment(normbench="0", python="3.12", torch="2.13", platform="Linux x86_64"),
        "implementations": tuple(i.info for i in ALL if i.name in plan.implementations),
    }
    return RunHeader(**{**fields, **changes})


def make_sample(seconds: float, name: str = "nn-rmsnorm", **changes: Any) -> Sample:
    """One call of ``seconds``."""
    fields: dict[str, Any] = {"process": 0, "placement": 0, "round": 0, "position": 0, "calls": 1, "clock": "wall"}
    return Sample(implementation=name, seconds=seconds, **{**fields, **changes})


def make_samples(placements: Sequence[Sequence[float]], name: str = "nn-rmsnorm") -> list[Sample]:
    """Samples from seconds: one inner sequence a placement, one number a round."""
    return [
        make_sample(seconds, name, placement=placement, round=round_)
        for placement, rounds in enumerate(placements)
        for round_, seconds in enumerate(rounds)
    ]


def make_result(
    name: str = "nn-rmsnorm",
    cell: Cell | None = None,
    status: Status = Status.OK,
    out_dtype: DType | None = DType.FP32,
    **changes: Any,
) -> CaseResult:
    """A case's record: with a time and an accuracy where it is ok, with a reason where not."""
    ok = status is Status.OK
    estimate = Estimate(value=1e-5)
    fields: dict[str, Any] = {
        "case": Case(cell=cell or make_cell(), implementation=name),
        "status": status,
        "reason": None if ok else "because",
        "timing": Timing(time_s=estimate, wall_s=None, floor_ratio=None, samples=1, placements=1) if ok else None,
        "accuracy": Accuracy(max_abs_error=0.0, max_rel_error=0.0, out_dtype=out_dtype) if ok else None,
    }
    return CaseResult(**{**fields, **changes})


def own(op: Op, function: Callable[..., torch.Tensor], **changes: Any) -> Implementation:
    """An implementation of a test's own."""
    fields: dict[str, Any] = {"provider": "own", "summary": "a test's own", "name": f"own-{op}"}
    return Implementation(op=op, build=lambda setting: binding(function, setting.eps), **{**fields, **changes})


COMPILED_EAGERLY = (
    compiled.implementation(Op.LAYERNORM, eager.layernorm, backend="eager"),
    compiled.implementation(Op.RMSNORM, eager.rmsnorm, backend="eager"),
)
"""The compiled chains with a backend that traces and guards as ever, and generates no code."""

EVERY = tuple(i for i in ALL if not i.compiled) + COMPILED_EAGERLY
"""Every built-in implementation, none of which needs a compiler."""


def place(implementation: Implementation, cell: Cell, values: Operands) -> Operands:
    """One placement's operands for one implementation."""
    gradients = cell.mode is not Mode.INFERENCE
    return Placer(values, (implementation.op,), gradients=gradients, shared=False, seed=0).place().operands[0]


def make_task(
    implementation: Implementation, cell: Cell, operands: Operands, eps: float = EPS, **options: Any
) -> Task:
    """What would be timed: built, bound to the operands, in the cell's mode."""
    forward = implementation.build(Setting(cell=cell, eps=eps))(operands.gain, operands.bias)
    return modes.task(implementation.name, cell, forward, operands, **options)


def results_of(
    implementation: Implementation, cell: Cell, values: Operands | None = None, eps: float = EPS
) -> dict[str, torch.Tensor]:
    """What one call returns, by name."""
    operands = place(implementation, cell, values or draw(cell, 0, CPU))
    result = make_task(implementation, cell, operands, eps).run()
    return dict(zip(modes.output_names(cell.mode, operands), modes.outputs(result), strict=True))


def check(
    implementation: Implementation,
    cell: Cell,
    values: Operands | None = None,
    *,
    eps: float = EPS,
    probe: bool = False,
    spoil: Callable[[dict[str, torch.Tensor]], Mapping[str, torch.Tensor]] = lambda results: results,
) -> correctness.Finding:
    """What the check says of one call's results, after ``spoil`` has had its way with them."""
    values = values or draw(cell, 0, CPU)
    results = {name: tensor.detach() for name, tensor in results_of(implementation, cell, values, eps).items()}
    return correctness.check(spoil(results), implementation.op, cell, values.of(implementation.op), eps, probe=probe)


def aten_calls(call: Callable[[], object]) -> list[str]:
    """The names of the aten ops that ``call`` dispatches and that do something: no views."""
    seen: list[str] = []

    class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if not func.is_view:
                seen.append(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    with Recorder():  # type: ignore[no-untyped-call]
        call()
    return seen
