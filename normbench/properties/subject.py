"""An implementation at one spot, to be called on whatever values a property needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from normbench import correctness, modes
from normbench.implementations import Bind, Implementation
from normbench.inputs import Operands
from normbench.records import Cache, Cell, Mode, Op, Output, Spot


class NoResult(Exception):  # noqa: N818 - a finding, no error
    """A call returned what can't be compared with anything: its text says why."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Who is asked, and where.

    Args:
        implementation: Who.
        bind: What it has built for the spot.
        spot: Where.
        eps: Added inside the root.
        seed: Of the values that properties draw.
        device: Where the tensors lie.
    """

    implementation: Implementation
    bind: Bind
    spot: Spot
    eps: float
    seed: int
    device: torch.device

    @property
    def op(self) -> Op:
        """The formula that it is held against."""
        return self.implementation.op

    def call(self, operands: Operands, bind: Bind | None = None) -> dict[Output, torch.Tensor]:
        """One forward and one backward on copies of the operands: y and every gradient, in memory of their own.

        Args:
            operands: Values as given, in the layout in which they lie.
            bind: Another than the subject's.

        Raises:
            NoResult: What came back has another shape, or is no plain tensor of numbers.
            Exception: Whatever the implementation raises.
        """
        return self.run(as_leaves(operands.of(self.op)), bind)

    def run(self, operands: Operands, bind: Bind | None = None) -> dict[Output, torch.Tensor]:
        """The same on the operands themselves, which require gradients: it may write into them."""
        cell = cell_of(self.spot, Mode.FORWARD_BACKWARD)
        forward = (bind or self.bind)(operands.gain, operands.bias)
        returned = modes.outputs(modes.task(self.implementation.name, cell, forward, operands).run())
        return _usable(dict(zip(modes.output_names(cell.mode, operands), returned, strict=True)), operands)

    def infer(self, operands: Operands) -> dict[Output, torch.Tensor]:
        """Y alone, where no gradient is asked for."""
        operands = as_leaves(operands.of(self.op))
        cell = cell_of(self.spot, Mode.INFERENCE)
        return _usable({"y": modes.output_of(cell, self.bind(operands.gain, operands.bias), operands)[0]}, operands)


def _usable(results: Mapping[str, torch.Tensor], operands: Operands) -> dict[Output, torch.Tensor]:
    problem = correctness.wrong_shape(results, operands)
    if problem:
        raise NoResult(problem)
    return {Output(name): tensor.detach().clone() for name, tensor in results.items()}


def as_leaves(operands: Operands) -> Operands:
    """Copies that gradients can be taken of, each with the strides of the original."""
    gain, bias = (
        None if t is None else torch.nn.Parameter(t.detach().clone()) for t in (operands.gain, operands.bias)
    )
    x = _laid_out_alike(operands.x).requires_grad_()
    dy = None if operands.dy is None else _laid_out_alike(operands.dy)
    return replace(operands, x=x, dy=dy, gain=gain, bias=bias)


def _laid_out_alike(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides: ``clone`` packs what has gaps."""
    span = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)) + 1
    memory = torch.zeros(max(span, 0), dtype=tensor.dtype, device=tensor.device)
    return memory.as_strided(tensor.shape, tensor.stride()).copy_(tensor.detach())


def cell_of(spot: Spot, mode: Mode) -> Cell:
    """The cell that an implementation is built for and a call is made in; one row stands for none."""
    return Cell(
        mode=mode,
        rows=max(spot.rows, 1),
        width=spot.width,
        dtype=spot.dtype,
        parameter_dtype=spot.parameter_dtype,
        autocast=spot.autocast,
        cache=Cache.WARM,
    )
