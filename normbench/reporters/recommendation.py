"""What to use along the widths, and where the winner changes: a row for each dtype and mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from normbench import crossover, units
from normbench.crossover import Crossover
from normbench.records import Run
from normbench.reporters import caveats, headline, statements
from normbench.verdict import Choice, Group


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """One row.

    Args:
        what: Dtype and mode.
        rows: Rows of x.
        cache: Cache state.
        use: What to use, along the widths.
        changes: Between which widths the winner changes; empty where it does not.
        but: Which results it rests on are flagged.
    """

    what: str
    rows: int
    cache: str
    use: str
    changes: str
    but: str


def recommend(run: Run, group: Group, flags: caveats.Flags) -> Recommendation:
    """What to use in the cells of a group."""
    first, found = group.first, crossover.advised(group)
    relied_on = [case for choice in group.choices for case in headline.relied_on_by(run, choice)]
    return Recommendation(
        what=statements.describe_kind(first),
        rows=first.rows,
        cache=str(first.cache),
        use="; ".join(f"{statements.along(stretch)}{advice(run, stretch.items)}" for stretch in found),
        changes=", ".join(_change(change) for change in crossover.crossovers(found)),
        but=caveats.at_widths(caveats.caveats(flags, relied_on), group.cells),
    )


def advice(run: Run, choices: Sequence[Choice]) -> str:
    """What choices that agree say to use, and how much that gains over the baseline."""
    said = crossover.advice_of(choices[0])
    if said.is_open:
        open_ones = dict.fromkeys(name for choice in choices for name in choice.undecided)
        return f"undecided between {units.join([str(choices[0].best), *open_ones])}"
    if said.best is None:
        return "no verdict"
    names = " or ".join([said.best, *crossover.alternatives(choices)])
    maybe = dict.fromkeys(name for choice in choices for name in choice.rivals if name in choice.undecided)
    perhaps = f" ({units.join(list(maybe))} undecided)" if maybe else ""
    return f"{names}{_gain(run, choices)}{perhaps}"


def _gain(run: Run, choices: Sequence[Choice]) -> str:
    """How much faster than the baseline: with its interval at one width, as a range over several."""
    speedups = [choice.speedup for choice in choices if choice.speedup is not None]
    if not speedups:
        return ""
    one = speedups[0]
    shown = (
        units.ratio(one.value, one.low, one.high)
        if len(speedups) == 1
        else statements.value_range(sorted(speedup.value for speedup in speedups))
    )
    return f", {shown} times as fast as {run.header.plan.baseline}"


def _change(change: Crossover) -> str:
    return f"{change.before} to {change.after} between {change.below} and {change.above}"
