"""One model trained from one seed: its steps, its evaluations, and its state between two of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

import torch

from normbench.records import TrainingPlan, TrainingPoint
from normbench.steps.variants import Batch, Learner
from normbench.training.batches import Batches

_LEAST_RATE = 0.1


class DivergedError(ArithmeticError):
    """A loss is no finite number any more: the message says at which step."""


def learning_rate(plan: TrainingPlan, step: int) -> float:
    """That of a step, which count from 1: it grows evenly to its highest in ``warm_up`` steps.

    Then it falls along half a cosine, to a tenth of that at the last step.
    """
    if step <= plan.warm_up:
        return plan.learning_rate * step / plan.warm_up
    way = (step - plan.warm_up) / (plan.steps - plan.warm_up)
    return plan.learning_rate * (_LEAST_RATE + (1 - _LEAST_RATE) * (1 + math.cos(math.pi * way)) / 2)


@dataclass(kw_only=True)
class Learning:
    """A training run under way.

    Args:
        plan: What is trained.
        learner: The model and its optimizer, at their beginning.
        batches: What it reads.
        seed: Which of these.
        step: How many steps it has made.
        points: Its evaluations so far.
    """

    plan: TrainingPlan
    learner: Learner
    batches: Batches
    seed: int
    step: int = 0
    points: tuple[TrainingPoint, ...] = ()
    _losses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.learner.clip = self.plan.clip
        self._held_out = self.batches.held_out(self.plan.held_out_batches)

    def advance(self) -> None:
        """Make a step.

        Raises:
            DivergedError: The loss before it is not finite.
        """
        self.step += 1
        for group in self.learner.optimizer.param_groups:
            group["lr"] = learning_rate(self.plan, self.step)
        loss = self.learner.step(self.batches.drawn(self.seed, self.step))
        self._losses.append(self._bits(loss))

    def evaluate(self) -> None:
        """Add a point: by the eager model, compiled or not, so that nothing is compiled once more for it.

        Raises:
            DivergedError: A figure is not finite.
        """
        by_corpus = tuple(fmean(self._evaluated(batches)) for batches in self._held_out)
        point = TrainingPoint(
            step=self.step,
            train_bits_per_byte=fmean(self._losses) if self._losses else None,
            bits_per_byte=fmean(by_corpus),
            by_corpus=by_corpus,
        )
        self._losses.clear()
        self.points = (*self.points, point)

    def is_evaluated_at(self, step: int) -> bool:
        """Whether the last point is that of a step."""
        return bool(self.points) and self.points[-1].step == step

    def state(self) -> dict[str, Any]:
        """All that the run needs to go on from an evaluation as if it had never stopped."""
        return {
            "model": self.learner.model.state_dict(),
            "optimizer": self.learner.optimizer.state_dict(),
            "step": self.step,
            "points": [asdict(point) for point in self.points],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there. The parameters stay the same objects, which the norms are bound to.

        Raises:
            Exception: It is no state of such a run; the model may be half of it then.
        """
        points = tuple(TrainingPoint(**point) for point in state["points"])
        reached = self.plan.evaluations()[: len(points)]
        if not points or tuple(point.step for point in points) != reached or state["step"] != reached[-1]:
            raise ValueError("a state is that of an evaluation, after all before it")
        self.learner.model.load_state_dict(state["model"])
        self.learner.optimizer.load_state_dict(state["optimizer"])
        self.step, self.points = reached[-1], points
        self._losses.clear()

    def _evaluated(self, batches: Sequence[Batch]) -> list[float]:
        with torch.no_grad():
            return [self._bits(self.learner.eager_loss(batch)) for batch in batches]

    def _bits(self, loss: torch.Tensor) -> float:
        """A loss in nats as bits per byte."""
        nats = loss.item()
        if not math.isfinite(nats):
            raise DivergedError(f"diverged at step {self.step}")
        return nats / math.log(2)
