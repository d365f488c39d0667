"""Places the entrants of a cell anew: fresh buffers, each one's task in them, and what that is held against."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from normbench.calls import Subject
from normbench.clock import Task
from normbench.device import Device
from normbench.entrants import Entrant
from normbench.failures import RAISED, Failure, failure
from normbench.inputs import Operands, Placement, Placer
from normbench.turns import TakeTurn


class Places:
    """Makes a placement's tasks when it is called. The padding lives as long as the next placement is not there.

    Args:
        placer: Makes the buffers, in the order of ``entrants``.
        entrants: Those who get them.
        values: What is in the buffers.
        device: Where.
        watch: Asked after each entrant was bound to its parameters, which is its own code.
        turn: Entered while that runs.
    """

    def __init__(
        self,
        placer: Placer,
        entrants: Sequence[Entrant],
        values: Operands,
        device: Device,
        watch: Callable[[], Failure | None],
        turn: TakeTurn,
    ) -> None:
        self._placer = placer
        self._entrants = entrants
        self._values = values
        self._device = device
        self._watch = watch
        self._turn = turn
        self._placement: Placement | None = None
        self._subjects: dict[str, Subject] = {}
        self._failures: dict[str, Failure] = {}

    @property
    def subjects(self) -> Mapping[str, Subject]:
        """The tasks of the last placement by name; none before the first."""
        return self._subjects

    @property
    def failures(self) -> Mapping[str, Failure]:
        """Who could not be bound to the parameters of a placement, and why."""
        return self._failures

    def __call__(self) -> Sequence[Task]:
        """The tasks of a new placement, in the order in which their buffers were made."""
        placement = self._placer.place()
        subjects: dict[str, Subject] = {}
        for turn in placement.turns:
            entrant = self._entrants[turn]
            name = entrant.implementation.name
            try:
                with self._turn(name):
                    subjects[name] = entrant.subject(placement.operands[turn], self._values, self._device)
            except RAISED as error:  # whatever an implementation raises is its result
                self._failures[name] = failure(error)
            odd = self._watch()
            if odd is not None:
                self._failures.setdefault(name, odd)
        # Only now the old ones go: at new addresses.
        self._placement, self._subjects = placement, subjects
        return [subject.task for subject in subjects.values()]
