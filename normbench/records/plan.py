"""What a sweep is asked to do: the grid and how precisely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from math import inf, prod

from normbench.records.cases import Cache, Cell, DType, Mode, Operation
from normbench.records.sources import Brought

LEAST_PLACEMENTS = 5
"""Fewer give no interval: two that agree by chance would look certain, and Student's t is wide beyond use."""


MOST_SIZE = 10**18
"""The largest width or row count that can be asked for."""

MOST_CASES = 200_000
"""Of one plan: cells × implementations. A second each would be over two days."""

MOST_SECONDS = 1e9
"""No time limit is longer, in seconds: thirty years."""


@dataclass(frozen=True, kw_only=True)
class Precision:
    """When a cell has been measured well enough.

    Args:
        placements: The least number of placements; measuring is looked at after this many, twice and four times.
        target: Stop when every pair's interval has a half-width below this (a fraction of the ratio).
        margin: Differences up to this fraction count as none.
        max_seconds: Time budget of one cell's measuring, compilation and checking not included.
        total_seconds: Time budget of the sweep, everything included; None for no limit.
        processes: Over how many fresh processes the placements are spread; the interval is over them where
            there are several, and they are ``LEAST_PLACEMENTS`` at least.
    """

    placements: int = 10
    target: float = 0.01
    margin: float = 0.02
    max_seconds: float = 10.0
    total_seconds: float | None = None
    processes: int = 1

    def __post_init__(self) -> None:
        if self.placements < 2:
            raise ValueError("an interval over placements needs at least 2 of them")
        if not (0 < self.target < 1 and 0 < self.margin < 1 and 0 < self.max_seconds <= MOST_SECONDS):
            raise ValueError(f"target and margin lie between 0 and 1, max_seconds above 0, up to {MOST_SECONDS:g}")
        if self.total_seconds is not None and not 0 < self.total_seconds <= MOST_SECONDS:
            raise ValueError(f"total_seconds is above 0, up to {MOST_SECONDS:g}")
        if max(self.placements, self.processes) > MOST_SIZE:
            raise ValueError(f"placements and processes are at most {MOST_SIZE}")
        if self.processes != 1 and self.processes < LEAST_PLACEMENTS:
            raise ValueError(f"an interval over processes needs {LEAST_PLACEMENTS} of them at least")

    @property
    def looks(self) -> tuple[int, int, int]:
        """The numbers of placements after which measuring may stop."""
        return (self.placements, 2 * self.placements, 4 * self.placements)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A sweep: every combination of the axes is a cell, and every implementation is measured in each.

    ``parameter_dtypes`` may hold None, which means x's dtype; ``autocasts`` may hold None, which means off.
    ``graphs`` asks for the time of captured CUDA graphs beside the others, ``profile`` for a profile of every case,
    ``counters`` for counted bytes in it, which take a program of its own for each case.

    ``brought`` says where those of the ``implementations`` lie that the user brings.

    ``isolate`` measures in processes of their own, so that a case that ends its process costs only itself;
    ``case_timeout_s`` is how long one implementation may be busy without a pause: building, compiling and checking
    it in a cell, or one sample. None is for ever, and the only choice where nothing is isolated.

    ``fail_on`` is how much slower than the baseline, as a fraction, lets a run fail; None lets nothing. It changes
    nothing that is measured: it stands here so that a report made later gives the run's own answer.
    """

    operation: Operation = Operation.NORM
    widths: tuple[int, ...]
    rows: tuple[int, ...]
    dtypes: tuple[DType, ...]
    parameter_dtypes: tuple[DType | None, ...] = (None,)
    autocasts: tuple[DType | None, ...] = (None,)
    modes: tuple[Mode, ...] = (Mode.FORWARD, Mode.BACKWARD)
    caches: tuple[Cache, ...]
    implementations: tuple[str, ...]
    brought: tuple[Brought, ...] = ()
    baseline: str = "nn-layernorm"
    floor: str = "copy"
    eps: float = 1e-6
    compile_mode: str = "default"
    graphs: bool = False
    profile: bool = False
    counters: bool = False
    isolate: bool = True
    case_timeout_s: float | None = 300.0
    seed: int = 0
    precision: Precision = field(default_factory=Precision)
    fail_on: float | None = None

    def __post_init__(self) -> None:
        for name in (
            "widths",
            "rows",
            "dtypes",
            "parameter_dtypes",
            "autocasts",
            "modes",
            "caches",
            "implementations",
        ):
            values = getattr(self, name)
            if not values or len(set(values)) != len(values):
                raise ValueError(f"{name} holds at least one value and none twice")
        if min(*self.widths, *self.rows) < 1 or max(*self.widths, *self.rows) > MOST_SIZE:
            raise ValueError(f"widths and rows lie between 1 and {MOST_SIZE}")
        if self.floor not in self.implementations or self.baseline not in self.implementations:
            raise ValueError("baseline and floor are always measured along")
        refuse_unmeasured(self.brought, self.implementations)
        if self.baseline == self.floor or not 0 < self.eps < inf:
            raise ValueError("the floor is no baseline, and eps is above 0")
        if not -(2**63) <= self.seed < 2**64:
            raise ValueError("the seed has 64 bits")
        if self.cases > MOST_CASES:
            raise ValueError(f"{self.cases} cases are more than {MOST_CASES}: ask for fewer sizes or implementations")
        self._refuse_odd_limits()

    def _refuse_odd_limits(self) -> None:
        if self.case_timeout_s is not None and not (self.isolate and 0 < self.case_timeout_s <= MOST_SECONDS):
            raise ValueError("a time limit of a case is above 0 s, and needs a process that can be ended")
        if not self.isolate and self.precision.processes > 1:
            raise ValueError("several processes are isolated ones")
        if self.fail_on is not None and not 0 < self.fail_on < 1:
            raise ValueError("what is slower fails by a fraction between 0 and 1")

    @property
    def cases(self) -> int:
        """How many cases there are at most: "the same as x" and a dtype by its name can be the same cell."""
        axes = (self.dtypes, self.parameter_dtypes, self.autocasts, self.caches, self.modes, self.rows, self.widths)
        return prod(len(axis) for axis in (*axes, self.implementations))

    def cells(self) -> Iterator[Cell]:
        """Every cell once, widths innermost, so that one dtype's and mode's answer is complete early."""
        axes = product(
            self.dtypes,
            self.parameter_dtypes,
            self.autocasts,
            self.caches,
            self.modes,
            self.rows,
            self.widths,
        )
        seen: set[Cell] = set()
        for dtype, parameter_dtype, autocast, cache, mode, rows, width in axes:
            cell = Cell(
                operation=self.operation,
                mode=mode,
                rows=rows,
                width=width,
                dtype=dtype,
                parameter_dtype=parameter_dtype or dtype,
                autocast=autocast,
                cache=cache,
            )
            if cell not in seen:  # "the same as x" and a dtype by its name can be the same cell
                seen.add(cell)
                yield cell


def refuse_unmeasured(brought: tuple[Brought, ...], implementations: tuple[str, ...]) -> None:
    """A ValueError where something is brought that is not measured, or two of one name."""
    names = [one.name for one in brought]
    if len(set(names)) != len(names) or not set(names) <= set(implementations):
        raise ValueError("what is brought has a name of its own among the implementations")
