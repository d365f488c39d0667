"""Residual adds and norms as kernels compute them: right ones in either order of rounding, and wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from normbench.implementations import eager
from normbench.inputs import Operands, draw
from normbench.records import DType, Mode, Op
from tests.helpers import CPU, EPS, make_cell

ADDERS = (Op.ADD_LAYERNORM, Op.ADD_RMSNORM)
Results = dict[str, torch.Tensor]


def values_of(op: Op, dtype: DType, rows: int = 17, width: int = 1000, seed: int = 0) -> Operands:
    """Values of a backward."""
    cell = make_cell(operation=op.operation, mode=Mode.FORWARD_BACKWARD, rows=rows, width=width, dtype=dtype)
    return draw(cell, seed, CPU).of(op)


def norm_of(op: Op, h: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return (eager.layernorm if op.centres else eager.rmsnorm)(h, gain, bias, EPS)


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One way to compute all of it in float32, rounded to the format of x at the end.

    Args:
        summed: x and residual, in float32, to h as it is returned, in float32 too.
        read: x, residual, and what h is once it is stored, to what the norm reads.
        norm: The norm in float32.
        passed_on: The norm's own gradient as it is before dh is added.
        gradient: That and dh to the gradient of x.
    """

    summed: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = lambda x, residual: x + residual
    read: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor] = lambda x, residual, _h: x + residual
    norm: Callable[[Op, torch.Tensor, torch.Tensor, torch.Tensor | None], torch.Tensor] = norm_of
    passed_on: Callable[[torch.Tensor, torch.dtype], torch.Tensor] = lambda own, _dtype: own
    gradient: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = lambda own, dh: own + dh

    def results(self, op: Op, values: Operands) -> Results:
        """What a forward and its backward give, by name."""
        x, residual, dy, dh = (t.float() for t in (values.x, values.residual, values.dy, values.dh) if t is not None)
        format_ = values.x.dtype
        h = self.summed(x, residual).to(format_)
        read = self.read(x, residual, h.float()).clone().requires_grad_()
        parameters = [t.float().requires_grad_() for t in (values.gain, values.bias) if t is not None]
        y = self.norm(op, read, parameters[0], parameters[1] if op.has_bias else None)
        own, *rest = torch.autograd.grad(y, (read, *parameters), dy, allow_unused=True, materialize_grads=True)
        dx = self.gradient(self.passed_on(own, format_), dh).to(format_)
        found = {"y": y.detach().to(format_), "h": h, "dx": dx, "dresidual": dx}
        return found | {name: t.to(format_) for name, t in zip(("dgain", "dbias"), rest, strict=False)}


RIGHT: Mapping[str, Kernel] = {
    "reads the float32 sum": Kernel(),
    "reads the stored sum": Kernel(read=lambda _x, _residual, h: h),
    "two kernels": Kernel(read=lambda _x, _residual, h: h, passed_on=lambda own, format_: own.to(format_).float()),
}
"""Each is right: a fused kernel of either kind, and an add and a norm after one another."""


def coarser(tensor: torch.Tensor, format_: torch.dtype) -> torch.Tensor:
    return tensor.to(format_).to(tensor.dtype)


WRONG: Mapping[str, Kernel] = {
    "forgets the add": Kernel(read=lambda x, _residual, _h: x),
    "drops dh": Kernel(gradient=lambda own, _dh: own),
    "drops the norm's gradient": Kernel(gradient=lambda _own, dh: dh.clone()),
    "adds dh twice": Kernel(gradient=lambda own, dh: own + 2 * dh),
    "subtracts the residual": Kernel(summed=lambda x, residual: x - residual),
    "returns x for h": Kernel(summed=lambda x, _residual: x.clone()),
    "returns the old residual for h": Kernel(summed=lambda _x, residual: residual.clone()),
    "reads the old residual": Kernel(read=lambda _x, residual, _h: residual),
    "adds x twice": Kernel(read=lambda x, residual, _h: 2 * x + residual),
}
