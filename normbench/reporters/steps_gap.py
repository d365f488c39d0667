"""Predicted against measured in words: what norms alone say of a step, what it says, and what may lie between."""

from __future__ import annotations

from dataclasses import dataclass

from normbench import prediction, units
from normbench.prediction import Difference, Gap, Prediction
from normbench.records import Status, StepCell, StepRun
from normbench.reporters import statements

_MOST_PLACES = 8

GAPS = {
    Gap.AGREES: "as predicted",
    Gap.MORE: "more than predicted",
    Gap.LESS: "less than predicted",
    Gap.OPEN: "cannot tell",
}
"""What each gap is called."""


@dataclass(frozen=True, kw_only=True)
class GapLine:
    """One candidate's row: predicted and measured, as text."""

    where: str
    candidate: str
    norm: str
    predicted: str
    measured: str
    gap: str
    why: str


def lines(run: StepRun) -> list[GapLine]:
    """A row for each candidate of each cell that was measured both alone and in the step."""
    return [_line(run, found) for found in prediction.of_run(run)]


def _line(run: StepRun, found: Prediction) -> GapLine:
    return GapLine(
        where=str(found.cell),
        candidate=found.candidate,
        norm=_text(_each(found)),
        predicted=_text(found.predicted),
        measured=_text(found.measured),
        gap=gap(found),
        why=why(run, found),
    )


def _each(found: Prediction) -> Difference:
    """What one norm alone takes longer."""
    whole = found.predicted
    return Difference(
        value_s=whole.value_s / found.norms, low_s=whole.low_s / found.norms, high_s=whole.high_s / found.norms
    )


def _text(found: Difference) -> str:
    return units.longer(found.value_s, found.low_s, found.high_s)


def gap(found: Prediction) -> str:
    """``as predicted``, ``320 µs more than predicted``."""
    if found.gap in (Gap.AGREES, Gap.OPEN):
        return GAPS[found.gap]
    return f"{units.duration(abs(found.gap_s))} {GAPS[found.gap]}"


def why(run: StepRun, found: Prediction) -> str:
    """What may explain a gap, said as possible; what is known beside it, said as known."""
    if found.gap is Gap.AGREES:
        return "the intervals overlap: nothing to explain"
    if found.gap is Gap.OPEN:
        return "the interval of what was measured holds no difference at all as well as the predicted one"
    return f"possible, not looked into: {_possible(run, found)}{_kept(run, found)}"


def _possible(run: StepRun, found: Prediction) -> str:
    model = "in the compiled model" if found.cell.compiled else "in the eager model"
    reasons = _MORE if found.gap is Gap.MORE else _LESS
    return f"{model} {reasons[found.cell.compiled, run.header.device.kind == 'cuda']}"


_ELSEWHERE = "a norm finds its input in another cache than alone, and allocates among the model's other tensors"
_MORE = {
    (False, False): _ELSEWHERE,
    (False, True): f"launch gaps, where kernels are too short to hide their launches; {_ELSEWHERE}",
    (True, False): "the compiler fuses the baseline's norms with their neighbours, and these not or less; "
    f"{_ELSEWHERE}",
    (
        True,
        True,
    ): "the compiler fuses the baseline's norms with their neighbours, and these not or less; launch gaps; "
    f"{_ELSEWHERE}",
}
_LESS = {
    (
        False,
        False,
    ): "a norm's input, just written by the op before it, may still be in a cache; a norm that moves fewer "
    "bytes leaves more of the cache to its neighbours",
    (
        False,
        True,
    ): "launch gaps are hidden behind the longer kernels of the neighbours; a norm's input may still be in a cache",
    (True, False): "the compiler fuses the norms with their neighbours, so that they read and write less than alone",
    (True, True): "the compiler fuses the norms with their neighbours, so that they read and write less than alone; "
    "launch gaps are hidden behind longer kernels",
}
"""By whether the model is compiled, and whether the device is a GPU."""


def _kept(run: StepRun, found: Prediction) -> str:
    """How many bytes more or less its forward keeps, which was counted."""
    results = run.results_by_cell[found.cell]
    baseline = run.header.plan.baseline
    mine, base = results[found.candidate].saved_bytes, results[baseline].saved_bytes
    if mine is None or base is None or mine == base:
        return ""
    return f". Counted: it keeps {units.size(abs(mine - base))} {'more' if mine > base else 'less'} for the backward"


def shares(run: StepRun) -> list[str]:
    """What the baseline's norms take of its step, a sentence for each cell where both were measured."""
    lines = []
    baseline = run.header.plan.baseline
    for cell in run.results_by_cell:
        share, alone = share_of(run, cell, baseline), prediction.alone_time(run, cell, baseline)
        if share is not None and alone is not None:
            norms = cell.shape.norms
            lines.append(
                f"{statements.capital(str(cell))}: by themselves the {norms} norms take {units.percent(share)} of "
                f"the step of {baseline} ({norms} × {units.duration(alone.value)}){_outside(cell)}. About that much "
                "could be saved if they cost in the model what they cost alone."
            )
    return lines


def _outside(cell: StepCell) -> str:
    return ", outside the compiled model" if cell.compiled else ""


def share_of(run: StepRun, cell: StepCell, implementation: str) -> float | None:
    """The norms' time by themselves ÷ the step's; None where one of them is not known."""
    result = run.results_by_cell[cell].get(implementation)
    if result is None or result.status is not Status.OK:
        return None
    return prediction.share(run, cell, implementation)


def explanations(run: StepRun) -> list[str]:
    """What may explain the gaps, alike ones together, a sentence each."""
    places: dict[tuple[Gap, str], dict[str, None]] = {}
    for found in prediction.of_run(run):
        if found.gap in (Gap.MORE, Gap.LESS):
            where = f"{found.candidate} at width {found.cell.shape.width}"
            places.setdefault((found.gap, _possible(run, found)), {})[where] = None
    few = {key: ", ".join(statements.first_few(list(where), _MOST_PLACES)) for key, where in places.items()}
    return [
        f"{statements.capital(GAPS[kind])} ({where}): possible, not looked into: {possible}."
        for (kind, possible), where in few.items()
    ]
