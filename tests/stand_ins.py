"""Stand-ins for optional packages: modules of the same names and signatures, whose arithmetic is torch's.

They keep to what the packages' kernels ask of who calls them: dtypes, shapes, what is written where.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from normbench import optional
from normbench.implementations import eager
from normbench.optional import Package

HALVES = (torch.float16, torch.bfloat16)


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, package: Package) -> None:
    """Let a package be found and imported until the test ends."""
    (folder / package.module / package.holds).mkdir(parents=True)
    for name, contents in CONTENTS[package].items():
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, loader=None, is_package=True)
        module.__spec__.submodule_search_locations = [str(folder / package.module)]
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)


def uninstall_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no optional package be found, whatever this machine has."""
    monkeypatch.setattr(Package, "is_installed", property(lambda _package: False))


class LigerRMSNorm(torch.autograd.Function):
    """In the order of Llama; backward overwrites dy with dx where ``in_place``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, eps: float, in_place: bool) -> Tensor:
        ctx.save_for_backward(x, gain)
        ctx.eps, ctx.in_place = eps, in_place
        return eager.rmsnorm(x, gain, None, eps).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, None, None]:
        x, gain = (tensor.detach().double().requires_grad_() for tensor in ctx.saved_tensors)
        with torch.enable_grad():
            y = x * (x.square().mean(-1, keepdim=True) + ctx.eps).rsqrt() * gain
        dx, dgain = torch.autograd.grad(y, (x, gain), dy.double())
        gain_dtype = ctx.saved_tensors[1].dtype
        if not ctx.in_place:
            return dx.to(dy.dtype), dgain.to(gain_dtype), None, None
        return dy.copy_(dx), dgain.to(gain_dtype), None, None


def liger_rms_norm(
    X: Tensor,  # noqa: N803 - as it is called there
    W: Tensor,  # noqa: N803
    eps: float,
    offset: float = 0.0,
    casting_mode: str = "llama",
    in_place: bool = True,
) -> Tensor:
    assert (offset, casting_mode) == (0.0, "llama")
    y = LigerRMSNorm.apply(X, W, eps, in_place)
    assert isinstance(y, Tensor)
    return y


class LigerFusedAddRMSNorm(torch.autograd.Function):
    """The sum, rounded to x's dtype, and its norm; backward overwrites dy with dx, one tensor for x and residual."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, residual: Tensor, gain: Tensor, eps: float, in_place: bool
    ) -> tuple[Tensor, Tensor]:
        h = x + residual
        ctx.save_for_backward(h, gain)
        ctx.eps, ctx.in_place = eps, in_place
        return eager.rmsnorm(h, gain, None, eps).to(x.dtype), h

    @staticmethod
    def backward(ctx: Any, dy: Tensor, dh: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        h, gain = (tensor.detach().double().requires_grad_() for tensor in ctx.saved_tensors)
        with torch.enable_grad():
            y = h * (h.square().mean(-1, keepdim=True) + ctx.eps).rsqrt() * gain
        dx, dgain = torch.autograd.grad(y, (h, gain), dy.double())
        dx = dx + dh.view(dy.shape).double()
        result = dy.copy_(dx) if ctx.in_place else dx.to(dy.dtype)
        return result, result, dgain.to(ctx.saved_tensors[1].dtype), None, None


def liger_fused_add_rms_norm(
    X: Tensor,  # noqa: N803 - as it is called there
    R: Tensor,  # noqa: N803
    W: Tensor,  # noqa: N803
    eps: float,
    offset: float = 0.0,
    casting_mode: str = "llama",
    in_place: bool = True,
) -> tuple[Tensor, Tensor]:
    assert (offset, casting_mode) == (0.0, "llama")
    y, h = LigerFusedAddRMSNorm.apply(X, R, W, eps, in_place)
    return y, h


def liger_layer_norm(X: Tensor, W: Tensor, B: Tensor, eps: float) -> Tensor:  # noqa: N803 - as it is called there
    return exact_layernorm(X, W, B, eps)


def quack_rmsnorm(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    residual_dtype: torch.dtype | None = None,
    eps: float = 1e-6,
    prenorm: bool = False,
    weight_offset: float = 0.0,
) -> Tensor | tuple[Tensor, Tensor]:
    assert (bias, out_dtype, residual_dtype, weight_offset) == (None, None, None, 0.0)
    assert prenorm is (residual is not None)
    assert weight is not None
    if x.dtype in HALVES and x.shape[-1] % 2:
        raise RuntimeError("cp.async copies 32, 64 or 128 bits")
    if torch.is_grad_enabled() and x.dtype is torch.float32 and x.shape[-1] > 128 * 1024:
        raise ValueError("RMSNormBackward does not support N > 128k with dtype >= 32 bits")
    if residual is None:
        return exact_rmsnorm(x, weight, eps)
    h = x + residual
    return exact_rmsnorm(h, weight, eps), h


def quack_layernorm_fwd(x: Tensor, weight: Tensor, bias: Tensor | None = None, eps: float = 1e-6) -> Tensor:
    assert weight.dtype == torch.float32, "Weight must be float32"
    assert bias is not None
    assert bias.dtype == torch.float32, "Bias must be float32"
    return exact_layernorm(x, weight, bias, eps).detach()


def flashinfer_rmsnorm(
    input: Tensor,  # noqa: A002 - as it is called there
    weight: Tensor,
    eps: float = 1e-6,
    out: Tensor | None = None,
    enable_pdl: bool | None = None,
) -> Tensor:
    assert (out, enable_pdl) == (None, None)
    assert input.dtype is weight.dtype
    return exact_rmsnorm(input, weight, eps).detach()


def flashinfer_fused_add_rmsnorm(
    input: Tensor,  # noqa: A002 - as it is called there
    residual: Tensor,
    weight: Tensor,
    eps: float = 1e-6,
    enable_pdl: bool | None = None,
) -> None:
    assert enable_pdl is None
    assert input.dtype is residual.dtype is weight.dtype
    residual.add_(input)
    input.copy_(exact_rmsnorm(residual, weight, eps))


def flashinfer_layernorm(
    input: Tensor,  # noqa: A002 - as it is called there
    gemma: Tensor,
    beta: Tensor,
    eps: float = 1e-6,
) -> Tensor:
    assert input.dtype is torch.bfloat16
    assert gemma.dtype is beta.dtype is torch.float32
    return exact_layernorm(input, gemma, beta, eps).detach()


class ApexRMSNorm(torch.nn.Module):
    """Its kernels read the parameters as if they had x's dtype."""

    def __init__(
        self,
        normalized_shape: int,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        assert (elementwise_affine, memory_efficient) == (True, False)
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(normalized_shape))

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - as it is called there
        if self.weight.dtype is not input.dtype:
            raise RuntimeError(f"expected scalar type {input.dtype} but found {self.weight.dtype}")
        return exact_rmsnorm(input, self.weight, self.eps)


class ApexLayerNorm(ApexRMSNorm):
    def __init__(self, normalized_shape: int, eps: float = 1e-5) -> None:
        super().__init__(normalized_shape, eps)
        self.bias = torch.nn.Parameter(torch.zeros(normalized_shape))

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - as it is called there
        if self.weight.dtype is not input.dtype:
            raise RuntimeError(f"expected scalar type {input.dtype} but found {self.weight.dtype}")
        return exact_layernorm(input, self.weight, self.bias, self.eps)


class TransformerEngineRMSNorm(torch.nn.Module):
    """Computes in the dtype that it was made with, as the older releases do."""

    def __init__(
        self,
        normalized_shape: int,
        eps: float = 1e-5,
        sequence_parallel: bool | None = None,
        params_dtype: torch.dtype | None = None,
        zero_centered_gamma: bool = False,
        *,
        device: str = "cuda",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        assert (sequence_parallel, params_dtype, zero_centered_gamma) == (None, None, False)
        self.eps, self.dtype = eps, dtype
        self.weight = torch.nn.Parameter(torch.empty(normalized_shape, device=device, dtype=dtype))

    def forward(self, input_: Tensor) -> Tensor:
        return exact_rmsnorm(input_.to(self.dtype), self.weight.to(self.dtype), self.eps)


class TransformerEngineLayerNorm(TransformerEngineRMSNorm):
    def __init__(self, normalized_shape: int, eps: float = 1e-5, **options: Any) -> None:
        super().__init__(normalized_shape, eps, **options)
        self.bias = torch.nn.Parameter(torch.empty_like(self.weight))

    def forward(self, input_: Tensor) -> Tensor:
        gain, bias = self.weight.to(self.dtype), self.bias.to(self.dtype)
        return exact_layernorm(input_.to(self.dtype), gain, bias, self.eps)


def exact_rmsnorm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    """Rounded once, in x's dtype."""
    h = x.double()
    return (h * (h.square().mean(-1, keepdim=True) + eps).rsqrt() * gain.double()).to(x.dtype)


def exact_layernorm(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Rounded once, in x's dtype."""
    centred = x.double() - x.double().mean(-1, keepdim=True)
    h = centred * (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
    return (h * gain.double() + bias.double()).to(x.dtype)


CONTENTS: Mapping[Package, Mapping[str, Mapping[str, object]]] = {
    optional.LIGER: {
        "liger_kernel": {},
        "liger_kernel.transformers": {},
        "liger_kernel.transformers.functional": {
            "liger_rms_norm": liger_rms_norm,
            "liger_layer_norm": liger_layer_norm,
            "liger_fused_add_rms_norm": liger_fused_add_rms_norm,
        },
    },
    optional.QUACK: {
        "quack": {"rmsnorm": quack_rmsnorm},
        "quack.rmsnorm": {"rmsnorm": quack_rmsnorm, "layernorm_fwd": quack_layernorm_fwd},
    },
    optional.FLASHINFER: {
        "flashinfer": {},
        "flashinfer.norm": {
            "rmsnorm": flashinfer_rmsnorm,
            "layernorm": flashinfer_layernorm,
            "fused_add_rmsnorm": flashinfer_fused_add_rmsnorm,
        },
    },
    optional.APEX: {
        "apex": {},
        "apex.normalization": {"FusedRMSNorm": ApexRMSNorm, "FusedLayerNorm": ApexLayerNorm},
    },
    optional.TRANSFORMER_ENGINE: {
        "transformer_engine": {},
        "transformer_engine.pytorch": {"RMSNorm": TransformerEngineRMSNorm, "LayerNorm": TransformerEngineLayerNorm},
    },
}
"""The modules of each package, with what is asked of them."""
