"""The figures of the tests: told to whoever reads the results, and held to their limits. A rehearsal has none."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite


class Figures:
    """Those of one test.

    Args:
        record: Takes a figure's name and the figure; None in a rehearsal, where nothing measured is one.
    """

    def __init__(self, record: Callable[[str, object], None] | None) -> None:
        self._record = record

    def near(self, measured: float, truth: float, limit: float, where: str) -> None:
        """Hold a measured value to another way of measuring it, and tell how far they are from each other."""
        off_by = abs(measured / truth - 1)
        self._tell("where", where)
        self._tell("off_by", off_by)
        self.hold(off_by <= limit, f"{where}: {measured:g} is {off_by:.2%} off {truth:g}, allowed {limit:.2%}")
        assert isfinite(off_by)

    def say(self, figure: str, of: str) -> None:
        """Tell a figure, with its unit, and what it is of."""
        self._tell("figure", f"{of}: {figure}")

    def hold(self, claim: bool, otherwise: str) -> None:
        """Assert what a real device's time must fulfil."""
        assert claim or self._record is None, otherwise

    def _tell(self, name: str, value: object) -> None:
        if self._record is not None:
            self._record(name, value)
