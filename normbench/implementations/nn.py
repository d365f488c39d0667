"""The modules that torch brings: ``torch.nn.LayerNorm`` and ``torch.nn.RMSNorm``, alone and after a residual add."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from normbench.implementations.base import Bind, Forward, Implementation, Setting, Unset
from normbench.records import DType, Flag, Op

if TYPE_CHECKING:
    import torch


def _layernorm(width: int, eps: float) -> Bind:
    import torch

    def bind(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
        module = torch.nn.LayerNorm(width, eps=eps, device="meta")
        module.weight, module.bias = gain, bias  # type: ignore[assignment]
        return module

    return bind


def _rmsnorm(width: int, eps: float | None) -> Bind:
    import torch

    # Said once a process, for whichever cell came first; the flag says it of every cell it holds for.
    warnings.filterwarnings("ignore", message="Mismatch dtype between input and weight")

    def bind(gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
        module = torch.nn.RMSNorm(width, eps=eps, device="meta")
        module.weight = gain  # type: ignore[assignment]
        return module

    return bind


def _after_add(norm: Bind) -> Bind:
    """The add as a model writes it before a norm: a kernel of its own, whose result the norm reads again."""

    def bind(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
        module = norm(gain, bias)

        def forward(x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            h = x + residual
            return module(h), h

        return forward

    return bind


def _unset_layernorm(setting: Setting) -> Bind:
    import torch

    return _layernorm(setting.cell.width, torch.nn.LayerNorm(1, device="meta").eps)


def _observe_rmsnorm(setting: Setting, device: torch.device) -> tuple[Flag, ...]:
    """Whether it is a chain of ops, since torch has no fused kernel, or another's kernel, which torch prefers."""
    from normbench.device import runs_fused_rmsnorm, torch_dtype
    from normbench.native import runs_quack

    cell = setting.cell
    if not runs_fused_rmsnorm(device, cell.dtype, cell.parameter_dtype):
        return (Flag.COMPOSITE,)
    # Under autocast a torch that replaces kernels casts x and gain to float32 before.
    dtype, gain = (cell.dtype, cell.parameter_dtype) if cell.autocast is None else (DType.FP32, DType.FP32)
    replaced = runs_quack(device, torch_dtype(dtype), torch_dtype(gain), cell.width)
    return (Flag.VENDORED_QUACK,) if replaced else ()


LAYERNORM = Implementation(
    name="nn-layernorm",
    op=Op.LAYERNORM,
    provider="nn",
    summary="torch.nn.LayerNorm",
    build=lambda setting: _layernorm(setting.cell.width, setting.eps),
    unset=Unset(eps=1e-5, build=_unset_layernorm),
)
RMSNORM = Implementation(
    name="nn-rmsnorm",
    op=Op.RMSNORM,
    provider="nn",
    summary="torch.nn.RMSNorm; one kernel on CUDA where the dtypes allow it, a chain of ops elsewhere",
    build=lambda setting: _rmsnorm(setting.cell.width, setting.eps),
    unset=Unset(eps=2.0**-23, build=lambda setting: _rmsnorm(setting.cell.width, None)),
    observe=_observe_rmsnorm,
)
ADD_LAYERNORM = Implementation(
    name="nn-add-layernorm",
    op=Op.ADD_LAYERNORM,
    provider="nn",
    summary="x + residual, then torch.nn.LayerNorm: the two apart",
    build=lambda setting: _after_add(_layernorm(setting.cell.width, setting.eps)),
)
ADD_RMSNORM = Implementation(
    name="nn-add-rmsnorm",
    op=Op.ADD_RMSNORM,
    provider="nn",
    summary="x + residual, then torch.nn.RMSNorm: the two apart",
    build=lambda setting: _after_add(_rmsnorm(setting.cell.width, setting.eps)),
    observe=_observe_rmsnorm,
)
