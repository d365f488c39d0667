"""NVIDIA apex's fused modules: parameters of x's dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normbench.implementations.base import Bind, Forward, Implementation, Setting
from normbench.implementations.refusing import equal_dtypes, unsupported
from normbench.optional import APEX
from normbench.records import Op

if TYPE_CHECKING:
    import torch


def _rmsnorm(setting: Setting) -> Bind:
    from apex.normalization import FusedRMSNorm

    def bind(gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
        module = FusedRMSNorm(setting.cell.width, eps=setting.eps)
        module.weight = gain
        return module  # type: ignore[no-any-return]

    return bind


def _layernorm(setting: Setting) -> Bind:
    from apex.normalization import FusedLayerNorm

    def bind(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
        module = FusedLayerNorm(setting.cell.width, eps=setting.eps)
        module.weight, module.bias = gain, bias
        return module  # type: ignore[no-any-return]

    return bind


LAYERNORM = Implementation(
    name="apex-layernorm",
    op=Op.LAYERNORM,
    provider="apex",
    summary="NVIDIA apex's FusedLayerNorm",
    build=_layernorm,
    unsupported=unsupported(APEX, equal_dtypes),
    package=APEX,
)
RMSNORM = Implementation(
    name="apex-rmsnorm",
    op=Op.RMSNORM,
    provider="apex",
    summary="NVIDIA apex's FusedRMSNorm",
    build=_rmsnorm,
    unsupported=unsupported(APEX, equal_dtypes),
    package=APEX,
)
