"""Transformer Engine's modules. Without autocast they compute, and return y, in their parameters' dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normbench.implementations.base import Bind, Forward, Implementation, Setting
from normbench.implementations.refusing import unsupported
from normbench.optional import TRANSFORMER_ENGINE
from normbench.records import Op

if TYPE_CHECKING:
    import torch


def _rmsnorm(setting: Setting) -> Bind:
    from transformer_engine.pytorch import RMSNorm

    def bind(gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
        module = _empty(RMSNorm, setting, gain)
        module.weight = gain
        return module  # type: ignore[no-any-return]

    return bind


def _layernorm(setting: Setting) -> Bind:
    from transformer_engine.pytorch import LayerNorm

    def bind(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
        module = _empty(LayerNorm, setting, gain)
        module.weight, module.bias = gain, bias
        return module  # type: ignore[no-any-return]

    return bind


def _empty(module: Any, setting: Setting, gain: torch.Tensor | None) -> Any:
    """A module without memory for parameters; some releases compute in its dtype, not in its parameters'."""
    assert gain is not None
    return module(setting.cell.width, eps=setting.eps, device="meta", dtype=gain.dtype)


LAYERNORM = Implementation(
    name="te-layernorm",
    op=Op.LAYERNORM,
    provider="te",
    summary="Transformer Engine's LayerNorm",
    build=_layernorm,
    unsupported=unsupported(TRANSFORMER_ENGINE),
    package=TRANSFORMER_ENGINE,
)
RMSNORM = Implementation(
    name="te-rmsnorm",
    op=Op.RMSNORM,
    provider="te",
    summary="Transformer Engine's RMSNorm",
    build=_rmsnorm,
    unsupported=unsupported(TRANSFORMER_ENGINE),
    package=TRANSFORMER_ENGINE,
)
