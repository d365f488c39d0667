"""The sentences and tables of a profile: what moves how many bytes, and how far that explains the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from normbench import units
from normbench.attribution import Cause, Explanation, amplification, explain
from normbench.records import Case, CaseProfile, Cell, Flag, Run
from normbench.reporters import statements

_MOST_KERNELS = 6
_SAME_BYTES = 0.02
_LEAST_SHARE = 0.01
_NEARLY_1 = (0.9, 1.1)
_DISAGREES = 3.0
_BUSY = "Other programs ran while this was timed: whether traffic explains the times is not judged"


def sentence(explanation: Explanation, margin: float) -> str:
    """What a reader is told about one comparison: bytes, time, and whether the one explains the other."""
    name, baseline = explanation.case.implementation, explanation.baseline
    if explanation.cause is Cause.LAUNCHES and explanation.launch_ratio is not None:
        moves = f"{name} runs {_times(explanation.launch_ratio)} the kernels of {baseline}"
        cause = "both are launch-bound, and the launches"
    else:
        moves = _moves(explanation)
        cause = "traffic"
    return f"{moves} and {_takes(explanation, margin)}: {_judgement(explanation, cause)}"


def _times(ratio: float) -> str:
    return f"{units.significant(ratio, 3 if _NEARLY_1[0] < ratio < _NEARLY_1[1] else 2)} times"


def _moves(explanation: Explanation) -> str:
    name, baseline = explanation.case.implementation, explanation.baseline
    if abs(explanation.byte_ratio - 1) < _SAME_BYTES:
        return f"{name} moves as many bytes as {baseline}"
    return f"{name} moves {_times(explanation.byte_ratio)} the bytes of {baseline}"


def _takes(explanation: Explanation, margin: float) -> str:
    if explanation.share is None:
        return f"takes as long (within {units.percent(margin)})"
    return f"takes {_times(explanation.time_ratio.value)} as long"


def _judgement(explanation: Explanation, cause: str) -> str:
    share = explanation.share
    verb = "explain" if cause.endswith("launches") else "explains"
    same_bytes = abs(explanation.byte_ratio - 1) < _SAME_BYTES and explanation.cause is Cause.TRAFFIC
    if share is None:
        return "as expected" if same_bytes else "the bytes make no difference here: cache or computing does"
    if explanation.is_explained:
        return f"{cause} {verb} it"
    if same_bytes or share <= 0:
        return f"not {cause}: computing, threads or launches make the difference"
    if share < 1:
        return f"{cause} {verb} {units.percent(share)} of it (of logarithms)"
    return "less than the bytes would cost in memory: caches absorb some of them"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One implementation's row of a cell's table, as text."""

    name: str
    op_bytes: str
    amplification: str
    launches: str
    saved: str
    peak: str
    byte_ratio: str
    time_ratio: str
    explained: str


@dataclass(frozen=True, kw_only=True)
class CellTable:
    """A profiled cell: its rows, its sentences, and what could not be had."""

    title: str
    lines: tuple[Line, ...]
    sentences: tuple[str, ...]
    missing: tuple[str, ...]
    kernels: tuple[tuple[str, str], ...]


def tables(run: Run, flags: Mapping[Case, Sequence[Flag]]) -> list[CellTable]:
    """A table for each profiled cell, in the order of the plan."""
    explanations = {explanation.case: explanation for explanation in explain(run, flags)}
    by_cell: dict[Cell, list[CaseProfile]] = {}
    for profile in run.profiles:
        by_cell.setdefault(profile.case.cell, []).append(profile)
    return [_table(run, cell, profiles, explanations) for cell, profiles in by_cell.items()]


def _table(
    run: Run, cell: Cell, profiles: Sequence[CaseProfile], explanations: Mapping[Case, Explanation]
) -> CellTable:
    margin = run.header.plan.precision.margin
    own = [explanations[p.case] for p in profiles if p.case in explanations]
    busy = cell in statements.busy_cells(run)
    return CellTable(
        title=statements.describe_cell(cell),
        lines=tuple(_line(run, profile, explanations.get(profile.case)) for profile in profiles),
        sentences=(_BUSY,) if busy else tuple(sentence(explanation, margin) for explanation in own),
        missing=tuple(text for profile in profiles for text in (*_missing(profile), *_disagreement(run, profile))),
        kernels=tuple((profile.case.implementation, _kernels(profile)) for profile in profiles if profile.kernels),
    )


def _line(run: Run, profile: CaseProfile, explanation: Explanation | None) -> Line:
    factor, launches = amplification(run, profile), profile.launches
    share = explanation.share if explanation else None
    return Line(
        name=profile.case.implementation,
        op_bytes=units.size(profile.op_bytes),
        amplification=units.ABSENT if factor is None else units.times(factor),
        launches=units.ABSENT if launches is None else f"{launches:g}",
        saved=units.size(profile.memory.saved_bytes),
        peak=units.size(profile.memory.peak_bytes),
        byte_ratio=units.ratio(explanation.byte_ratio if explanation else None),
        time_ratio=units.ratio(explanation.time_ratio.value if explanation else None),
        explained=_share(share),
    )


def _share(share: float | None) -> str:
    """How much of the time the traffic explains, as a part of all."""
    if share is None:
        return units.ABSENT
    if share < _LEAST_SHARE:
        return "none"
    return "over 100 %" if share > 1 else units.percent(share)


def _missing(profile: CaseProfile) -> list[str]:
    name = profile.case.implementation
    found = [f"{name}: no op bytes: {profile.ops_reason}"] if profile.ops_reason else []
    found += [f"{name}: no kernels: {profile.kernels_reason}"] if profile.kernels_reason else []
    return [*found, *(f"{name}: {finding}" for finding in profile.findings)]


def _disagreement(run: Run, profile: CaseProfile) -> list[str]:
    """A warning where the kernels together take a quite other time than the case: one of the two was disturbed."""
    results = run.results_by_cell.get(profile.case.cell, ())
    timing = next((r.timing for r in results if r.case == profile.case), None)
    if timing is None or profile.kernel_seconds is None:
        return []
    ratio = profile.kernel_seconds / timing.time_s.value
    if 1 / _DISAGREES < ratio < _DISAGREES:
        return []
    profiled, timed = units.duration(profile.kernel_seconds), units.duration(timing.time_s.value)
    return [f"{profile.case.implementation}: its kernels took {profiled} in the profile, {timed} when it was timed"]


def _kernels(profile: CaseProfile) -> str:
    """The longest kernels with their share of the time."""
    total = profile.kernel_seconds or 0.0
    shown = profile.kernels[:_MOST_KERNELS]
    parts = [
        f"{_count(kernel.calls)}{kernel.name} {units.duration(kernel.seconds)}"
        + (f" ({units.percent(kernel.seconds / total)})" if total else "")
        for kernel in shown
    ]
    more = len(profile.kernels) - len(shown)
    return ", ".join(parts) + (f" and {more} more" if more else "")


def _count(calls: float) -> str:
    return "" if calls == 1 else f"{calls:g} × "
