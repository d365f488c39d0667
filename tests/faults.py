"""The faults that norms have, each put into one that is right otherwise.

All but their fault is done in float64, so that nothing else is found of them. Each computes by torch ops alone and so
runs on any device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from operator import attrgetter
from typing import Any

import torch

from normbench.implementations import Bind, Setting, Unset
from normbench.implementations.base import Function, binding
from normbench.records import Op
from tests.right_norms import LN, RMS, Statistic, centred, exact, finished, root

Make = Callable[[Op], Function]
Change = Callable[[torch.Tensor], torch.Tensor]


def on_x(change: Change) -> Make:
    """Right, of an x that was changed before."""

    def of(op: Op) -> Function:
        norm = exact(op)
        return lambda x, gain, bias, eps: norm(change(x), gain, bias, eps)

    return of


def on_y(change: Change) -> Make:
    """Right, but for what is done to y afterwards."""

    def of(op: Op) -> Function:
        norm = exact(op)
        return lambda x, gain, bias, eps: change(norm(x, gain, bias, eps))

    return of


def on_parameters(change: Change) -> Make:
    """Right, of a gain and a bias that were changed before."""

    def of(op: Op) -> Function:
        norm = exact(op)

        def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
            return norm(x, change(gain), None if bias is None else change(bias), eps)

        return function

    return of


def with_eps(change: Callable[[float], float]) -> Make:
    """Right, for another eps than it is told."""

    def of(op: Op) -> Function:
        norm = exact(op)
        return lambda x, gain, bias, eps: norm(x, gain, bias, change(eps))

    return of


def with_root(statistic: Statistic) -> Make:
    """Right, but for the root."""
    return lambda op: exact(op, statistic)


@dataclass(frozen=True, kw_only=True)
class Backward:
    """What a backward knows, in float64 but for what it was handed, and the gradients as they should be."""

    op: Op
    handed: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
    dy: torch.Tensor
    gain: torch.Tensor
    h: torch.Tensor
    r: torch.Tensor

    @property
    def g(self) -> torch.Tensor:
        return self.dy * self.gain

    @property
    def along(self) -> torch.Tensor:
        return self.h * (self.g * self.h).mean(-1, keepdim=True)

    @property
    def mean(self) -> torch.Tensor | float:
        return self.g.mean(-1, keepdim=True) if self.op is LN else 0.0

    @property
    def dx(self) -> torch.Tensor:
        return self.r * (self.g - self.mean - self.along)

    @property
    def dgain(self) -> torch.Tensor:
        return (self.dy * self.h).sum(0)

    @property
    def dbias(self) -> torch.Tensor:
        return self.dy.sum(0)


def with_gradients(**changes: Callable[[Backward], torch.Tensor]) -> Make:
    """Right in y, and in the gradients that are not named; x, dy and gain are what it was ``handed``."""

    def of(op: Op) -> Function:
        norm = exact(op)

        class Own(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor, gain: torch.Tensor, bias: Any, eps: float) -> torch.Tensor:
                ctx.save_for_backward(x, gain)
                ctx.eps = eps
                return norm(x, gain, bias, eps)

            @staticmethod
            def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
                x, gain = ctx.saved_tensors
                values = centred(op, x.double())
                r = root(values, ctx.eps)
                handed, h = (x, dy, gain), values * r
                known = Backward(op=op, handed=handed, dy=dy.double(), gain=gain.double(), h=h, r=r)
                dx, dgain, dbias = (changes.get(name, attrgetter(name))(known) for name in ("dx", "dgain", "dbias"))
                return dx.to(x.dtype), dgain.to(gain.dtype), dbias.to(gain.dtype) if op is LN else None, None

        return lambda x, gain, bias, eps: Own.apply(x, gain, bias, eps)  # type: ignore[no-untyped-call,no-any-return]

    return of


def in_its_own_format(op: Op) -> Function:
    """Everything in x's format, as it is first written down."""

    def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        values = centred(op, x)
        return finished(values * root(values, eps), gain, bias)

    return function


def in_one_pass(_op: Op) -> Function:
    """LayerNorm by E[x²] - E[x]², in float32, as kernels do that read x once."""

    def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        values = x.float()
        mean = values.mean(-1, keepdim=True)
        variance = (values.square().mean(-1, keepdim=True) - mean.square()).clamp(min=0)
        return finished((values - mean) * (variance + eps).rsqrt(), gain, bias).to(x.dtype)

    return function


def of_the_other(op: Op) -> Function:
    """LayerNorm that takes no mean off, and RMSNorm that does."""
    other = RMS if op is LN else LN

    def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        values = centred(other, x.double())
        return finished(values * root(values, eps), gain, bias).to(x.dtype)

    return function


def uncentred(_op: Op) -> Function:
    """Over the root of the variance, and nothing taken off: half of each norm."""

    def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        return finished(x.double() * root(centred(LN, x.double()), eps), gain, bias).to(x.dtype)

    return function


def with_a_constant_root(values: torch.Tensor, eps: float) -> torch.Tensor:
    """A root through which no gradient flows."""
    return root(values, eps).detach()


def eps_outside(values: torch.Tensor, eps: float) -> torch.Tensor:
    """Added to the root; without a gradient at 0, where none is finite."""
    square = values.square().mean(-1, keepdim=True)
    return 1 / (torch.where(square > 0, square, 1.0).sqrt() * (square > 0) + eps)


def largest_of_both(values: torch.Tensor, eps: float) -> torch.Tensor:
    """The mean square or eps, whichever is larger."""
    return values.square().mean(-1, keepdim=True).clamp(min=eps).rsqrt()


def over_one_less(values: torch.Tensor, eps: float) -> torch.Tensor:
    """Over N - 1, as ``var`` does unless told."""
    square = values.square().sum(-1, keepdim=True) / max(values.shape[-1] - 1, 1)
    return (square + eps).rsqrt()


def mean_of_sizes(values: torch.Tensor, eps: float) -> torch.Tensor:
    """The mean size in place of the root of the mean square."""
    return 1 / (values.abs().mean(-1, keepdim=True) + eps**0.5)


def over_all_rows(values: torch.Tensor, eps: float) -> torch.Tensor:
    """One statistic for the whole batch."""
    return (values.square().mean().expand(values.shape[0], 1) + eps).rsqrt()


def with_momentum(values: torch.Tensor, eps: float) -> torch.Tensor:
    """A tenth of the statistic of the row before."""
    square = values.square().mean(-1, keepdim=True)
    return (0.9 * square + 0.1 * square.roll(1, 0) + eps).rsqrt()


def of_another_dimension(op: Op) -> Function:
    """Over the first dimension that is as long as gain: the rows, where there are as many as columns."""

    def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        along, values = list(x.shape).index(gain.shape[0]), x.double()
        values = values - values.mean(along, keepdim=True) if op is LN else values
        return finished(values * (values.square().mean(along, keepdim=True) + eps).rsqrt(), gain, bias).to(x.dtype)

    return function


def scaled_by_the_batch(op: Op) -> Function:
    """Times a number that the sum of all rows decides, and over it: within rounding, and other bits."""

    def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        total = x.detach().double().nan_to_num(0.0, 0.0, 0.0).sum().abs()
        size = 1 + torch.frexp(total).mantissa.to(x.dtype)
        values = centred(op, x.double())
        h = (values * root(values, eps)).to(x.dtype) * size / size
        return finished(h.double(), gain, bias).to(x.dtype)

    return function


def packed(tensor: torch.Tensor) -> torch.Tensor:
    """What a kernel reads that is handed an address, and takes rows to follow one another."""
    return tensor.as_strided(tensor.shape, (tensor.shape[1], 1)) if tensor.numel() else tensor


def nearly(tensor: torch.Tensor) -> torch.Tensor:
    """One element moved by a rounding, which chance chooses: as atomics leave it."""
    if not tensor.numel():
        return tensor
    moved, at = torch.zeros(tensor.numel(), dtype=tensor.dtype), int(torch.randint(tensor.numel(), ()))
    moved[at] = tensor.detach().flatten()[at] * torch.finfo(tensor.dtype).eps
    return tensor + moved.view(tensor.shape)


def packed_rows(tensor: torch.Tensor) -> torch.Tensor:
    """The same of a kernel that looks at the last stride alone."""
    return packed(tensor) if tensor.stride(-1) == 1 else tensor


def by_position(y: torch.Tensor) -> torch.Tensor:
    """A tenth too large in the last row, and less in each before."""
    return y * (1 + 0.1 * torch.arange(1, y.shape[0] + 1).unsqueeze(1) / max(y.shape[0], 1)).to(y.dtype)


def in_float8(tensor: torch.Tensor) -> torch.Tensor:
    """Rounded to a format of 2 bits after the first."""
    return tensor.to(torch.float8_e5m2).to(tensor.dtype)


def without_subnormals(x: torch.Tensor) -> torch.Tensor:
    """Zeros for what is below the smallest normal number of the format."""
    return x - torch.where(x.abs() < torch.finfo(x.dtype).tiny, x, 0.0).detach()


def spreading(x: torch.Tensor) -> torch.Tensor:
    """Times 0 and added to each: nothing, but for what is not finite."""
    return x + (0 * x.double().sum()).to(x.dtype).detach()


def tail_lost(y: torch.Tensor) -> torch.Tensor:
    """Zeros in the last row where they come in pairs and one is left."""
    kept = torch.ones_like(y[:, :1])
    kept[y.shape[0] - y.shape[0] % 2 :] = 0
    return y * kept


def only_in_autocast(change: Change) -> Change:
    """Where autocast is on."""
    return lambda y: change(y) if torch.is_autocast_enabled("cpu") else y


def only_without_gradients(change: Change) -> Change:
    """Where nobody asks for gradients."""
    return lambda y: y if torch.is_grad_enabled() else change(y)


def only_of(rows: int, change: Change) -> Change:
    """Where there are so many rows."""
    return lambda x: change(x) if x.shape[0] == rows else x


def only_mixed(change: Change) -> Make:
    """Where gain is of another format than x."""

    def of(op: Op) -> Function:
        norm = exact(op)

        def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
            return norm(x, gain if gain.dtype is x.dtype else change(gain), bias, eps)

        return function

    return of


def raising(what: str) -> Change:
    """Raises."""

    def change(_tensor: torch.Tensor) -> torch.Tensor:
        raise RuntimeError(what)

    return change


def writing_into(which: int) -> Callable[[Backward], torch.Tensor]:
    """Dx as it should be, in the memory of x, dy or gain."""

    def dx(known: Backward) -> torch.Tensor:
        found = known.dx
        with torch.no_grad():
            known.handed[which].data.add_(1)
        return found

    return dx


def into_dy(known: Backward) -> torch.Tensor:
    """Dx in the memory of dy, as some kernels save memory."""
    return known.handed[1].copy_(known.dx)


def of_packed_dy(known: Backward) -> torch.Tensor:
    """Dx of what lies in memory where dy begins, as if it were packed."""
    return replace(known, dy=packed(known.handed[1]).double()).dx


def viewing_dy(known: Backward) -> torch.Tensor:
    """Dx, for a dy that can be seen as one row."""
    known.handed[1].view(-1)
    return known.dx


def every_third(op: Op) -> Function:
    """Each third call is off by a rounding."""
    norm, calls = exact(op), count(1)

    def function(x: torch.Tensor, gain: Any, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        y = norm(x, gain, bias, eps)
        return y if next(calls) % 3 else nearly(y)

    return function


class Tagged(torch.Tensor):
    """A tensor of a class of its own."""


class AsSubclass(torch.autograd.Function):
    """Hands on what it is given, as that class."""

    @staticmethod
    def forward(_ctx: Any, y: torch.Tensor) -> torch.Tensor:
        return y.detach().as_subclass(Tagged)

    @staticmethod
    def backward(_ctx: Any, dy: torch.Tensor) -> torch.Tensor:
        return dy


def scaled_parameters(*, gain_plus: float = 0.0, bias_times: float = 1.0) -> Make:
    """Right, of another gain and bias: a gain that counts from 1, say, as some models store it."""

    def of(op: Op) -> Function:
        norm = exact(op)
        return lambda x, gain, bias, eps: norm(x, gain + gain_plus, None if bias is None else bias * bias_times, eps)  # type: ignore[operator]

    return of


def where_nan(x: torch.Tensor) -> torch.Tensor:
    """Zeros for NaNs."""
    return x.nan_to_num(0.0, torch.inf, -torch.inf)


def where_infinite(x: torch.Tensor) -> torch.Tensor:
    """The largest numbers for infinities."""
    most = torch.finfo(x.dtype).max
    return x.clamp(-most, most)


def without_rows(value: float) -> Callable[[Backward], torch.Tensor]:
    """Dgain as it should be, where there are rows to sum up."""
    return lambda known: known.dgain if known.dy.shape[0] else torch.full_like(known.dgain, value)


def summed_over(rows: int, terms: Callable[[Backward], torch.Tensor]) -> Callable[[Backward], torch.Tensor]:
    """Only the first rows of a sum, as a grid leaves it that is a block too small."""
    return lambda known: terms(known)[:rows].sum(0)


def other_default_eps(op: Op) -> Unset:
    """What adds another eps, where nobody says how much, than it says."""
    norm = exact(op)

    def build(_setting: Setting) -> Bind:
        return binding(norm, 1e-6)

    return Unset(eps=1e-5, build=build)
