"""Training one model with one norm or another: what is asked for, and the curve that each run of it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from statistics import fmean

from normbench.records.cases import DType
from normbench.records.models import ModelShape
from normbench.records.results import Status

MOST_STEPS = 10**7
MOST_SEEDS = 1000
MOST_BITS = 1e6
"""Per byte: a loss beyond that has diverged."""
_ALIKE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Text that is trained on, and held out in part.

    Args:
        name: What it is called: ``code``, ``prose``, or the name of a file.
        train_bytes: Of the part that batches are drawn from.
        held_out_bytes: Of the part that is only evaluated on.
        digest: SHA-256 of both, hexadecimal: whoever has the same one has the same text.
        is_file: Whether it is a user's file, and none of those that every Python has.
    """

    name: str
    train_bytes: int
    held_out_bytes: int
    digest: str
    is_file: bool = False

    def __post_init__(self) -> None:
        if min(self.train_bytes, self.held_out_bytes) < 1:
            raise ValueError(f"corpora: {self.name[:40]!a} has nothing to train on, or nothing held out")


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """What is trained: every implementation of the plan from every seed, on the same batches in the same order.

    Args:
        shape: The model's; its vocabulary is the 256 bytes.
        dtype: Of all parameters.
        autocast: The dtype of autocast in the forward; None where it is off.
        compiled: Whether the model as a whole goes through torch.compile.
        steps: Of each run.
        seeds: Of weights and batches, one run each.
        evaluate_every: Steps between two evaluations; there is one after the last step.
        held_out_batches: Batches of one evaluation, the same each time, spread over the corpora.
        corpora: What is trained on, in equal shares.
        learning_rate: At its highest.
        warm_up: Steps over which the learning rate grows to that; then it falls along a cosine to a tenth.
        clip: The norm that gradients are clipped to.
    """

    shape: ModelShape
    dtype: DType
    autocast: DType | None = None
    compiled: bool = False
    steps: int
    seeds: tuple[int, ...]
    evaluate_every: int
    held_out_batches: int
    corpora: tuple[Corpus, ...]
    learning_rate: float = 6e-4
    warm_up: int = 40
    clip: float = 1.0

    def __post_init__(self) -> None:
        if self.shape.vocabulary != 256:
            raise ValueError("shape.vocabulary: a model of bytes has 256")
        if not (1 <= self.steps <= MOST_STEPS and 1 <= self.evaluate_every <= self.steps):
            raise ValueError(f"steps: 1 to {MOST_STEPS}, and evaluate_every no more than that")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or len(self.seeds) > MOST_SEEDS:
            raise ValueError(f"seeds: 1 to {MOST_SEEDS}, none twice")
        if not self.corpora or len({corpus.name for corpus in self.corpora}) < len(self.corpora):
            raise ValueError("corpora: at least one, none twice")
        if min(self.held_out_batches, self.warm_up) < 1 or not all(
            0 < x < inf for x in (self.learning_rate, self.clip)
        ):
            raise ValueError("held_out_batches and warm_up are 1 and more, learning_rate and clip above 0")

    def evaluations(self) -> tuple[int, ...]:
        """The numbers of steps after which the model is evaluated: 0, as it begins, and the last among them."""
        return tuple(sorted({*range(0, self.steps + 1, self.evaluate_every), self.steps}))


@dataclass(frozen=True, kw_only=True)
class TrainingPoint:
    """The model after some steps.

    Args:
        step: How many.
        train_bits_per_byte: Mean over the batches since the last point; None at step 0.
        bits_per_byte: Held out, the mean of the corpora's.
        by_corpus: Held out, of each corpus, in the plan's order.
    """

    step: int
    train_bits_per_byte: float | None
    bits_per_byte: float
    by_corpus: tuple[float, ...]

    def __post_init__(self) -> None:
        figures = [self.bits_per_byte, *self.by_corpus]
        figures += [] if self.train_bits_per_byte is None else [self.train_bits_per_byte]
        if self.step < 0 or not all(isfinite(figure) and 0 <= figure <= MOST_BITS for figure in figures):
            raise ValueError(f"not bits per byte: {figures}")
        if not self.by_corpus or abs(self.bits_per_byte - fmean(self.by_corpus)) > _ALIKE * (1 + self.bits_per_byte):
            raise ValueError(f"bits_per_byte: {self.bits_per_byte} is not the mean of the corpora's")
        if (self.train_bits_per_byte is None) != (self.step == 0):
            raise ValueError("train_bits_per_byte: there at every step but 0")


@dataclass(frozen=True, kw_only=True)
class TrainingCurve:
    """One run: an implementation from one seed.

    Args:
        implementation: Of the norms.
        seed: Of weights and batches.
        points: As far as it got, by ascending step.
        status: ``ok``; or why it ended early.
        reason: Why it ended early; None where it did not.
    """

    implementation: str
    seed: int
    points: tuple[TrainingPoint, ...]
    status: Status = Status.OK
    reason: str | None = None

    def __post_init__(self) -> None:
        if (self.status is Status.OK) != (self.reason is None):
            raise ValueError("whatever did not end well has a reason, and nothing else has one")
        steps = [point.step for point in self.points]
        if steps != sorted(set(steps)):
            raise ValueError("points: by ascending step, none twice")

    def is_final(self, plan: TrainingPlan) -> bool:
        """Whether training again would be a repetition."""
        if self.status is not Status.OK:
            return self.status.is_final
        return bool(self.points) and self.points[-1].step == plan.steps

    def final(self, plan: TrainingPlan) -> float | None:
        """Held-out bits per byte after the last step; None where it did not get there."""
        is_there = self.status is Status.OK and self.is_final(plan)
        return self.points[-1].bits_per_byte if is_there else None
