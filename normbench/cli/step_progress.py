"""How a run of steps, or of training, gets on: pieces of work with the share of the time that they should take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from normbench import units
from normbench.checking import Piece
from normbench.measure import Progress
from normbench.pace import TrainingProgress
from normbench.records import Part, StepCell
from normbench.steps import OF_A_PART, PARTS

_PREPARING = 0.15
"""Of a cell's time, roughly: building, compiling and checking."""
_MEASURING = {Part.STEP: 1.0, **dict.fromkeys(PARTS, OF_A_PART)}
_LAST = 0.999


@dataclass(kw_only=True)
class StepWork:
    """An observer of steps that tells pieces of work.

    Args:
        told: Told of each piece.
        variants: How many are prepared in each cell.
        budget_s: Of a cell's whole steps.
    """

    told: Callable[[Piece], None]
    variants: int
    budget_s: float
    _cell: StepCell | None = field(default=None, init=False)
    _index: int = field(default=0, init=False)
    _count: int = field(default=1, init=False)
    _prepared: int = field(default=0, init=False)
    _part: Part | None = field(default=None, init=False)

    def step_cell_started(self, cell: StepCell, index: int, count: int) -> None:
        """See ``StepObserver``."""
        self._cell, self._index, self._count, self._prepared, self._part = cell, index, count, 0, None
        self._tell(0.0, "")

    def preparing(self, name: str) -> None:
        """See ``StepObserver``."""
        if self._part is None:
            self._tell(_PREPARING * self._prepared / (self.variants + 1), f"checking {name}")
            self._prepared += 1
        else:
            self._tell(_LAST, f"checking {name}")

    def timing(self, part: Part) -> None:
        """See ``StepObserver``."""
        self._part = part
        self._tell(self._share(0.0), f"timing {part}")

    def measured(self, progress: Progress) -> None:
        """See ``StepObserver``."""
        budget = self.budget_s * _MEASURING[self._part or Part.STEP]
        share = self._share(min(1.0, progress.seconds / budget))
        self._tell(share, f"timing {self._part}, {units.count(progress.placements, 'placement')}")

    def _share(self, of_part: float) -> float:
        """Of the cell, up to a share of the part that is being timed."""
        parts = list(_MEASURING)
        before = sum(_MEASURING[part] for part in parts[: parts.index(self._part or Part.STEP)])
        done = before + of_part * _MEASURING[self._part or Part.STEP]
        return _PREPARING + (1 - _PREPARING) * done / sum(_MEASURING.values())

    def _tell(self, of_cell: float, what: str) -> None:
        share = (self._index + min(of_cell, _LAST)) / self._count
        self.told(Piece(number=self._index, count=self._count, share=share, what=f"{self._cell}: {what}"))


def training_piece(progress: TrainingProgress) -> Piece:
    """A moment of training as a piece of work."""
    whole = progress.made + progress.left
    return Piece(
        number=progress.number - 1,
        count=progress.count,
        share=min(_LAST, progress.made / whole) if whole else 0.0,
        what=f"{progress.implementation}, seed {progress.seed}: step {progress.step} of {progress.steps}",
    )
