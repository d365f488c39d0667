"""The modules that torch brings: ``torch.nn.LayerNorm`` and ``torch.nn.RMSNorm``."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from normbench.implementations.base import Bind, Forward, Implementation, Setting
from normbench.records import Flag, Op

if TYPE_CHECKING:
    import torch


def _build_layernorm(setting: Setting) -> Bind:
    import torch

    def bind(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
        module = torch.nn.LayerNorm(setting.cell.width, eps=setting.eps, device="meta")
        module.weight, module.bias = gain, bias  # type: ignore[assignment]
        return module

    return bind


def _build_rmsnorm(setting: Setting) -> Bind:
    import torch

    # Said once a process, for whichever cell came first; the flag says it of every cell it holds for.
    warnings.filterwarnings("ignore", message="Mismatch dtype between input and weight")

    def bind(gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
        module = torch.nn.RMSNorm(setting.cell.width, eps=setting.eps, device="meta")
        module.weight = gain  # type: ignore[assignment]
        return module

    return bind


def _observe_rmsnorm(setting: Setting, device: torch.device) -> tuple[Flag, ...]:
    """``nn.RMSNorm`` is a chain of ops where torch has no fused kernel for the device and the dtypes."""
    from normbench.device import runs_fused_rmsnorm

    fused = runs_fused_rmsnorm(device, setting.cell.dtype, setting.cell.parameter_dtype)
    return () if fused else (Flag.COMPOSITE,)


LAYERNORM = Implementation(
    name="nn-layernorm",
    op=Op.LAYERNORM,
    provider="nn",
    summary="torch.nn.LayerNorm",
    build=_build_layernorm,
)
RMSNORM = Implementation(
    name="nn-rmsnorm",
    op=Op.RMSNORM,
    provider="nn",
    summary="torch.nn.RMSNorm; one kernel on CUDA where the dtypes allow it, a chain of ops elsewhere",
    build=_build_rmsnorm,
    observe=_observe_rmsnorm,
)
