"""The op chains as people write them: each op reads and writes the whole activation.

In half precision the statistic is taken in float32 and the normalised values are cast back before the gain
(the order of the LLaMA and Hugging Face code). The variance is the mean of squares of the centred values,
biased, as both norms are defined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from normbench.implementations.base import AddFunction, Function, Implementation, adding, binding
from normbench.records import Op

if TYPE_CHECKING:
    import torch


def layernorm(x: torch.Tensor, gain: torch.Tensor | None, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
    """LayerNorm over the last dimension: 9 ops in float32, 11 in half precision."""
    assert gain is not None
    assert bias is not None
    h = x.float()
    centred = h - h.mean(-1, keepdim=True)
    variance = centred.pow(2).mean(-1, keepdim=True)
    return (centred * (variance + eps).rsqrt()).to(x.dtype) * gain + bias


def rmsnorm(x: torch.Tensor, gain: torch.Tensor | None, _bias: torch.Tensor | None, eps: float) -> torch.Tensor:
    """RMSNorm over the last dimension: 6 ops in float32, 8 in half precision."""
    assert gain is not None
    h = x.float()
    mean_square = h.pow(2).mean(-1, keepdim=True)
    return (h * (mean_square + eps).rsqrt()).to(x.dtype) * gain


def add_layernorm(
    x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor | None, bias: torch.Tensor | None, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """LayerNorm of x + residual, and that sum: one op more."""
    h = x + residual
    return layernorm(h, gain, bias, eps), h


def add_rmsnorm(
    x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor | None, bias: torch.Tensor | None, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """RMSNorm of x + residual, and that sum: one op more."""
    h = x + residual
    return rmsnorm(h, gain, bias, eps), h


def _implementation(op: Op, function: Function, summary: str) -> Implementation:
    return Implementation(
        name=f"eager-{op}",
        op=op,
        provider="eager",
        summary=summary,
        build=lambda setting: binding(function, setting.eps),
    )


LAYERNORM = _implementation(Op.LAYERNORM, layernorm, "hand-written LayerNorm, a chain of tensor ops")
RMSNORM = _implementation(Op.RMSNORM, rmsnorm, "hand-written RMSNorm, a chain of tensor ops")


def _adding(op: Op, function: AddFunction) -> Implementation:
    return Implementation(
        name=f"eager-{op}",
        op=op,
        provider="eager",
        summary=f"x + residual, then the chain of eager-{op.norm}",
        build=lambda setting: adding(function, setting.eps),
    )


ADD_LAYERNORM = _adding(Op.ADD_LAYERNORM, add_layernorm)
ADD_RMSNORM = _adding(Op.ADD_RMSNORM, add_rmsnorm)
