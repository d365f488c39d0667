"""How far a run of steps can be trusted, in words: who has no result, the noise floor, flags."""

from __future__ import annotations

from normbench.records import Status, StepRun
from normbench.reporters import statements, trust


def unmeasured(run: StepRun) -> list[tuple[str, str, str]]:
    """Who has no time, or was not trained to the end: (implementation and status, where, reason)."""
    places: dict[tuple[str, str], list[str]] = {}
    for result in run.results:
        if result.status is not Status.OK:
            places.setdefault((f"{result.implementation}: {result.status}", result.reason or ""), []).append(
                str(result.cell)
            )
    for curve in run.curves:
        if curve.status is not Status.OK:
            places.setdefault((f"{curve.implementation}: {curve.status}", curve.reason or ""), []).append(
                f"seed {curve.seed}"
            )
    return [(who, "; ".join(where), reason) for (who, reason), where in places.items()]


def noise_notes(run: StepRun) -> list[str]:
    """What the baseline's step gave against itself, a sentence for each cell."""
    margin = run.header.plan.precision.margin
    return [
        trust.noise_note(str(noise.cell), noise, margin) for noise in run.noise if noise.ratio.low is not None
    ] or (["No A/A test ran along: how far two equal steps differ here is not known."] if run.results else [])


def flag_notes(run: StepRun) -> list[str]:
    """Each flag that occurs, on whom, and what it means."""
    found = ((flag, result.implementation) for result in run.results for flag in result.flags)
    return [f"{note}." for note in statements.flags_on(found)]
