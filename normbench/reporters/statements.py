"""The sentences of a verdict, each made from comparisons, shared by every report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from normbench import stats, units, verdict
from normbench.records import Case, Cell, Comparison, Flag, Mode, Outcome, Plan, Reason, Run, Status
from normbench.verdict import Choice, Group, Verdict

MOST_PLACES = 3
"""More places than this are counted in a headline, not listed."""

FLAGS: dict[Flag, str] = {
    Flag.FEW_SAMPLES: "fewer placements than asked for fitted into the time budget",
    Flag.DRIFTED: "times drifted by more than 10 % while the cell was measured; ratios are paired and not affected",
    Flag.BIMODAL: "the samples fall into two clusters",
    Flag.THROTTLED: "the GPU lowered its clock in at least one round",
    Flag.LAUNCH_BOUND: "the eager loop takes over 1.5 times the device time, or twice the bytes take hardly longer: "
    "launching dominates, not bandwidth",
    Flag.QUEUE_NOT_HELD: "the device waited for the host in some samples",
    Flag.COMPOSITE: "torch has no fused RMSNorm kernel for this device and these dtypes: a chain of ops ran",
    Flag.COARSE_SUMS: "the gradient of gain or bias was summed in half precision: far less exact than in float32",
    Flag.BUSY_MACHINE: "other programs kept over a tenth of the cores busy: a parallel implementation suffers most",
    Flag.CACHE_RESIDENT: "the tensors fit into the last-level cache, or it moved more bytes a second than the floor "
    "does at the largest cell: cache, not memory",
    Flag.NEAR_CACHE_SIZE: "the tensors take a quarter to twice of the last-level cache: a rerun may differ by more "
    "than the interval says",
    Flag.BELOW_FLOOR: "over 5 % faster than the floor, which moves no more than it must: one of them was disturbed",
    Flag.EMULATED_DTYPE: "the device has no native bfloat16",
    Flag.IN_PLACE: "writes into its inputs by design",
    Flag.SHARED_INPUTS: "memory was short: implementations shared x and dy",
}
"""What each flag means, for readers."""

REASONS: dict[Reason, str] = {
    Reason.INTERVAL_EXCLUDES_1: "the interval excludes 1",
    Reason.INTERVAL_INSIDE_MARGIN: "the interval lies inside the margin",
    Reason.INTERVAL_TOO_WIDE: "the interval is too wide: more time or a quieter machine would decide",
    Reason.EFFECT_BELOW_MARGIN: "different, but by no more than the margin",
    Reason.TOO_FEW_PLACEMENTS: "too few placements for an interval",
    Reason.NO_BASELINE: "the baseline has no time here",
    Reason.NO_CANDIDATE: "it has no time here",
    Reason.OUT_DTYPE_DIFFERS: "its output has another dtype than the baseline's",
}
"""What each reason code means, for readers."""


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The answer in three lines: what to use, how much that gains, and how sure it is."""

    use: str
    gain: str
    certainty: str


def headline(run: Run, of_run: Verdict) -> Headline:
    """The answer of a run."""
    use, busy = _use(run, of_run), busy_cells(run)
    if busy:
        use = f"Not reliable, since other programs ran beside {len(busy)} of {len(run.results_by_cell)} cells: {use}"
    return Headline(use=_sentence(use), gain=_gain(run, of_run), certainty=_certainty(run, of_run))


def busy_cells(run: Run) -> set[Cell]:
    """The cells beside which other programs kept the processor busy."""
    return {result.case.cell for result in run.results if Flag.BUSY_MACHINE in result.flags}


def _use(run: Run, of_run: Verdict) -> str:
    plan = run.header.plan
    rows = f", {plan.rows[0]} rows" if len(plan.rows) == 1 else ""
    on = f"on {run.header.device.name}{rows}"
    choices = [choice for group in of_run.groups for choice in group.choices if choice.best is not None]
    if not choices:
        return f"{on}: no verdict, since {_why_none(run)}"
    by_advice: dict[str, list[Cell]] = {}
    for choice in choices:
        by_advice.setdefault(_advice(choice), []).append(choice.cell)
    if len(by_advice) == 1 and len(choices) == len(list(plan.cells())):
        return f"{on}: {_advice(choices[0])} for {_everywhere([choice.cell for choice in choices])}"
    places = {advice: where(plan, cells) for advice, cells in by_advice.items()}
    if all(len(of_advice) <= MOST_PLACES for of_advice in places.values()):
        return f"{on}: " + "; ".join(f"{advice} for {' and for '.join(p)}" for advice, p in places.items())
    ordered = sorted(by_advice.items(), key=lambda item: -len(item[1]))
    counts = units.join([f"{advice} in {len(cells)}" for advice, cells in ordered])
    return f"{on}: of {len(choices)} cells, {counts} (the table below says where)"


def _advice(choice: Choice) -> str:
    """``use X``, or that nothing can be said because somebody may be faster."""
    return "undecided" if choice.is_open else f"use {choice.best}"


def _why_none(run: Run) -> str:
    baseline = run.header.plan.baseline
    timed = any(r.timing is not None for r in run.results if r.case.implementation == baseline)
    return f"nothing was compared with {baseline}" if timed else f"the baseline {baseline} has no time"


def _everywhere(cells: Sequence[Cell]) -> str:
    widths = sorted({cell.width for cell in cells})
    dtypes = list(dict.fromkeys(str(cell.dtype) for cell in cells))
    modes = list(dict.fromkeys(str(cell.mode) for cell in cells))
    return f"{units.join(dtypes)}, {units.join(modes)}, at {_at(widths)}"


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
        + ("" if sorted(widths) == every and len(every) > 1 else f" at {_at(widths)}")
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


def describe_group(cell: Cell) -> str:
    """A group's title: ``fp32 forward, 1024 rows, warm cache``."""
    return f"{cell.dtype} {describe_rest(cell)}, {cell.rows} rows, {cell.cache} cache"


def _at(widths: Sequence[int]) -> str:
    return f"width {widths[0]}" if len(widths) == 1 else f"widths {units.numbers(widths)}"


def _gain(run: Run, of_run: Verdict) -> str:
    baseline = run.header.plan.baseline
    gains = [choice for group in of_run.groups for choice in group.choices if choice.speedup is not None]
    if gains:
        values = sorted(choice.speedup.value for choice in gains if choice.speedup is not None)
        places = where(run.header.plan, [choice.cell for choice in gains])
        shown = f", for {' and for '.join(places)}" if len(places) <= MOST_PLACES else f" (in {len(gains)} cells)"
        return f"Where {baseline} is not the fastest, the best is {value_range(values)} times as fast{shown}"
    judged = [c for c in run.comparisons if c.outcome is not Outcome.UNDECIDED]
    if not judged:
        compared = any(c.speedup is not None for c in run.comparisons)
        return f"Nothing could be {'told apart from' if compared else 'compared with'} {baseline}"
    slower = sorted(c.speedup.value for c in judged if c.outcome is Outcome.SLOWER and c.speedup)
    same = sum(c.outcome is Outcome.SAME for c in judged)
    parts = [f"nothing was found faster than {baseline}"]
    parts += [f"the slower ones run at {value_range(slower)} times its speed"] if slower else []
    parts += [f"{same} of {len(judged)} comparisons find no difference"] if same else []
    return _sentence("; ".join(parts))


def _certainty(run: Run, of_run: Verdict) -> str:
    total = of_run.decided + of_run.undecided
    margin = units.percent(run.header.plan.precision.margin)
    over = "processes" if run.header.plan.precision.processes > 1 else "placements"
    nominal = f"95 % intervals over {over}, margin {margin}"
    if not total:
        return "Not sure of anything: no comparison was possible"
    halves = sorted(stats.relative_half_width(c.speedup) for c in run.comparisons if c.speedup is not None)
    middle = halves[len(halves) // 2]
    text = f"How sure: {of_run.decided} of {total} comparisons are decided ({nominal}"
    text += f"; half of them ±{units.percent(middle)} or narrower)" if middle < 1 else ")"
    cells = len(run.results_by_cell)
    text += "; a quiet machine would tell more" if busy_cells(run) else ""
    floor = max((noise.least_difference for noise in run.noise), default=0.0)
    text += f"; by an A/A test differences below {units.percent(floor)} cannot be told apart" if floor else ""
    near = {result.case.cell for result in run.results if Flag.NEAR_CACHE_SIZE in result.flags}
    text += (
        f"; {len(near)} of {cells} cells are about as large as the cache: a rerun may differ there" if near else ""
    )
    return text + (f"; {missing(run)}" if run.missing else "")


def missing(run: Run) -> str:
    """How much of a run is missing: ``3 cells are missing``."""
    return "1 cell is missing" if len(run.missing) == 1 else f"{len(run.missing)} cells are missing"


def value_range(values: Sequence[float]) -> str:
    """The least and the largest of ascending ratios; one where they are written alike."""
    low, high = f"{values[0]:.2f}", f"{values[-1]:.2f}"
    return low if low == high else f"{low} to {high}"


def device_notes(run: Run) -> list[str]:
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
    best = {choice.cell: choice.best for choice in choices}
    forward = [cell for cell in best if cell.mode is Mode.FORWARD]
    pairs = [(cell, replace(cell, mode=Mode.BACKWARD)) for cell in forward]
    if any(other in best and best[other] != best[cell] for cell, other in pairs):
        notes.append(
            "Forward and backward of a training step go together, and they differ here: --modes forward-backward "
            "measures both as one."
        )
    coarse = {(r.case.cell, r.case.implementation) for r in run.results if Flag.COARSE_SUMS in r.flags}
    advised = [choice for choice in choices if (choice.cell, choice.best) in coarse]
    if advised:
        places = " and ".join(where(run.header.plan, [choice.cell for choice in advised]))
        names = units.join(sorted({choice.best or "" for choice in advised}))
        notes.append(f"{names} sums the gradients of gain and bias in half precision for {places}: far less exact.")
    return notes


def flag_notes(flags: Mapping[Case, Sequence[Flag]]) -> list[str]:
    """Each flag that occurs, on whom, and what it means."""
    found: dict[Flag, list[str]] = {}
    for case, of_case in flags.items():
        for flag in of_case:
            found.setdefault(flag, []).append(case.implementation)
    lines = []
    for flag, names in sorted(found.items()):
        count = "1 result" if len(names) == 1 else f"{len(names)} results"
        lines.append(f"{flag} ({count}: {units.join(list(dict.fromkeys(names)))}): {FLAGS[flag]}")
    return lines


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


def choice_text(choice: Choice) -> str:
    """What to use in a cell, what can't be told apart from it, and what is not known to be slower."""
    if choice.best is None:
        return "no verdict"
    rivals = f"; not told apart from it: {units.join(list(choice.rivals))}" if choice.rivals else ""
    gain = f" {units.ratio(choice.speedup.value, choice.speedup.low, choice.speedup.high)}" if choice.speedup else ""
    if choice.is_open:
        return f"undecided: {choice.best}, or perhaps {' or '.join(choice.undecided)}{rivals}"
    undecided = f"; undecided: {units.join(list(choice.undecided))}" if choice.undecided else ""
    return f"{choice.best}{gain}{rivals}{undecided}"


def open_questions(run: Run) -> list[str]:
    """The comparisons that stay undecided, by reason, with what would decide them."""
    by_reason: dict[Reason, list[Comparison]] = {}
    for comparison in run.comparisons:
        if comparison.outcome is Outcome.UNDECIDED and comparison.reason is not Reason.NO_CANDIDATE:
            by_reason.setdefault(comparison.reason, []).append(comparison)
    lines = []
    for reason, comparisons in by_reason.items():
        names = units.join(list(dict.fromkeys(c.candidate for c in comparisons)))
        lines.append(f"{reason} ({len(comparisons)}: {names}): {REASONS[reason]}")
    return lines


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


def group_choices(group: Group) -> Iterable[tuple[Cell, Choice]]:
    """The cells of a group with what to use in each."""
    return zip(group.cells, group.choices, strict=True)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
