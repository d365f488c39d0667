"""A whole run: the plan, the device and software it ran on, and all results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

from normbench.records.cases import Cell, ImplementationInfo
from normbench.records.plan import Plan
from normbench.records.profile import CaseProfile
from normbench.records.results import CaseResult, Comparison, NoiseFloor, Spent, Status


@dataclass(frozen=True, kw_only=True)
class DeviceInfo:
    """What is known of the device; None for what it does not say.

    ``peak_bytes_per_s`` is computed from the device's own properties (2 × memory clock × bus width ÷ 8),
    never from a table of names. ``fused_rmsnorm`` is what a probe of ``F.rms_norm`` in float32 ran.
    """

    kind: str
    name: str
    slug: str
    memory_bytes: int
    threads: int | None = None
    cache_bytes: int | None = None
    capability: tuple[int, int] | None = None
    peak_bytes_per_s: float | None = None
    fused_rmsnorm: bool | None = None
    native_bf16: bool = True

    def __post_init__(self) -> None:
        if self.kind not in ("cpu", "cuda"):
            raise ValueError(f"kind is cpu or cuda, not {self.kind[:40]!a}")
        if min(self.memory_bytes, *(1 if n is None else n for n in (self.threads, self.cache_bytes))) < 1:
            raise ValueError("memory_bytes, threads and cache_bytes are above 0 where they are known")
        if self.peak_bytes_per_s is not None and not 0 < self.peak_bytes_per_s < inf:
            raise ValueError("peak_bytes_per_s is above 0 where it is known")


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The software a run used. No host name, user name, path or environment variable stands in it.

    ``native_dsls`` are the kernel languages in which this torch may replace kernels of its own, nn.RMSNorm's
    among them.
    """

    normbench: str
    python: str
    torch: str
    platform: str
    cuda: str | None = None
    driver: str | None = None
    triton: str | None = None
    packages: tuple[tuple[str, str], ...] = ()
    native_dsls: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Resumption:
    """A run was gone on with although something had changed since.

    Args:
        created_utc: When.
        cells: How many cells were complete by then: those that were measured before the change.
        differences: What of device and software was not as the run began with it, a sentence each:
            ``torch was 2.12.0, is 2.13.0``; empty where everything was so again.
        plan: What of the plan was changed then, a sentence each: ``--widths was 256, is 256 512``.
    """

    created_utc: str
    cells: int
    differences: tuple[str, ...]
    plan: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunHeader:
    """What ``run.json`` holds: everything about a run except its results.

    ``device`` and ``environment`` are those that the run began with; ``resumed`` says what changed on the way.
    """

    created_utc: str
    command: tuple[str, ...]
    plan: Plan
    device: DeviceInfo
    environment: Environment
    implementations: tuple[ImplementationInfo, ...]
    resumed: tuple[Resumption, ...] = ()

    def __post_init__(self) -> None:
        names = [info.name for info in self.implementations]
        if len(set(names)) < len(names):
            raise ValueError("implementations: none stands there twice")
        unknown = [name for name in self.plan.implementations if name not in names]
        if unknown:
            raise ValueError(f"plan.implementations: {unknown[0][:40]!a} is not among implementations")

    def info(self, name: str) -> ImplementationInfo:
        """What is known of the implementation called ``name``; a KeyError where it is not in the run."""
        for info in self.implementations:
            if info.name == name:
                return info
        raise KeyError(name)

    @property
    def candidates(self) -> tuple[ImplementationInfo, ...]:
        """The implementations that are compared with the baseline."""
        apart = (self.plan.floor, self.plan.baseline)
        return tuple(info for info in self.implementations if info.name not in apart)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run as reports see it. Samples stay in their file: they are read where they are needed.

    ``comparisons`` are with the plan's baseline, ``swaps`` those of an RMSNorm with the LayerNorm that it would
    replace; ``profiles`` holds what a profile found of the cases that have a time, ``noise`` the A/A tests that ran
    along, ``spent`` where the time of its cells went.
    """

    header: RunHeader
    results: tuple[CaseResult, ...]
    comparisons: tuple[Comparison, ...]
    swaps: tuple[Comparison, ...] = ()
    profiles: tuple[CaseProfile, ...] = ()
    noise: tuple[NoiseFloor, ...] = ()
    spent: Spent = field(default_factory=Spent)

    @cached_property
    def results_by_cell(self) -> Mapping[Cell, tuple[CaseResult, ...]]:
        """The results of each measured cell, in the order in which they were written."""
        found: dict[Cell, list[CaseResult]] = {}
        for result in self.results:
            found.setdefault(result.case.cell, []).append(result)
        return {cell: tuple(results) for cell, results in found.items()}

    @cached_property
    def comparisons_by_cell(self) -> Mapping[Cell, Mapping[str, Comparison]]:
        """The comparisons of each cell by candidate."""
        found: dict[Cell, dict[str, Comparison]] = {}
        for comparison in self.comparisons:
            found.setdefault(comparison.cell, {})[comparison.candidate] = comparison
        return found

    @cached_property
    def swaps_by_cell(self) -> Mapping[Cell, Mapping[tuple[str, str], Comparison]]:
        """The swaps of each cell by the names of LayerNorm and RMSNorm."""
        found: dict[Cell, dict[tuple[str, str], Comparison]] = {}
        for swap in self.swaps:
            found.setdefault(swap.cell, {})[swap.baseline, swap.candidate] = swap
        return found

    def comparison(self, cell: Cell, candidate: str) -> Comparison | None:
        """The comparison of a candidate in a cell; None where there is none."""
        return self.comparisons_by_cell.get(cell, {}).get(candidate)

    @cached_property
    def missing(self) -> tuple[Cell, ...]:
        """The plan's cells that lack a final status for some implementation."""
        final = {(r.case.cell, r.case.implementation) for r in self.results if r.status.is_final}
        names = self.header.plan.implementations
        return tuple(c for c in self.header.plan.cells() if any((c, name) not in final for name in names))

    @cached_property
    def done(self) -> tuple[Cell, ...]:
        """The plan's other cells, in which every case has a final status."""
        missing = set(self.missing)
        return tuple(cell for cell in self.header.plan.cells() if cell not in missing)

    @property
    def is_complete(self) -> bool:
        """Whether every case of the plan has a final status."""
        return not self.missing

    @property
    def has_times(self) -> bool:
        """Whether at least one case was measured."""
        return any(result.status is Status.OK for result in self.results)
