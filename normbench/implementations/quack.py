"""quack's kernels, written in CuTe for Hopper and Blackwell. Its LayerNorm has no autograd.

torch has a copy of quack's RMSNorm, which nn.RMSNorm runs in some places (``normbench.native``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from normbench.implementations.base import Bind, Forward, Implementation, Setting
from normbench.implementations.refusing import inference_only, parameters_in, unsupported
from normbench.optional import QUACK
from normbench.records import DType, Op

if TYPE_CHECKING:
    import torch

WIDEST_FP32_BACKWARD = 131_072
"""Elements of a row in float32: more do not fit into shared memory beside their gradients."""


def _rmsnorm(setting: Setting) -> Bind:
    from quack import rmsnorm

    def bind(gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
        return lambda x: rmsnorm(x, gain, eps=setting.eps)

    return bind


def _add_rmsnorm(setting: Setting) -> Bind:
    from quack import rmsnorm

    def bind(gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
        return lambda x, residual: rmsnorm(x, gain, residual=residual, eps=setting.eps, prenorm=True)

    return bind


def _layernorm(setting: Setting) -> Bind:
    from quack.rmsnorm import layernorm_fwd

    def bind(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
        return lambda x: layernorm_fwd(x, gain, bias, setting.eps)

    return bind


def _even_in_half(setting: Setting) -> str | None:
    """Rows are copied into shared memory 32 bits at a time at the least."""
    odd = setting.cell.dtype.itemsize * setting.cell.width % 4
    return f"copies 32 bits at a time: half precision takes even widths, not {setting.cell.width}" if odd else None


def _backward_fits(setting: Setting) -> str | None:
    cell = setting.cell
    if not cell.mode.differentiates or cell.dtype is not DType.FP32 or cell.width <= WIDEST_FP32_BACKWARD:
        return None
    return f"its backward takes fp32 rows of at most {WIDEST_FP32_BACKWARD:,} elements, not {cell.width:,}"


LAYERNORM = Implementation(
    name="quack-layernorm",
    op=Op.LAYERNORM,
    provider="quack",
    summary="quack's LayerNorm in CuTe, inference only, parameters in fp32",
    build=_layernorm,
    unsupported=unsupported(QUACK, inference_only, parameters_in(DType.FP32), _even_in_half),
    package=QUACK,
)
RMSNORM = Implementation(
    name="quack-rmsnorm",
    op=Op.RMSNORM,
    provider="quack",
    summary="quack's RMSNorm in CuTe",
    build=_rmsnorm,
    unsupported=unsupported(QUACK, _even_in_half, _backward_fits),
    package=QUACK,
)
ADD_RMSNORM = Implementation(
    name="quack-add-rmsnorm",
    op=Op.ADD_RMSNORM,
    provider="quack",
    summary="quack's residual add and RMSNorm in one CuTe kernel",
    build=_add_rmsnorm,
    unsupported=unsupported(QUACK, _even_in_half, _backward_fits),
    package=QUACK,
)
