"""Liger-Kernel's Triton kernels, called as its users call them: with the casts of Llama, and in place in backward.

The RMSNorm's backward writes dx into the dy that it is given (in_place=True, its default), which saves an
allocation and costs whoever else reads that dy: declared, so that it gets a dy of its own for each call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from normbench.implementations.base import Bind, Forward, Implementation, Setting
from normbench.implementations.refusing import unsupported, widest
from normbench.optional import LIGER
from normbench.records import Mode, Op

if TYPE_CHECKING:
    import torch

WIDEST = 65_536
"""Elements of a row: one Triton block holds it, and Liger takes no larger one."""


def _rmsnorm(setting: Setting) -> Bind:
    from liger_kernel.transformers.functional import liger_rms_norm

    def bind(gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
        return lambda x: liger_rms_norm(x, gain, setting.eps)

    return bind


def _layernorm(setting: Setting) -> Bind:
    from liger_kernel.transformers.functional import liger_layer_norm

    def bind(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
        return lambda x: liger_layer_norm(x, gain, bias, setting.eps)

    return bind


def _add_rmsnorm(setting: Setting) -> Bind:
    from liger_kernel.transformers.functional import liger_fused_add_rms_norm

    def bind(gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
        return lambda x, residual: liger_fused_add_rms_norm(x, residual, gain, setting.eps)

    return bind


LAYERNORM = Implementation(
    name="liger-layernorm",
    op=Op.LAYERNORM,
    provider="liger",
    summary="Liger-Kernel's LayerNorm in Triton",
    build=_layernorm,
    unsupported=unsupported(LIGER, widest(WIDEST)),
    package=LIGER,
)
RMSNORM = Implementation(
    name="liger-rmsnorm",
    op=Op.RMSNORM,
    provider="liger",
    summary="Liger-Kernel's RMSNorm in Triton; its backward writes dx into dy",
    build=_rmsnorm,
    unsupported=unsupported(LIGER, widest(WIDEST)),
    mutates=(Mode.BACKWARD, Mode.FORWARD_BACKWARD),
    package=LIGER,
)
ADD_RMSNORM = Implementation(
    name="liger-add-rmsnorm",
    op=Op.ADD_RMSNORM,
    provider="liger",
    summary="Liger-Kernel's residual add and RMSNorm in one Triton kernel; its backward writes dx into dy",
    build=_add_rmsnorm,
    unsupported=unsupported(LIGER, widest(WIDEST)),
    mutates=(Mode.BACKWARD, Mode.FORWARD_BACKWARD),
    package=LIGER,
)
