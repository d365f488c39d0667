"""A training plan to curves: every implementation from every seed; goes on where it was stopped, never prints."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import torch

from normbench import __version__, compilation, traffic
from normbench.device import Device
from normbench.failures import RAISED, Failure, failure
from normbench.implementations import Implementation
from normbench.interruption import Interruption, Never
from normbench.limits import beyond_memory, usable
from normbench.records import Status, StepCell, StepPlan, TrainingCurve, TrainingPlan
from normbench.steps.checks import still_right
from normbench.steps.entering import Entered, Entry
from normbench.steps.variants import Variant
from normbench.training.batches import Batches, generator
from normbench.training.checkpoints import Checkpoint
from normbench.training.corpora import Text, require_length, require_same
from normbench.training.learning import DivergedError, Learning
from normbench.training.pace import Pace, TrainingProgress


@dataclass(frozen=True, kw_only=True)
class _Run:
    """One run to be made: which it is of all, and how many come after it."""

    number: int
    count: int
    seed: int
    implementation: Implementation
    after: int = 0


@dataclass(frozen=True, kw_only=True)
class Trainer:
    """Runs a training plan on a device.

    Every implementation of a seed begins with the same weights, norms at gain 1 and bias 0, and reads the same
    batches in the same order; every evaluation of all runs reads the same ones. The optimizer is AdamW as
    ``stepping.Learner`` has it. Norms are checked against float64 inside the model twice: before the first step, and
    after the last one, with the gains and biases that were learnt.

    Args:
        plan: What to train.
        implementations: Of the norms, in the plan's order.
        device: Where.
        texts: The plan's corpora.
        told: Told at the beginning of a run, where it goes on, and after each step.
        interruption: Asked before each step whether to stop.
        checkpoint: A file for the state of the run under way; None keeps none.
        now: A monotonic clock.

    Raises:
        UsageError: The texts are not the plan's corpora, or shorter than a context.
    """

    plan: StepPlan
    implementations: Sequence[Implementation]
    device: Device
    texts: Sequence[Text]
    told: Callable[[TrainingProgress], None] = lambda _progress: None
    interruption: Interruption = field(default_factory=Never)
    checkpoint: Path | None = None
    now: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        require_same(self.texts, self.training.corpora)
        require_length(self.texts, self.training.shape.context)

    @property
    def training(self) -> TrainingPlan:
        """The plan's."""
        assert self.plan.training is not None, "a plan to train"
        return self.plan.training

    def run(self, done: Collection[tuple[int, str]] = ()) -> Iterator[TrainingCurve]:
        """Train, yielding a run's curve so far after each evaluation; the last of a run is final.

        A run that was stopped goes on from its last evaluation, and its curve up to there comes first.

        Args:
            done: Seeds and implementations of the runs that are not to be made.

        Raises:
            StorageError: The checkpoint can't be written.
        """
        pace = Pace(began=self.now())
        for run in self._runs(done):
            if self.interruption.is_asked_for:
                return
            yield from self._curves(run, pace)
            self.device.release()

    def _runs(self, done: Collection[tuple[int, str]]) -> list[_Run]:
        """Those to be made, a seed after the other."""
        pairs = [(seed, implementation) for seed in self.training.seeds for implementation in self.implementations]
        runs = [
            _Run(number=number, count=len(pairs), seed=seed, implementation=implementation)
            for number, (seed, implementation) in enumerate(pairs, start=1)
            if (seed, implementation.name) not in done
        ]
        return [replace(run, after=len(runs) - position) for position, run in enumerate(runs, start=1)]

    def _curves(self, run: _Run, pace: Pace) -> Iterator[TrainingCurve]:
        """Of one run."""
        self._tell(run, 0, pace)
        begun = self._begun(run)
        if isinstance(begun, Failure):
            yield _failed(run, begun)
        else:
            if begun.points:
                self._tell(run, begun.step, pace)
                yield _curve(run, begun)
            for step in self._evaluations_after(begun):
                problem = self._reach(step, run, begun, pace)
                if problem is not None:
                    yield _failed(run, problem, begun)
                    break
                if not begun.is_evaluated_at(step):  # interrupted: what is there stays for whoever goes on
                    return
                self._checkpoint.write(self._key(run), begun.state())
                yield _curve(run, begun)
        self._checkpoint.remove()

    def _begun(self, run: _Run) -> Learning | Failure:
        """The run's model at its beginning, or where it was stopped; why it can't be trained."""
        compilation.reset()
        if why := beyond_memory(traffic.step_bytes(self._cell, 1), usable(self.device.free_bytes())):
            return why
        entry = self._entry(run)
        entered = entry.enter(run.implementation)
        if not isinstance(entered, Entered):
            return Failure(status=entered.status, reason=entered.reason or str(entered.status))
        entered.variant.place()
        learning = Learning(plan=self.training, learner=entered.variant.learner, batches=self._batches, seed=run.seed)
        saved = self._checkpoint.read(self._key(run))
        if saved is not None:
            try:
                learning.restore(saved)
            except Exception:  # whoever wrote that, it is no state of this run: it begins again
                self._checkpoint.remove()
                return self._begun(run)
        return learning

    def _evaluations_after(self, learning: Learning) -> list[int]:
        return [step for step in self.training.evaluations() if not learning.points or step > learning.step]

    def _reach(self, step: int, run: _Run, learning: Learning, pace: Pace) -> Failure | None:
        """Train up to a step and evaluate there, or stop early where that is asked for; what went wrong."""
        with self.interruption.may_wait():
            while learning.step < step:
                if self.interruption.is_asked_for:
                    return None
                problem = _problem(learning.advance)
                if problem is not None:
                    return problem
                pace.made += 1
                self._tell(run, learning.step, pace)
            problem = _problem(learning.evaluate)
            if problem is None and step == self.training.steps:
                problem = self._wrong_by_now(run, learning)
            return problem

    def _wrong_by_now(self, run: _Run, learning: Learning) -> Failure | None:
        """What is wrong with the norms now that they have learnt: when they were checked gains were 1."""
        entry = self._entry(run)
        trained = Variant(run.implementation.name, entry.cell, learning.learner.model, entry.batch)
        return still_right(trained, run.implementation, entry.cell, self.plan.eps, after="training")

    def _tell(self, run: _Run, step: int, pace: Pace) -> None:
        steps = self.training.steps
        progress = TrainingProgress(
            number=run.number,
            count=run.count,
            implementation=run.implementation.name,
            seed=run.seed,
            step=step,
            steps=steps,
            made=pace.made,
            left=steps - step + run.after * steps,
            seconds=self.now() - pace.began,
        )
        self.told(progress)

    def _entry(self, run: _Run) -> Entry:
        return Entry(
            cell=self._cell,
            batch=self._batches.drawn(run.seed, 1),
            eps=self.plan.eps,
            seed=generator(self.plan.seed, run.seed, "weights").getrandbits(63),
            device=self.device,
        )

    def _key(self, run: _Run) -> str:
        """What a run depends on, as one number: its state is of use to no other."""
        training = replace(self.training, seeds=(run.seed,))
        software = (__version__, torch.__version__, self.device.info.name)
        asked = (training, self.plan.seed, self.plan.eps, run.implementation.name)
        return sha256(repr((software, asked)).encode()).hexdigest()

    @property
    def _cell(self) -> StepCell:
        plan = self.training
        return StepCell(shape=plan.shape, dtype=plan.dtype, autocast=plan.autocast, compiled=plan.compiled)

    @cached_property
    def _batches(self) -> Batches:
        return Batches(
            texts=self.texts,
            shape=self.training.shape,
            seed=self.plan.seed,
            device=self.device.torch_device,
        )

    @property
    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(path=self.checkpoint)


def _curve(run: _Run, learning: Learning) -> TrainingCurve:
    return TrainingCurve(implementation=run.implementation.name, seed=run.seed, points=learning.points)


def _failed(run: _Run, why: Failure, learning: Learning | None = None) -> TrainingCurve:
    """The curve up to where it failed; nothing of norms that are wrong."""
    is_kept = learning is not None and why.status is not Status.INCORRECT
    return TrainingCurve(
        implementation=run.implementation.name,
        seed=run.seed,
        points=learning.points if learning is not None and is_kept else (),
        status=why.status,
        reason=why.reason,
    )


def _problem(work: Callable[[], None]) -> Failure | None:
    """What a piece of work that runs an implementation's code has ended with; None where it went well."""
    try:
        work()
    except DivergedError as error:
        return Failure(status=Status.FAILED, reason=str(error))
    except RAISED as error:
        return failure(error)
    return None
