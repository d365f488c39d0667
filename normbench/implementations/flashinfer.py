"""FlashInfer's kernels, for serving: neither has a backward. Its LayerNorm takes bf16 with parameters in fp32."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normbench.implementations.base import Bind, Forward, Implementation, Setting
from normbench.implementations.refusing import equal_dtypes, inference_only, parameters_in, unsupported
from normbench.optional import FLASHINFER
from normbench.records import DType, Op

if TYPE_CHECKING:
    import torch


def _rmsnorm(setting: Setting) -> Bind:
    from flashinfer.norm import rmsnorm

    def bind(gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
        return lambda x: rmsnorm(x, gain, eps=setting.eps)

    return bind


def _add_rmsnorm(setting: Setting) -> Bind:
    from flashinfer.norm import fused_add_rmsnorm

    def bind(gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
        def forward(x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            fused_add_rmsnorm(x, residual, gain, eps=setting.eps)  # y is written into x, the sum into the residual
            return x, residual

        return forward

    return bind


def _layernorm(setting: Setting) -> Bind:
    from flashinfer.norm import layernorm

    def bind(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
        return lambda x: layernorm(x, gain, bias, eps=setting.eps)

    return bind


def _bf16(setting: Setting) -> str | None:
    dtype = setting.cell.dtype
    return None if dtype is DType.BF16 else f"takes x in bf16, not {dtype}"


LAYERNORM = Implementation(
    name="flashinfer-layernorm",
    op=Op.LAYERNORM,
    provider="flashinfer",
    summary="FlashInfer's LayerNorm, inference only, bf16 with parameters in fp32",
    build=_layernorm,
    unsupported=unsupported(FLASHINFER, inference_only, _bf16, parameters_in(DType.FP32)),
    package=FLASHINFER,
)
RMSNORM = Implementation(
    name="flashinfer-rmsnorm",
    op=Op.RMSNORM,
    provider="flashinfer",
    summary="FlashInfer's RMSNorm, inference only",
    build=_rmsnorm,
    unsupported=unsupported(FLASHINFER, inference_only, equal_dtypes),
    package=FLASHINFER,
)
ADD_RMSNORM = Implementation(
    name="flashinfer-add-rmsnorm",
    op=Op.ADD_RMSNORM,
    provider="flashinfer",
    summary="FlashInfer's residual add and RMSNorm in one kernel, inference only, written into x and the residual",
    build=_add_rmsnorm,
    unsupported=unsupported(FLASHINFER, inference_only, equal_dtypes),
    mutates=True,
    package=FLASHINFER,
)
