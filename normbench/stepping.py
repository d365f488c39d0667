"""Training steps as tasks of the sweep's engine: a variant's model in a placement's memory, whole or in parts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from normbench.clock import Call, Task
from normbench.decoder import Decoder
from normbench.device import torch_dtype
from normbench.records import Part, StepCell

LEARNING_RATE = 6e-4
CLIP = 1.0
_PADDING_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Tokens of one step and what follows each of them, both (batch, context), of integers."""

    tokens: torch.Tensor
    following: torch.Tensor

    @classmethod
    def draw(cls, cell: StepCell, seed: int, device: torch.device) -> Batch:
        """Random tokens, the same for every variant."""
        shape = cell.shape
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randint(shape.vocabulary, (shape.batch, shape.context + 1), generator=generator).to(device)
        return cls(tokens=drawn[:, :-1].contiguous(), following=drawn[:, 1:].contiguous())


class Variant:
    """A model with one implementation's norms, whose weights every placement lays out anew.

    Args:
        name: The implementation's, or another under which it competes.
        cell: Where.
        model: Its model, bound, on the device, in the cell's dtype.
        batch: What its steps are made on.
    """

    def __init__(self, name: str, cell: StepCell, model: Decoder, batch: Batch) -> None:
        self.name = name
        self.model = model
        self._cell = cell
        self._batch = batch
        self._initial = [parameter.detach().clone() for parameter in model.parameters()]
        self._run = _compiled(model) if cell.compiled else model
        self._optimizer = self._new_optimizer()

    def place(self) -> None:
        """Begin again from the initial weights, in fresh memory, with a fresh optimizer."""
        # Parameters stay the same objects: an implementation is bound to them, and a compiled model guards on them.
        for parameter, initial in zip(self.model.parameters(), self._initial, strict=True):
            parameter.data = initial.clone()
            parameter.grad = None
        self._optimizer = self._new_optimizer()

    def task(self, part: Part) -> Task:
        """The whole step, or a part of it with what comes before outside the clock."""
        prepare, repeatable = {
            Part.STEP: (lambda: self.step, True),
            Part.FORWARD: (lambda: self.loss, True),
            Part.BACKWARD: (self._before_backward, False),
            Part.OPTIMIZER: (self._before_update, False),
        }[part]
        return Task(name=self.name, prepare=prepare, repeatable=repeatable)

    def loss(self) -> torch.Tensor:
        """The forward: cross entropy of the next token, in float32."""
        return self._loss_of(self._run)

    def eager_loss(self) -> torch.Tensor:
        """The same by the model as it was written, whether or not its steps run a compiled one."""
        return self._loss_of(self.model)

    def _loss_of(self, run: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        with self._autocast():
            logits = run(self._batch.tokens)
        return F.cross_entropy(logits.flatten(0, 1).float(), self._batch.following.flatten())

    def step(self) -> None:
        """Forward, backward and update, as a training loop runs them."""
        self._optimizer.zero_grad(set_to_none=True)
        self.loss().backward()  # type: ignore[no-untyped-call]
        self._update()

    def _update(self) -> None:
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self._optimizer.step()

    def _before_backward(self) -> Call:
        self._optimizer.zero_grad(set_to_none=True)
        backward: Call = self.loss().backward
        return backward

    def _before_update(self) -> Call:
        self._before_backward()()
        return self._update

    def _new_optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.model.parameters(), lr=LEARNING_RATE)

    def _autocast(self) -> AbstractContextManager[Any]:
        if self._cell.autocast is None:
            return nullcontext()
        return torch.autocast(self._batch.tokens.device.type, dtype=torch_dtype(self._cell.autocast))


def _compiled(model: Decoder) -> Callable[[torch.Tensor], torch.Tensor]:
    """The model through torch.compile, as code of its own.

    Dynamo keeps the graphs of one code object in a list that every call goes through: all variants together would
    pass its limit, and whoever came last would pay for the others' guards.
    """
    code = Decoder.forward.__code__
    forward = FunctionType(code.replace(), Decoder.forward.__globals__, code.co_name)
    compiled = torch.compile(forward, dynamic=False, fullgraph=True)
    return lambda tokens: compiled(model, tokens)


class StepPlaces:
    """Makes a placement's tasks when it is called: every variant's weights at new addresses, in random order.

    Args:
        variants: Whose.
        part: What of a step the tasks are.
        seed: Decides order and padding.
    """

    def __init__(self, variants: Sequence[Variant], part: Part, seed: int) -> None:
        self._variants = tuple(variants)
        self._part = part
        self._random = random.Random(seed)
        self._padding: list[torch.Tensor] = []

    def __call__(self) -> list[Task]:
        """The tasks, in the order in which they were placed."""
        padding = self._padding
        self._padding = []  # the old padding lives until the new weights are there, as the old weights do
        tasks = list(self._placed())
        del padding
        return tasks

    def _placed(self) -> Iterator[Task]:
        for variant in self._random.sample(self._variants, len(self._variants)):
            size, device = self._random.randrange(1, _PADDING_BYTES), next(variant.model.parameters()).device
            self._padding.append(torch.empty(size, dtype=torch.uint8, device=device))
            variant.place()
            yield variant.task(self._part)
