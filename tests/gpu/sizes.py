"""How much the tests of a GPU measure: on a real one, and in a rehearsal."""

from __future__ import annotations

from dataclasses import dataclass

from normbench.implementations import ALL, Implementation
from normbench.records import Op, Operation


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Rows and widths, and who takes part.

    Args:
        large: Rows and width of a cell that takes much longer than a launch.
        larger: The same of one beside which a launch and a flush are nothing.
        middle: The same of one that everybody is measured in.
        checked: Rows and width at which results are only checked.
        repeats: How often one thing is timed.
        max_seconds: For a cell.
        everyone: Whether those take part that are compiled.
    """

    large: tuple[int, int]
    larger: tuple[int, int]
    middle: tuple[int, int]
    checked: tuple[int, int]
    repeats: int
    max_seconds: float
    everyone: bool

    def of(self, operation: Operation) -> tuple[Implementation, ...]:
        """Those of an operation that take part: no package's, since it need not be there."""
        alike = (one for one in ALL if one.op.operation is operation)
        return tuple(one for one in alike if self.everyone or not one.compiled)

    def uncompiled(self, operation: Operation) -> tuple[Implementation, ...]:
        """The same without those that are compiled, which takes seconds for each."""
        return tuple(one for one in self.of(operation) if not one.compiled)

    @property
    def norms(self) -> tuple[Implementation, ...]:
        """The norms that take part, the floor apart; in a rehearsal one of each kind."""
        found = (one for one in self.of(Operation.NORM) if one.op is not Op.COPY)
        return tuple(one for one in found if self.everyone or one.name in ("nn-layernorm", "eager-rmsnorm"))


REAL = Sizes(
    large=(16384, 8192),
    larger=(32768, 4096),
    middle=(2048, 1024),
    checked=(64, 1024),
    repeats=20,
    max_seconds=1.0,
    everyone=True,
)
REHEARSAL = Sizes(
    large=(256, 128),
    larger=(256, 64),
    middle=(64, 64),
    checked=(16, 64),
    repeats=3,
    max_seconds=0.05,
    everyone=False,
)
