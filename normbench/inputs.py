"""Seeded values, the same for every implementation, and placements: own copies of them at new addresses."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch

from normbench.device import torch_dtype
from normbench.records import Cell, Op

_PADDING_BYTES = 1 << 16
_LEAST_BLOCK_BYTES = 1 << 20
_MOST_BLOCK_BYTES = 1 << 23
_MOST_BLOCKS = 16


@dataclass(frozen=True, kw_only=True)
class Operands:
    """The tensors of one implementation in one placement.

    ``x`` and ``dy`` have shape (rows, width) and the cell's dtype; dy is None in a mode without gradients.
    ``gain`` and ``bias`` have shape (width,) and the parameter dtype, and are None where the formula has none.
    ``residual``, and ``dh``, the gradient that arrives for the new residual h = x + residual, are like x and dy, and
    None where nothing is added.
    """

    x: torch.Tensor
    dy: torch.Tensor | None
    gain: torch.Tensor | None
    bias: torch.Tensor | None
    residual: torch.Tensor | None = None
    dh: torch.Tensor | None = None

    @property
    def inputs(self) -> tuple[torch.Tensor, ...]:
        """What a forward is called with: x, and the residual where there is one."""
        return (self.x,) if self.residual is None else (self.x, self.residual)

    @property
    def differentiable(self) -> tuple[torch.Tensor, ...]:
        """What gradients are taken of: x, the residual and every parameter, in that order."""
        return (*self.inputs, *(t for t in (self.gain, self.bias) if t is not None))

    def of(self, op: Op) -> Operands:
        """The same without the parameters and the residual that ``op`` has none of."""
        return replace(
            self,
            gain=self.gain if op.has_gain else None,
            bias=self.bias if op.has_bias else None,
            residual=self.residual if op.adds else None,
            dh=self.dh if op.adds else None,
        )

    def map_rows(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Operands:
        """The same with what ``change`` makes of the values of each tensor that has rows, and the same parameters."""
        there = {name: tensor for name in OF_ROWS if (tensor := getattr(self, name)) is not None}
        return replace(self, **{name: change(tensor.detach()) for name, tensor in there.items()})


OF_ROWS = ("x", "residual", "dy", "dh")
"""The operands that have x's shape."""


def cell_seed(seed: int, cell: Cell, purpose: str = "") -> int:
    """A seed of its own for each cell and purpose, the same in every process and on every machine."""
    return seed_of(str(seed), purpose, *cell.key)


def seed_of(*words: str) -> int:
    """A seed of 32 bits that only these words decide, the same in every process and on every machine."""
    return int.from_bytes(hashlib.sha256("|".join(words).encode()).digest()[:4], "big")


def draw(cell: Cell, seed: int, device: torch.device) -> Operands:
    """The values that all implementations of a cell get.

    x is normal with mean 0.5, so that a LayerNorm that forgets the mean is seen; gain is normal around 1
    and bias around 0, so that leaving either out is seen; dy is standard normal. The residual is wider than x and has
    a mean of its own, so that whose norm is taken is seen; dh is standard normal. Drawn in float32, rounded to the
    dtype.
    """
    generator = torch.Generator(device).manual_seed(cell_seed(seed, cell, "values"))
    of_residual = torch.Generator(device).manual_seed(cell_seed(seed, cell, "residual"))

    def normal(
        shape: tuple[int, ...],
        mean: float,
        deviation: float,
        dtype: torch.dtype,
        generator: torch.Generator = generator,
    ) -> torch.Tensor:
        values = torch.randn(shape, generator=generator, device=device).mul_(deviation).add_(mean)
        return values.to(dtype)

    data, parameters = torch_dtype(cell.dtype), torch_dtype(cell.parameter_dtype)
    shape = (cell.rows, cell.width)
    adds, differentiates = cell.operation.adds, cell.mode.differentiates
    return Operands(
        x=normal(shape, 0.5, 1.0, data),
        dy=normal(shape, 0.0, 1.0, data) if differentiates else None,
        gain=normal((cell.width,), 1.0, 0.25, parameters),
        bias=normal((cell.width,), 0.0, 0.25, parameters),
        residual=normal(shape, 1.0, 2.0, data, of_residual) if adds else None,
        dh=normal(shape, 0.0, 1.0, data, of_residual) if adds and differentiates else None,
    )


_HARD_SCALES = (300.0, 1e-3, 0.0)
"""Of rows that are hard to normalise: squares overflow float16; so small that eps rules; zeros."""


_OFFSET, _SPREAD = 1024.0, 0.3
"""Of rows whose mean is so large that E[x²] - E[x]² loses the variance in float32."""


def draw_probes(values: Operands, *, offset: bool = False) -> Iterator[Operands]:
    """The same gain, bias and dy with an x whose rows are hard to normalise, one kind after the other.

    Where a residual is added, x and residual are scaled alike, so that it is their sum that is hard.

    One probe where there are enough rows for every kind, else as many as it takes.

    Args:
        values: Whose rows are scaled.
        offset: Then one more of a large common number and a small spread. Only where all is float32: half precision
            could not hold such a row, and who keeps a mean in it, as torch's own LayerNorm does, would be wrong.
    """
    count, device = values.x.shape[0], values.x.device
    scales = torch.tensor(_HARD_SCALES, device=device)
    for first in range(0, len(scales), count):
        kinds = (first + torch.arange(count, device=device)) % len(scales)
        yield _of_inputs(values, partial(_scaled, scales[kinds].unsqueeze(1)))
    if offset:
        yield replace(_of_inputs(values, lambda t: _SPREAD * t), x=_OFFSET + _SPREAD * values.x)


def _of_inputs(values: Operands, change: Callable[[torch.Tensor], torch.Tensor]) -> Operands:
    residual = None if values.residual is None else change(values.residual)
    return replace(values, x=change(values.x), residual=residual)


def _scaled(scales: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    return (tensor.float() * scales).to(tensor.dtype)


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Fresh buffers for several implementations, the padding that moved them, and in which order they came."""

    operands: tuple[Operands, ...]
    padding: tuple[torch.Tensor, ...]
    turns: tuple[int, ...]


class Placer:
    """Allocates placements of the same values at addresses that differ from one to the next.

    The caller keeps the old placement until the new one is there: an allocator would hand the same
    addresses out again otherwise. The padding is seeded.

    Args:
        values: What every buffer is filled with.
        ops: The formula of each implementation, in order.
        gradients: Whether x and the parameters require grad.
        shared: Use one x and one dy for all, where memory is short; one residual and one dh, too.
        seed: Decides the padding.
    """

    def __init__(self, values: Operands, ops: tuple[Op, ...], *, gradients: bool, shared: bool, seed: int) -> None:
        self._values = values
        self._ops = ops
        self._gradients = gradients
        self._shared = shared
        self._random = random.Random(seed)

    def place(self) -> Placement:
        """A new placement."""
        padding = self._ballast()
        activations = replace(self._values, gain=None, bias=None)
        shared = self._copy(activations, padding, side_by_side=False) if self._shared else None
        # In random order: who always came first would get the memory freed last, and be faster by 0.2 %.
        turns = self._random.sample(range(len(self._ops)), len(self._ops))
        placed = {turn: self._place_one(self._ops[turn], shared, padding) for turn in turns}
        operands = tuple(placed[turn] for turn in range(len(self._ops)))
        return Placement(operands=operands, padding=tuple(padding), turns=tuple(turns))

    def _ballast(self) -> list[torch.Tensor]:
        """Touched memory of random size, half of which is free again when the buffers are allocated.

        Without it an operating system hands out the very pages that the placement before last has freed, and
        all placements of a process lie in two sets of physical memory; on a CPU it is those that decide how a
        cache is used.
        """
        x = self._values.x
        block = min(max(x.numel() * x.element_size(), _LEAST_BLOCK_BYTES), _MOST_BLOCK_BYTES)
        count = self._random.randrange(2, 2 + _MOST_BLOCKS)
        blocks = [
            torch.ones(self._random.randrange(1, block), dtype=torch.uint8, device=x.device) for _ in range(count)
        ]
        return self._random.sample(blocks, count // 2)

    def _place_one(self, op: Op, shared: Operands | None, padding: list[torch.Tensor]) -> Operands:
        wanted = self._values.of(op)
        if shared is None:
            return self._copy(wanted, padding, side_by_side=op is Op.ADD_COPY)
        gain, bias = (self._parameter(t, padding) for t in (wanted.gain, wanted.bias))
        return replace(shared, gain=gain, bias=bias)

    def _copy(self, source: Operands, padding: list[torch.Tensor], *, side_by_side: bool) -> Operands:
        """Buffers of its own; ``side_by_side`` lays the residual right behind x, as the floor's one kernel needs."""
        x, residual = self._inputs(source, padding, side_by_side=side_by_side)
        gain, bias = (self._parameter(t, padding) for t in (source.gain, source.bias))
        dy, dh = (self._fresh(t, padding, gradient=False) for t in (source.dy, source.dh))
        return Operands(x=x, dy=dy, gain=gain, bias=bias, residual=residual, dh=dh)

    def _inputs(
        self, source: Operands, padding: list[torch.Tensor], *, side_by_side: bool
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        if side_by_side and source.residual is not None:
            pair = self._fresh(torch.stack((source.x, source.residual)), padding, gradient=False)
            assert pair is not None
            x, residual = (half.detach().requires_grad_(self._gradients) for half in pair)
            return x, residual
        first = self._fresh(source.x, padding, gradient=self._gradients)
        assert first is not None
        return first, self._fresh(source.residual, padding, gradient=self._gradients)

    def _parameter(self, tensor: torch.Tensor | None, padding: list[torch.Tensor]) -> torch.Tensor | None:
        fresh = self._fresh(tensor, padding, gradient=False)
        return None if fresh is None else torch.nn.Parameter(fresh, requires_grad=self._gradients)

    def _fresh(
        self, tensor: torch.Tensor | None, padding: list[torch.Tensor], *, gradient: bool
    ) -> torch.Tensor | None:
        if tensor is None:
            return None
        pad = self._random.randrange(1, _PADDING_BYTES)
        padding.append(torch.empty(pad, dtype=torch.uint8, device=tensor.device))
        return tensor.detach().clone().requires_grad_(gradient)
