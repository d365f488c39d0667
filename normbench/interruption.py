"""What measuring needs to know of interrupts: whether one was asked for, and where it may wait."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Interruption(Protocol):
    """Ends work early: by KeyboardInterrupt, or where that would lose something, at the next good moment."""

    @property
    def is_asked_for(self) -> bool:
        """Whether to stop at the next good moment."""

    def may_wait(self) -> AbstractContextManager[None]:
        """A context whose owner looks at ``is_asked_for`` often: the first request raises nothing in it."""


class Never:
    """Nothing interrupts but what Python itself raises."""

    is_asked_for = False

    def may_wait(self) -> AbstractContextManager[None]:
        """See ``Interruption.may_wait``."""
        return nullcontext()
