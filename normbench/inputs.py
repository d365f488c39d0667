"""Seeded values, the same for every implementation, and placements: own copies of them at new addresses."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

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
    """

    x: torch.Tensor
    dy: torch.Tensor | None
    gain: torch.Tensor | None
    bias: torch.Tensor | None

    @property
    def differentiable(self) -> tuple[torch.Tensor, ...]:
        """What gradients are taken of: x and every parameter, in that order."""
        return tuple(t for t in (self.x, self.gain, self.bias) if t is not None)

    def of(self, op: Op) -> Operands:
        """The same without the parameters that ``op`` has none of."""
        return replace(self, gain=self.gain if op.has_gain else None, bias=self.bias if op.has_bias else None)


def cell_seed(seed: int, cell: Cell, purpose: str = "") -> int:
    """A seed of its own for each cell and purpose, the same in every process and on every machine."""
    return seed_of(str(seed), purpose, *cell.key)


def seed_of(*words: str) -> int:
    """A seed of 32 bits that only these words decide, the same in every process and on every machine."""
    return int.from_bytes(hashlib.sha256("|".join(words).encode()).digest()[:4], "big")


def draw(cell: Cell, seed: int, device: torch.device) -> Operands:
    """The values that all implementations of a cell get.

    x is normal with mean 0.5, so that a LayerNorm that forgets the mean is seen; gain is normal around 1
    and bias around 0, so that leaving either out is seen; dy is standard normal. Drawn in float32,
    rounded to the dtype.
    """
    generator = torch.Generator(device).manual_seed(cell_seed(seed, cell, "values"))

    def normal(shape: tuple[int, ...], mean: float, deviation: float, dtype: torch.dtype) -> torch.Tensor:
        values = torch.randn(shape, generator=generator, device=device).mul_(deviation).add_(mean)
        return values.to(dtype)

    data, parameters = torch_dtype(cell.dtype), torch_dtype(cell.parameter_dtype)
    shape = (cell.rows, cell.width)
    return Operands(
        x=normal(shape, 0.5, 1.0, data),
        dy=normal(shape, 0.0, 1.0, data) if cell.mode.differentiates else None,
        gain=normal((cell.width,), 1.0, 0.25, parameters),
        bias=normal((cell.width,), 0.0, 0.25, parameters),
    )


_HARD_SCALES = (300.0, 1e-3, 0.0)
"""Of rows that are hard to normalise: squares overflow float16; so small that eps rules; zeros."""


_OFFSET, _SPREAD = 1024.0, 0.3
"""Of rows whose mean is so large that E[x²] - E[x]² loses the variance in float32."""


def draw_probes(values: Operands, *, offset: bool = False) -> Iterator[Operands]:
    """The same gain, bias and dy with an x whose rows are hard to normalise, one kind after the other.

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
        yield replace(values, x=(values.x.float() * scales[kinds].unsqueeze(1)).to(values.x.dtype))
    if offset:
        yield replace(values, x=_OFFSET + _SPREAD * values.x)


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
        shared: Use one x and one dy for all, where memory is short.
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
        activations = Operands(x=self._values.x, dy=self._values.dy, gain=None, bias=None)
        shared = self._copy(activations, padding) if self._shared else None
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
            return self._copy(wanted, padding)
        gain, bias = (self._parameter(t, padding) for t in (wanted.gain, wanted.bias))
        return replace(shared, gain=gain, bias=bias)

    def _copy(self, source: Operands, padding: list[torch.Tensor]) -> Operands:
        x = self._fresh(source.x, padding, gradient=self._gradients)
        assert x is not None
        gain, bias = (self._parameter(t, padding) for t in (source.gain, source.bias))
        return Operands(x=x, dy=self._fresh(source.dy, padding, gradient=False), gain=gain, bias=bias)

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
