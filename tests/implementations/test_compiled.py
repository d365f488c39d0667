from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from normbench import compilation
from normbench.implementations import Implementation, Setting, compiled, eager
from normbench.implementations.base import Function
from normbench.inputs import draw
from normbench.records import Cell, DType, Mode, Op
from tests.helpers import COMPILED_EAGERLY, CPU, EPS, check, make_cell, make_device_info, make_task, place, results_of

TURING = make_device_info(kind="cuda", name="Tesla T4", slug="tesla-t4", capability=(7, 5), native_bf16=False)
WIDTHS = [64, 96, 128, 256, 512, 1024, 2048, 4096, 8192, 32768]

both = pytest.mark.parametrize("implementation", COMPILED_EAGERLY, ids=lambda i: i.name)


@pytest.fixture(autouse=True)
def _forget_graphs() -> Iterator[None]:
    compilation.reset()
    yield
    compilation.reset()


class CountingBackend:
    """Notes the shapes of x that it is asked to compile for, and runs the graph as it is."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int | torch.SymInt, ...]] = []

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        self.shapes.append(next(tuple(t.shape) for t in inputs if isinstance(t, torch.Tensor) and t.ndim == 2))
        return graph.forward


def graphs_of(implementation: Implementation, cell: Cell) -> int:
    before = compilation.graph_count()
    results_of(implementation, cell)
    return compilation.graph_count() - before


def with_backend(backend: Any, function: Function = eager.rmsnorm) -> Implementation:
    return compiled.implementation(Op.RMSNORM, function, backend=backend)


def test_three_widths_in_one_process_are_three_static_graphs() -> None:
    backend = CountingBackend()
    for width in (256, 512, 4096):
        compilation.reset()  # as the sweep does for each cell
        results_of(with_backend(backend), make_cell(rows=64, width=width))

    assert backend.shapes == [(64, 256), (64, 512), (64, 4096)]
    assert all(type(size) is int for shape in backend.shapes for size in shape)


def test_without_a_reset_too_a_second_width_is_a_static_graph_of_its_own() -> None:
    backend = CountingBackend()
    bind = with_backend(backend).build(Setting(cell=make_cell(), eps=EPS))
    for width in (256, 512):
        bind(torch.ones(width), None)(torch.ones(8, width))

    assert backend.shapes == [(8, 256), (8, 512)]
    assert all(type(size) is int for shape in backend.shapes for size in shape)


@both
def test_ten_widths_are_each_compiled_and_never_reach_the_recompile_limit(implementation: Implementation) -> None:
    counts = []
    for width in WIDTHS:
        compilation.reset()
        counts.append(graphs_of(implementation, make_cell(rows=2, width=width)))

    assert len(counts) > torch._dynamo.config.recompile_limit
    assert counts == [1] * len(WIDTHS)


def test_a_reached_recompile_limit_is_an_error_and_not_an_eager_chain_called_compiled() -> None:
    bind = with_backend("eager").build(Setting(cell=make_cell(), eps=EPS))
    fitting, beyond = WIDTHS[: torch._dynamo.config.recompile_limit], WIDTHS[-1]
    for width in fitting:
        bind(torch.ones(width), None)(torch.ones(2, width))

    with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
        bind(torch.ones(beyond), None)(torch.ones(2, beyond))


def test_a_graph_break_is_an_error() -> None:
    def breaking(x: torch.Tensor, gain: torch.Tensor | None, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        torch._dynamo.graph_break()
        return eager.rmsnorm(x, gain, bias, eps)

    with pytest.raises(torch._dynamo.exc.Unsupported):
        results_of(with_backend("eager", breaking), make_cell())


@pytest.mark.parametrize("mode", list(Mode))
@both
def test_new_tensors_and_parameters_of_the_same_shape_build_no_new_graph(
    implementation: Implementation, mode: Mode
) -> None:
    cell = make_cell(mode=mode)
    bind = implementation.build(Setting(cell=cell, eps=EPS))
    shared = replace(implementation, build=lambda _setting: bind)
    before = compilation.graph_count()
    for _ in range(4):  # placements
        task = make_task(shared, cell, place(implementation, cell, draw(cell, 0, CPU)))
        for _ in range(3):
            task.run()

    assert compilation.graph_count() - before == 1


@pytest.mark.parametrize("mode", [Mode.FORWARD, Mode.BACKWARD])
@both
def test_a_bfloat16_that_the_gpu_only_emulates_is_unsupported_where_triton_compiles(
    implementation: Implementation, mode: Mode
) -> None:
    setting = Setting(cell=make_cell(dtype=DType.BF16, mode=mode), eps=EPS)

    reason = implementation.unsupported(setting, TURING)
    assert reason is not None
    assert reason.startswith("Tesla T4 emulates bfloat16")


@pytest.mark.parametrize("where", ["dtype", "parameter_dtype", "autocast"])
def test_emulated_bfloat16_is_unsupported_wherever_in_the_cell_it_stands(where: str) -> None:
    cell = make_cell(**{"dtype": DType.FP32, "parameter_dtype": DType.FP32, where: DType.BF16})

    reason = compiled.RMSNORM.unsupported(Setting(cell=cell, eps=EPS), TURING)
    assert reason is not None
    assert "emulates bfloat16" in reason


@pytest.mark.parametrize("dtype", [DType.FP32, DType.FP16])
def test_other_dtypes_are_compiled_on_such_a_gpu(dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "missing_compiler", lambda _kind: None)

    assert compiled.RMSNORM.unsupported(Setting(cell=make_cell(dtype=dtype), eps=EPS), TURING) is None


def test_bfloat16_is_compiled_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "missing_compiler", lambda _kind: None)
    setting = Setting(cell=make_cell(dtype=DType.BF16), eps=EPS)

    assert compiled.RMSNORM.unsupported(setting, make_device_info()) is None


@pytest.mark.parametrize(("mode", "works"), [("reduce-overhead", False), ("max-autotune", True), ("default", True)])
def test_cuda_graphs_are_unsupported_on_a_cpu(mode: str, works: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "missing_compiler", lambda _kind: None)
    setting = Setting(cell=make_cell(), eps=EPS, compile_mode=mode)
    reason = compiled.LAYERNORM.unsupported(setting, make_device_info())

    assert mode in compiled.COMPILE_MODES
    assert (reason is None) is works
    assert works or "CUDA graphs" in str(reason)


def test_without_a_compiler_the_reason_is_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)

    reason = compiled.RMSNORM.unsupported(Setting(cell=make_cell(), eps=EPS), make_device_info())
    assert reason is not None
    assert "g++" in reason


@pytest.mark.parametrize(
    ("mode", "device", "replays"),
    [
        ("reduce-overhead", "cuda:0", True),
        ("max-autotune", "cuda:0", True),
        ("max-autotune", "cpu", False),
        ("default", "cuda:0", False),
    ],
)
def test_a_call_that_replays_cuda_graphs_says_each_time_that_a_step_begins_and_that_it_reuses_its_output(
    mode: str, device: str, replays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    monkeypatch.setattr(torch.compiler, "cudagraph_mark_step_begin", lambda: steps.append("step"))
    setting = Setting(cell=make_cell(), eps=EPS, compile_mode=mode, device=device)
    implementation = with_backend("eager")
    forward = implementation.build(setting)(torch.ones(64), None)
    for _ in range(3):
        forward(torch.ones(12, 64))

    assert steps == ["step"] * (3 if replays else 0)
    assert implementation.reuses_output(setting) is replays


@pytest.mark.parametrize(
    ("implementation", "cell"),
    [
        (compiled.RMSNORM, make_cell(rows=32, width=64)),
        (compiled.LAYERNORM, make_cell(rows=32, width=64, dtype=DType.BF16, mode=Mode.BACKWARD)),
    ],
    ids=["rmsnorm forward", "layernorm backward"],
)
@pytest.mark.skipif(compilation.missing_compiler("cpu") is not None, reason="no C++ compiler")
def test_what_inductor_generates_is_right_and_is_one_graph(implementation: Implementation, cell: Cell) -> None:
    compilation.warm_up("cpu")
    before = compilation.graph_count()
    finding = check(implementation, cell)

    assert finding.problem is None
    assert compilation.graph_count() - before == 1
