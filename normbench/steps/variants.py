"""Training steps as tasks of the sweep's engine: a variant's model in a placement's memory, whole or in parts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from normbench.clock import Call, Task
from normbench.decoder import Decoder
from normbench.device import torch_dtype
from normbench.records import Optimizer, Part, StepCell

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


class Learner:
    """A model, what updates it, and what a step of the two is: defined here alone, for timing and for training.

    AdamW has torch's own betas (0.9, 0.999), eps (1e-8) and weight decay (0.01, of all parameters, the norms' too);
    SGD has a momentum of 0.9. Both keep their state in the parameters' dtype: in a pure bf16 model there is no
    float32 copy of the weights, and an update below 2⁻⁹ of a weight is rounded away, whatever the norm.

    Args:
        cell: Where.
        model: Its model, bound, on the device, in the cell's dtype.
    """

    clip = CLIP
    """The norm that all gradients together are clipped to."""

    def __init__(self, cell: StepCell, model: Decoder) -> None:
        self.model = model
        self._cell = cell
        self._run = _compiled(model) if cell.compiled else model
        self.begin_again()

    def begin_again(self) -> None:
        """Forget gradients and the optimizer's state."""
        for parameter in self.model.parameters():
            parameter.grad = None
        self.optimizer = _OPTIMIZERS[self._cell.optimizer](self.model.parameters())

    def loss(self, batch: Batch) -> torch.Tensor:
        """The forward: cross entropy of the next token, in float32 and nats."""
        return self._loss_of(self._run, batch)

    def eager_loss(self, batch: Batch) -> torch.Tensor:
        """The same by the model as it was written, whether or not its steps run a compiled one."""
        return self._loss_of(self.model, batch)

    def before_backward(self, batch: Batch) -> torch.Tensor:
        """What a step does before its backward; the loss."""
        self.optimizer.zero_grad(set_to_none=True)
        return self.loss(batch)

    def update(self) -> None:
        """What a step does after its backward."""
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()

    def step(self, batch: Batch) -> torch.Tensor:
        """Forward, backward and update, as a training loop runs them; the loss before the update."""
        loss = self.before_backward(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        self.update()
        return loss.detach()

    def _loss_of(self, run: Callable[[torch.Tensor], torch.Tensor], batch: Batch) -> torch.Tensor:
        with self._autocast(batch.tokens.device):
            logits = run(batch.tokens)
        return F.cross_entropy(logits.flatten(0, 1).float(), batch.following.flatten())

    def _autocast(self, device: torch.device) -> AbstractContextManager[Any]:
        if self._cell.autocast is None:
            return nullcontext()
        return torch.autocast(device.type, dtype=torch_dtype(self._cell.autocast))


_OPTIMIZERS: Mapping[Optimizer, Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer]] = {
    Optimizer.ADAMW: lambda parameters: torch.optim.AdamW(parameters, lr=LEARNING_RATE),
    Optimizer.SGD: lambda parameters: torch.optim.SGD(parameters, lr=LEARNING_RATE, momentum=0.9),
}


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
        self.learner = Learner(cell, model)
        self._batch = batch
        self._initial = [parameter.detach().clone() for parameter in model.parameters()]

    def place(self) -> None:
        """Begin again from the initial weights, in fresh memory, with a fresh optimizer."""
        # Parameters stay the same objects: an implementation is bound to them, and a compiled model guards on them.
        fresh = [initial.clone() for initial in self._initial]  # all before the first old one is freed
        for parameter, values in zip(self.model.parameters(), fresh, strict=True):
            parameter.data = values
        self.learner.begin_again()

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
        return self.learner.loss(self._batch)

    def eager_loss(self) -> torch.Tensor:
        """The same by the model as it was written, whether or not its steps run a compiled one."""
        return self.learner.eager_loss(self._batch)

    def step(self) -> None:
        """Forward, backward and update, as a training loop runs them."""
        self.learner.step(self._batch)

    def is_finite(self) -> bool:
        """Whether the loss of the model as it is now is a finite number."""
        with torch.no_grad():
            return bool(self.eager_loss().isfinite())

    def _before_backward(self) -> Call:
        backward: Call = self.learner.before_backward(self._batch).backward
        return backward

    def _before_update(self) -> Call:
        self._before_backward()()
        return self.learner.update


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
