"""Norms that are computed wrongly, as people get them wrong; by torch ops alone, so that they run on any device."""

from __future__ import annotations

import torch

from normbench.implementations import eager


def unbiased_layernorm(x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """With the variance divided by n - 1, as ``Tensor.var`` does unless told."""
    h = x.float()
    normalised = (h - h.mean(-1, keepdim=True)) * (h.var(-1, keepdim=True) + eps).rsqrt()
    return normalised.to(x.dtype) * gain + bias


def eps_outside(x: torch.Tensor, gain: torch.Tensor, _bias: object, eps: float) -> torch.Tensor:
    h = x.float()
    return (h / (h.pow(2).mean(-1, keepdim=True).sqrt() + eps)).to(x.dtype) * gain


def without_mean(x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    return eager.rmsnorm(x, gain, None, eps) + bias


def without_gain(x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    return eager.layernorm(x, torch.ones_like(x[0]), bias, eps) + 0 * gain


def without_bias(x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    return eager.layernorm(x, gain, torch.zeros_like(x[0]), eps) + 0 * bias
