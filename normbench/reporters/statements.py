"""Words for places, and the sentences around a verdict, shared by every report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from normbench import units, verdict
from normbench.crossover import Stretch
from normbench.legible import visible
from normbench.records import Case, Cell, Comparison, Flag, Mode, Outcome, Plan, Reason, Run, Status, StepRun
from normbench.reporters.meanings import FLAGS, REASONS, REMEDIES
from normbench.verdict import Verdict

MOST_PLACES = 3
"""More places than this are counted in a headline, not listed."""

_MOST_WIDTHS = 6


def busy_cells(run: Run) -> set[Cell]:
    """The cells beside which other programs kept the processor busy."""
    return {result.case.cell for result in run.results if Flag.BUSY_MACHINE in result.flags}


def timed_cells(run: Run) -> set[Cell]:
    """The cells in which anybody has a time."""
    return {result.case.cell for result in run.results if result.timing is not None}


def where(plan: Plan, cells: Iterable[Cell]) -> list[str]:
    """Where some cells lie, in as few places as say it: ``fp32 and bf16 backward at widths 256 and 512``.

    Widths are left out where they are all of the plan's.
    """
    dtypes: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for group in verdict.group_cells(cells):
        widths = tuple(dict.fromkeys(cell.width for cell in group))
        dtypes.setdefault((_apart_from_dtype(plan, group[0]), widths), []).append(str(group[0].dtype))
    modes: dict[tuple[str, tuple[int, ...], str], list[str]] = {}
    for (rest, widths), names in dtypes.items():
        mode, comma, extra = rest.partition(", ")
        modes.setdefault((units.join(list(dict.fromkeys(names))), widths, comma + extra), []).append(mode)
    every = sorted(plan.widths)
    return [
        f"{names} {units.join(of_names)}{extra}"
        + ("" if sorted(widths) == every and len(every) > 1 else f" at {at(widths)}")
        for (names, widths, extra), of_names in modes.items()
    ]


def _apart_from_dtype(plan: Plan, cell: Cell) -> str:
    """A cell's mode, and those axes of which the plan has several values."""
    extra = [f"{cell.rows} rows"] if len(plan.rows) > 1 else []
    extra += [f"{cell.cache} cache"] if len(plan.caches) > 1 else []
    return ", ".join([describe_rest(cell), *extra])


def describe_rest(cell: Cell) -> str:
    """A group's mode, and what else is not as by default."""
    extra = [] if cell.parameter_dtype is cell.dtype else [f"{cell.parameter_dtype} parameters"]
    extra += [] if cell.autocast is None else [f"autocast {cell.autocast}"]
    return ", ".join([str(cell.mode), *extra])


def describe_operation(cell: Cell) -> str:
    """What a cell computes, for the front of a title, where that is no norm alone: ``add-norm ``."""
    return f"{cell.operation} " if cell.operation.adds else ""


def describe_kind(cell: Cell) -> str:
    """A cell's dtype and mode: ``fp32 forward``."""
    return f"{cell.dtype} {describe_rest(cell)}"


def describe_cell(cell: Cell) -> str:
    """A cell without its cache state: ``2048×256 fp32 forward``."""
    return f"{describe_operation(cell)}{cell.size} {describe_kind(cell)}"


def describe_group(cell: Cell) -> str:
    """A group's title: ``fp32 forward, 1024 rows, warm cache``."""
    return f"{describe_operation(cell)}{describe_kind(cell)}, {cell.rows} rows, {cell.cache} cache"


def at(widths: Sequence[int]) -> str:
    """Some widths: ``widths 256 and 512``, ``20 widths from 64 to 8192``."""
    if len(widths) > _MOST_WIDTHS:
        return f"{len(widths)} widths from {min(widths)} to {max(widths)}"
    return f"width {widths[0]}" if len(widths) == 1 else f"widths {units.numbers(widths)}"


def missing(run: Run) -> str:
    """How much of a run is missing: ``3 cells are missing``."""
    return f"{units.count(len(run.missing), 'cell')} {'is' if len(run.missing) == 1 else 'are'} missing"


def value_range(values: Sequence[float]) -> str:
    """The least and the largest of ascending ratios; one where they are written alike."""
    low, high = f"{values[0]:.2f}", f"{values[-1]:.2f}"
    return low if low == high else f"{low} to {high}"


def device_notes(run: Run | StepRun) -> list[str]:
    """What must be known of the device to read the verdict."""
    device = run.header.device
    notes = []
    if device.kind == "cpu":
        notes.append("This is a verdict about a CPU, not about a GPU: the kernels that decide there are others.")
    if device.fused_rmsnorm is False:
        notes.append("This device has no fused RMSNorm in this torch: nn.RMSNorm runs as a chain of ops.")
    if not device.native_bf16:
        notes.append("This device emulates bfloat16.")
    return notes


def advice_notes(run: Run, of_run: Verdict) -> list[str]:
    """What must be known before following the advice."""
    notes = ["LayerNorm and RMSNorm are different functions: swapping one for the other changes the model."]
    choices = [choice for group in of_run.groups for choice in group.choices]
    suitable = {c.cell: {c.best, *c.equals} for c in choices if c.best is not None and not c.is_open}
    forward = [cell for cell in suitable if cell.mode is Mode.FORWARD]
    pairs = [(cell, replace(cell, mode=Mode.BACKWARD)) for cell in forward]
    if any(other in suitable and not suitable[other] & suitable[cell] for cell, other in pairs):
        notes.append(
            "Forward and backward of a training step go together, and they differ here: --modes forward-backward "
            "measures both as one."
        )
    coarse = {(r.case.cell, r.case.implementation) for r in run.results if Flag.COARSE_SUMS in r.flags}
    advised = [c for c in choices if not c.is_open and (c.cell, c.best) in coarse]
    if advised:
        places = " and ".join(where(run.header.plan, [choice.cell for choice in advised]))
        names = sorted({choice.best or "" for choice in advised})
        notes.append(
            f"{units.join(names)} {'sums' if len(names) == 1 else 'sum'} the gradients of gain and bias in half "
            f"precision for {places}: far less exact."
        )
    return [*notes, *_one_kernel(run), *_wrong(run)]


def _one_kernel(run: Run) -> list[str]:
    """Where one kernel was measured under two names, or under torch's name though it is another's."""
    replaced = [result.case for result in run.results if Flag.VENDORED_QUACK in result.flags]
    if not replaced:
        return []
    names = sorted({case.implementation for case in replaced})
    places = where(run.header.plan, dict.fromkeys(case.cell for case in replaced))
    both = [*names, "quack-rmsnorm"]
    is_beside = "quack-rmsnorm" in run.header.plan.implementations
    meant = (
        f"{units.join(both)} are one kernel there, as far as their versions are one"
        if is_beside
        else "not torch's own"
    )
    return [
        f"torch ran its copy of quack's kernel as {units.join(names)} {_shown(places, f'{len(replaced)} cells')}: "
        f"{meant} (with TORCH_DISABLE_NATIVE_JIT=1 it runs its own)."
    ]


def _wrong(run: Run) -> list[str]:
    """Who gave wrong results, and where."""
    by_name: dict[str, list[Cell]] = {}
    for result in run.results:
        if result.status is Status.INCORRECT:
            by_name.setdefault(result.case.implementation, []).append(result.case.cell)
    if not by_name:
        return []
    parts = [
        f"{name} {_shown(where(run.header.plan, cells), f'{len(cells)} cells')}" for name, cells in by_name.items()
    ]
    return [f"Wrong results, and so without a time: {'; '.join(parts)}."]


def _shown(places: Sequence[str], counted: str) -> str:
    """Places as a sentence names them; counted where they are too many."""
    return f"for {', and for '.join(places)}" if len(places) <= MOST_PLACES else f"in {counted}"


def flag_notes(flags: Mapping[Case, Sequence[Flag]]) -> list[str]:
    """Each flag that occurs, on whom, and what it means."""
    return flags_on((flag, case.implementation) for case, of_case in flags.items() for flag in of_case)


def flags_on(found: Iterable[tuple[Flag, str]]) -> list[str]:
    """Each flag, on which results of which implementations, and what it means."""
    by_flag: dict[Flag, list[str]] = {}
    for flag, name in found:
        by_flag.setdefault(flag, []).append(name)
    lines = []
    for flag, names in sorted(by_flag.items()):
        count = units.count(len(names), "result")
        lines.append(f"{flag} ({count}: {units.join(list(dict.fromkeys(names)))}): {FLAGS[flag]}")
    return lines


def first_few(texts: Sequence[str], most: int | None, last: str = "") -> list[str]:
    """The first of some texts, and how many more there are: ``a``, ``b``, ``3 more``; ``last`` stands before that."""
    beyond = 0 if most is None else len(texts) - most
    return [*texts[:most], *([f"{last}{beyond} more"] if beyond > 0 else [])]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How one candidate did against the baseline over all cells of a mode."""

    candidate: str
    mode: Mode
    counts: dict[Outcome, int]
    low: float | None
    high: float | None


def standings(run: Run) -> list[Standing]:
    """For each mode and candidate the outcomes and the range of its speedups."""
    found = []
    for mode in run.header.plan.modes:
        for info in run.header.candidates:
            own = [c for c in run.comparisons if c.candidate == info.name and c.cell.mode is mode]
            values = [c.speedup.value for c in own if c.speedup is not None]
            if own:
                found.append(
                    Standing(
                        candidate=info.name,
                        mode=mode,
                        counts={outcome: sum(c.outcome is outcome for c in own) for outcome in Outcome},
                        low=min(values, default=None),
                        high=max(values, default=None),
                    )
                )
    return found


def open_questions(run: Run, flags: Mapping[Case, Sequence[Flag]]) -> list[str]:
    """What stays undecided, by reason, and what would decide it."""
    by_reason: dict[Reason, list[Comparison]] = {}
    for comparison in run.comparisons:
        if comparison.outcome is Outcome.UNDECIDED and comparison.reason is not Reason.NO_CANDIDATE:
            by_reason.setdefault(comparison.reason, []).append(comparison)
    lines = [_question(run.header.plan, reason, found) for reason, found in by_reason.items()]
    launching = any(Flag.LAUNCH_BOUND in of_case for of_case in flags.values())
    if launching and run.header.device.kind != "cpu" and not run.header.plan.graphs:
        lines.append("Launch-bound results say what an eager loop feels: --graphs measures them without launching")
    return lines


def _question(plan: Plan, reason: Reason, comparisons: Sequence[Comparison]) -> str:
    said = _who_and_where(plan, comparisons)
    return f"{said} ({reason}): {REASONS[reason]}. What would decide it: {REMEDIES[reason]}"


def _who_and_where(plan: Plan, comparisons: Sequence[Comparison]) -> str:
    """The candidates with the places of each; where that is long, all of them and how often."""
    cells: dict[str, list[Cell]] = {}
    for comparison in comparisons:
        cells.setdefault(comparison.candidate, []).append(comparison.cell)
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, own in cells.items():
        alike.setdefault(tuple(where(plan, own)), []).append(name)
    if sum(map(len, alike)) > MOST_PLACES:
        return f"{units.join(list(cells))} in {len(comparisons)} comparisons"
    return "; ".join(f"{units.join(names)} for {', and for '.join(places)}" for places, names in alike.items())


def unmeasured(run: Run) -> list[tuple[str, str, str]]:
    """Who has no time, with what status, where and why: (implementations and status, where, reason)."""
    plan = run.header.plan
    by_case: dict[tuple[str, Status, str], list[Cell]] = {}
    for result in run.results:
        if result.status is not Status.OK:
            key = (result.case.implementation, result.status, result.reason or "")
            by_case.setdefault(key, []).append(result.case.cell)
    alike: dict[tuple[Status, str, str], list[str]] = {}
    for (name, status, reason), cells in by_case.items():
        alike.setdefault((status, "; ".join(where(plan, cells)), reason), []).append(name)
    return [
        (f"{'everything' if len(names) == len(plan.implementations) else units.join(names)}: {status}", place, reason)
        for (status, place, reason), names in alike.items()
    ]


def along(stretch: Stretch[Any, Any]) -> str:
    """Where along the widths, to stand before the answer: ``up to 512: ``; nothing where it is everywhere."""
    first, last = stretch.widths[0], stretch.widths[-1]
    if stretch.is_first and stretch.is_last:
        return ""
    if stretch.is_first and first != last:
        return f"up to {last}: "
    if stretch.is_last and first != last:
        return f"from {first} on: "
    return f"at {first}: " if first == last else f"{first} to {last}: "


def clipped(text: object, most: int | None = None) -> str:
    """A text on one line in which nothing acts or hides, cut with an ellipsis beyond ``most`` characters."""
    flat = " ".join(visible(str(text)).split())
    return flat if most is None or len(flat) <= most else f"{flat[: most - 1]}…"


def capital(text: str) -> str:
    """A text as it begins a sentence."""
    return text[:1].upper() + text[1:]
