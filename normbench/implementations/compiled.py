"""``torch.compile`` of the hand-written chains: one static graph per case, never a fallback to eager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normbench.implementations import eager
from normbench.implementations.base import AddFunction, Bind, Function, Implementation, Setting, adding, binding
from normbench.records import DeviceInfo, DType, Op

if TYPE_CHECKING:
    from collections.abc import Callable

COMPILE_MODES = ("default", "max-autotune", "reduce-overhead")


def _replays_cuda_graphs(setting: Setting) -> bool:
    """Whether calls replay CUDA graphs, each of which writes its results where the one before has."""
    on_gpu = not setting.device.startswith("cpu")
    return setting.compile_mode == "reduce-overhead" or (setting.compile_mode == "max-autotune" and on_gpu)


def _unsupported(setting: Setting, device: DeviceInfo) -> str | None:
    from normbench.compilation import missing_compiler

    cell = setting.cell
    if DType.BF16 in (cell.dtype, cell.parameter_dtype, cell.autocast) and not device.native_bf16:
        return f"{device.name} emulates bfloat16: Triton can't build it, torch.compile would run the chain eagerly"
    if setting.compile_mode == "reduce-overhead" and device.kind == "cpu":
        return "reduce-overhead means CUDA graphs, which a CPU has none of: it would be the default mode"
    return missing_compiler(device.kind)


def implementation(op: Op, function: Function | AddFunction, backend: str = "inductor") -> Implementation:
    """``torch.compile`` of ``function``; tests bring a backend that needs no compiler.

    ``fullgraph`` makes a graph break or a reached recompile limit an error instead of a silent fallback to
    eager; ``dynamic=False`` makes every shape its own graph.
    """

    def build(setting: Setting) -> Bind:
        import torch

        if backend == "inductor":
            from normbench.compilation import warm_up

            if not setting.precompiled:
                warm_up(setting.device)
            mode = setting.compile_mode
            compiled = torch.compile(function, fullgraph=True, dynamic=False, backend=backend, mode=mode)
        else:
            compiled = torch.compile(function, fullgraph=True, dynamic=False, backend=backend)
        called: Any = _stepping(compiled) if _replays_cuda_graphs(setting) else compiled
        return adding(called, setting.eps) if op.adds else binding(called, setting.eps)

    return Implementation(
        name=f"compile-{op}",
        op=op,
        provider="compile",
        summary=f"torch.compile of eager-{op}",
        build=build,
        unsupported=_unsupported,
        compiled=True,
        reuses_output=_replays_cuda_graphs,
    )


def _stepping(function: Callable[..., Any]) -> Callable[..., Any]:
    """Tell CUDA graphs that a new iteration begins: the last one's outputs may be overwritten."""
    import torch

    def call(*arguments: object) -> Any:
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        return function(*arguments)

    return call


LAYERNORM = implementation(Op.LAYERNORM, eager.layernorm)
RMSNORM = implementation(Op.RMSNORM, eager.rmsnorm)
ADD_LAYERNORM = implementation(Op.ADD_LAYERNORM, eager.add_layernorm)
ADD_RMSNORM = implementation(Op.ADD_RMSNORM, eager.add_rmsnorm)
