"""Asked after each turn of a task: has it changed what others rely on, or been compiled or run eagerly instead?"""

from __future__ import annotations

from normbench import compilation
from normbench.failures import Failure
from normbench.records import Status
from normbench.torch_state import TorchState

_RECOMPILED = Failure(status=Status.FAILED, reason="torch.compile built another graph inside the timed region")
_FELL_BACK = Failure(status=Status.FAILED, reason="torch.compile fell back to eager inside the timed region")


def changed_settings(changes: str) -> Failure:
    """What a task that changed torch's settings has done to itself: others were timed with them, or would be."""
    return Failure(status=Status.INCORRECT, reason=f"changed torch's settings: {changes}")


class Watch:
    """Remembers how things were when it was made; each call says what whoever had the last turn has changed.

    It puts back what can be put back, so that the next one's turn is as it should be. A call takes microseconds.
    """

    def __init__(self) -> None:
        self._state = TorchState.now()
        self._compiled = self._count()

    def __call__(self) -> Failure | None:
        """Why the task of the last turn may have no time; None where all is as it was."""
        changes = self._state.restore()
        (graphs, frames), self._compiled = self._compiled, self._count()
        if changes is not None:
            return changed_settings(changes)
        if self._compiled[0] != graphs:
            return _RECOMPILED
        return _FELL_BACK if self._compiled[1] != frames else None

    @staticmethod
    def _count() -> tuple[int, int]:
        return compilation.graph_count(), compilation.frame_count()
