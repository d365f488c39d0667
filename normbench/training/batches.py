"""Which bytes each step of training reads, and which an evaluation: by seed and step alone, whatever the norm."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from normbench.records import ModelShape
from normbench.steps.variants import Batch
from normbench.training.corpora import Text


def generator(*of: int | str) -> random.Random:
    """Random numbers that depend on what is named, and on nothing else."""
    return random.Random(" ".join(map(str, of)))


@dataclass(frozen=True, kw_only=True)
class Batches:
    """Batches of bytes.

    Args:
        texts: Where they come from; every part of them longer than a context.
        shape: How many sequences of how many bytes.
        seed: Of everything drawn.
        device: Where the batches are.
    """

    texts: Sequence[Text]
    shape: ModelShape
    seed: int
    device: torch.device

    def drawn(self, seed: int, step: int) -> Batch:
        """The batch of a step of the run from ``seed``: a share of its sequences from each text, in turn."""
        rng = generator(self.seed, seed, step)
        first = step * self.shape.batch  # so that the shares of several steps are equal where those of one can't be
        turns = [self._train[number % len(self._train)] for number in range(first, first + self.shape.batch)]
        return self._of([self._window(text, rng.randrange(self._starts(text))) for text in turns])

    def held_out(self, count: int) -> tuple[tuple[Batch, ...], ...]:
        """The batches of an evaluation, of each text in turn: evenly spread over all that is held out of it.

        Args:
            count: Of all; each text has its share, and at least one.
        """
        share, over = divmod(count, len(self.texts))
        shares = [max(1, share + (number < over)) for number in range(len(self.texts))]
        return tuple(self._spread(text, share) for text, share in zip(self._held_out, shares, strict=True))

    def _spread(self, text: torch.Tensor, count: int) -> tuple[Batch, ...]:
        """So many batches of windows, from the first byte to the last."""
        windows, last = count * self.shape.batch, self._starts(text) - 1
        starts = [number * last // max(1, windows - 1) for number in range(windows)]
        chosen = [starts[number::count] for number in range(count)]
        return tuple(self._of([self._window(text, start) for start in batch]) for batch in chosen)

    def _starts(self, text: torch.Tensor) -> int:
        return len(text) - self.shape.context

    def _window(self, text: torch.Tensor, start: int) -> torch.Tensor:
        return text[start : start + self.shape.context + 1]

    def _of(self, windows: Sequence[torch.Tensor]) -> Batch:
        drawn = torch.stack(list(windows)).to(self.device, torch.int64)
        return Batch(tokens=drawn[:, :-1].contiguous(), following=drawn[:, 1:].contiguous())

    @cached_property
    def _train(self) -> tuple[torch.Tensor, ...]:
        return tuple(_bytes(text.train) for text in self.texts)

    @cached_property
    def _held_out(self) -> tuple[torch.Tensor, ...]:
        return tuple(_bytes(text.held_out) for text in self.texts)


def _bytes(text: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)
