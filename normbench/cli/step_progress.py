"""How a run of steps, or of training, gets on: pieces of work with the share of the time that they should take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from normbench import units
from normbench.checking import Piece
from normbench.measure import Progress
from normbench.records import Part, StepCell, StepPlan
from normbench.steps.timing import OF_A_PART, PARTS
from normbench.training.pace import TrainingProgress

_PREPARING = 0.15
"""Of a cell's time, roughly: building, compiling and checking."""
_MEASURING = {Part.STEP: 1.0, **dict.fromkeys(PARTS, OF_A_PART)}
_LAST = 0.999


@dataclass(kw_only=True)
class StepWork:
    """An observer of steps that tells pieces of work.

    Args:
        told: Told of each piece.
        plan: What is measured.
        cells: Those of the plan that are, in order.
    """

    told: Callable[[Piece], None]
    plan: StepPlan
    cells: Sequence[StepCell]
    _index: int = field(default=0, init=False)
    _prepared: int = field(default=0, init=False)
    _part: Part | None = field(default=None, init=False)

    def step_cell_started(self, cell: StepCell, index: int, count: int) -> None:
        """See ``StepObserver``."""
        del cell, count
        self._index, self._prepared, self._part = index, 0, None
        self._tell(0.0, "")

    def preparing(self, name: str) -> None:
        """See ``StepObserver``."""
        if self._part is None:
            self._tell(_PREPARING * self._prepared / (len(self.plan.implementations) + 1), f"checking {name}")
            self._prepared += 1
        else:
            self._tell(_LAST, f"checking {name}")

    def timing(self, part: Part) -> None:
        """See ``StepObserver``."""
        self._part = part
        self._tell(self._share(0.0), f"timing {part}")

    def measured(self, progress: Progress) -> None:
        """See ``StepObserver``."""
        budget = self._budget_s(self.cells[self._index]) * _MEASURING[self._part or Part.STEP]
        share = self._share(min(1.0, progress.seconds / budget))
        self._tell(share, f"timing {self._part}, {units.count(progress.placements, 'placement')}")

    def _share(self, of_part: float) -> float:
        """Of the cell, up to a share of the part that is being timed."""
        parts = list(_MEASURING)
        before = sum(_MEASURING[part] for part in parts[: parts.index(self._part or Part.STEP)])
        done = before + of_part * _MEASURING[self._part or Part.STEP]
        return _PREPARING + (1 - _PREPARING) * done / sum(_MEASURING.values())

    def _budget_s(self, cell: StepCell) -> float:
        return self.plan.budget(cell).max_seconds

    def _tell(self, of_cell: float, what: str) -> None:
        budgets = [self._budget_s(cell) for cell in self.cells]
        done = sum(budgets[: self._index]) + min(of_cell, _LAST) * budgets[self._index]
        cell, count = self.cells[self._index], len(self.cells)
        said = f"{cell}: {what}" if what else str(cell)
        self.told(Piece(number=self._index, count=count, share=done / sum(budgets), what=said))


def training_piece(progress: TrainingProgress) -> Piece:
    """A moment of training as a piece of work."""
    whole = progress.made + progress.left
    return Piece(
        number=progress.number - 1,
        count=progress.count,
        share=min(_LAST, progress.made / whole) if whole else 0.0,
        what=f"{progress.implementation}, seed {progress.seed}: step {progress.step} of {progress.steps}",
    )
