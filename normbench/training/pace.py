"""How far a training has come, and how long what is left of it will take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TrainingProgress:
    """How far a training has come.

    Args:
        number: Of the run under way among all that the plan has, from 1.
        count: How many the plan has.
        implementation: Of its norms.
        seed: Of its weights and batches.
        step: How many steps it has made.
        steps: How many it will make.
        made: Steps made since ``Trainer.run`` was called, in all its runs.
        left: Steps still to make, in all runs.
        seconds: Since ``Trainer.run`` was called.
    """

    number: int
    count: int
    implementation: str
    seed: int
    step: int
    steps: int
    made: int
    left: int
    seconds: float

    @property
    def seconds_left(self) -> float | None:
        """If all steps take as long as those made so far; None before the first."""
        return self.seconds / self.made * self.left if self.made else None


@dataclass
class Pace:
    """Since when steps are made, and how many were.

    Args:
        began: By the trainer's clock.
        made: Steps, in all runs.
    """

    began: float
    made: int = 0
