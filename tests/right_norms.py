"""Norms that are right by arithmetic of every kind: who calls one of them wrong is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from normbench.implementations import Implementation
from normbench.implementations.base import Function, binding
from normbench.records import Op

_SMALLEST_EPS = 2.0**-80  # of which float32 holds the cube of the root

LN, RMS = Op.LAYERNORM, Op.RMSNORM
Statistic = Callable[[torch.Tensor, float], torch.Tensor]
"""Values as they are normalised, and eps, to the reciprocal of the root."""


def root(values: torch.Tensor, eps: float) -> torch.Tensor:
    """The reciprocal of the root of the mean square, as it should be."""
    return (values.square().mean(-1, keepdim=True) + eps).rsqrt()


def centred(op: Op, x: torch.Tensor) -> torch.Tensor:
    """X as it is normalised."""
    return x - x.mean(-1, keepdim=True) if op is LN else x


def finished(h: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Y from h, in h's format."""
    return h * gain.to(h.dtype) + (0.0 if bias is None else bias.to(h.dtype))


def exact(op: Op, statistic: Statistic = root) -> Function:
    """Float64 inside, rounded once at the end; the statistic may be another."""

    def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        values = centred(op, x.double())
        return finished(values * statistic(values, eps), gain, bias).to(x.dtype)

    return function


def rounded_last(op: Op) -> Function:
    """Float32 inside; gain and bias before the cast, as fused kernels do."""

    def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        values = centred(op, x.float())
        return finished(values * root(values, eps), gain, bias).to(x.dtype)

    return function


def left_in_float32(op: Op) -> Function:
    """The same without the cast: y in float32, as autocast on a GPU leaves it."""

    def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        values = centred(op, x.float())
        return finished(values * root(values, eps), gain, bias)

    return function


def gain_in_x_s_format(op: Op) -> Function:
    """Gain and bias rounded to x's format first, which is as coarse as its tolerance says anyway."""

    def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        values = centred(op, x.float())
        h = (values * root(values, eps)).to(x.dtype)
        return finished(h, gain, bias)

    return function


def welford(op: Op) -> Function:
    """A running mean and a running sum of squares in float32, column by column."""

    def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        values = x.float()
        mean = squares = torch.zeros_like(values[:, :1])
        for count, column in enumerate(values.split(1, dim=1), start=1):
            delta = column - mean if op is LN else column
            mean = mean + delta / count if op is LN else mean
            squares = squares + delta * (column - mean)
        r = (squares / x.shape[1] + eps).rsqrt()
        return finished((values - mean) * r, gain, bias).to(x.dtype)

    return function


def scaled(op: Op) -> Function:
    """Each row over a power of two of its own size first, so that no square overflows or underflows in float32."""

    def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        largest = x.detach().float().abs().amax(-1, keepdim=True).clamp(min=1.0)
        size = torch.exp2(torch.frexp(largest).exponent.float() - 1)
        values = centred(op, x.float() / size)
        r = (values.square().mean(-1, keepdim=True) + (eps / size / size).clamp(min=_SMALLEST_EPS)).rsqrt()
        return finished(values * r, gain, bias).to(x.dtype)

    return function


def saving(*, mean_in_half: bool, r_in_half: bool) -> Callable[[Op], Function]:
    """Own gradients from a mean and an r that were saved: in float32 as Apex has them, or in x's format."""

    def of(op: Op) -> Function:
        def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
            return _Saving.apply(op, x, gain, bias, eps, mean_in_half, r_in_half)  # type: ignore[no-untyped-call,no-any-return]

        return function

    return of


class _Saving(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        op: Op,
        x: torch.Tensor,
        gain: torch.Tensor,
        bias: Any,
        eps: float,
        mean_in_half: bool,
        r_in_half: bool,
    ) -> torch.Tensor:
        values = x.float()
        mean = values.mean(-1, keepdim=True) if op is LN else torch.zeros_like(values[:, :1])
        r = root(values - mean, eps)
        kept = mean.to(x.dtype) if mean_in_half else mean, r.to(x.dtype) if r_in_half else r
        ctx.save_for_backward(x, gain, *kept)
        ctx.op = op
        return finished((values - mean) * r, gain, bias).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, gain, mean, r = ctx.saved_tensors
        h = (x.float() - mean.float()) * r.float()
        dy = dy.float()
        g = dy * gain.float()
        dx = g - h * (g * h).mean(-1, keepdim=True)
        if ctx.op is LN:
            dx = dx - g.mean(-1, keepdim=True)
        dbias = dy.sum(0).to(gain.dtype) if ctx.op is LN else None
        return None, (dx * r.float()).to(x.dtype), (dy * h).sum(0).to(gain.dtype), dbias, None, None, None


def by_torch(op: Op) -> Function:
    """Torch's own functions, on float32 copies."""

    def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        if op is LN:
            return F.layer_norm(x.float(), x.shape[1:], gain.float(), bias.float(), eps).to(x.dtype)  # type: ignore[union-attr]
        return F.rms_norm(x.float(), x.shape[1:], gain.float(), eps).to(x.dtype)

    return function


FINE: dict[str, Callable[[Op], Function]] = {
    "rounded-last": rounded_last,
    "left-in-float32": left_in_float32,
    "gain-in-x-s-format": gain_in_x_s_format,
    "welford": welford,
    "saving-float32": saving(mean_in_half=False, r_in_half=False),
    "by-torch": by_torch,
}
"""Float32 inside: exact but for squares that overflow it."""

WIDE: dict[str, Callable[[Op], Function]] = {"exact": exact, "scaled": scaled}
"""Right for those, too."""

STORING: dict[str, Callable[[Op], Function]] = {"saving-r-in-half": saving(mean_in_half=False, r_in_half=True)}
"""Right as long as half precision holds the reciprocal of the root."""


def implementation(op: Op, name: str, function: Function) -> Implementation:
    """A norm of its own."""
    return Implementation(
        name=f"{name}-{op}",
        op=op,
        provider=name,
        summary=name.replace("-", " "),
        build=lambda setting: binding(function, setting.eps),
    )
