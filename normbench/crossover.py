"""Where the answer changes along the widths: neighbouring widths that share one, and the gaps between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Generic, TypeVar

from normbench.verdict import Choice, Group

T = TypeVar("T")
K = TypeVar("K")


@dataclass(frozen=True, kw_only=True)
class Stretch(Generic[K, T]):
    """Neighbouring widths, ascending, that share an answer.

    Args:
        answer: What they share.
        widths: The widths.
        items: What the answer was found from, one a width or more.
        is_first: Whether no narrower width was tested.
        is_last: Whether no wider one was tested.
    """

    answer: K
    widths: tuple[int, ...]
    items: tuple[T, ...]
    is_first: bool
    is_last: bool


def stretches(items: Iterable[T], width: Callable[[T], int], answer: Callable[[T], K]) -> list[Stretch[K, T]]:
    """Items by ascending width, cut where the answer changes."""
    ordered = sorted(items, key=width)
    runs = [(key, tuple(run)) for key, run in groupby(ordered, key=answer)]
    return [
        Stretch(
            answer=key,
            widths=tuple(dict.fromkeys(width(item) for item in run)),
            items=run,
            is_first=index == 0,
            is_last=index == len(runs) - 1,
        )
        for index, (key, run) in enumerate(runs)
    ]


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What to use, None where the verdict abstains since somebody may be faster (``is_open``) or nothing is known.

    ``among`` names those between whom it is open, where neighbours are told apart by that.
    """

    best: str | None
    is_open: bool
    among: frozenset[str] = frozenset()


def advice_of(choice: Choice) -> Advice:
    """What one cell's choice says to use."""
    return Advice(best=None if choice.is_open else choice.best, is_open=choice.is_open)


def advised(group: Group) -> list[Stretch[Advice, Choice]]:
    """What to use along the widths of a group."""
    return stretches(group.choices, lambda choice: choice.cell.width, _advice_among)


def _advice_among(choice: Choice) -> Advice:
    """The same, so that widths at which it is open between others do not share an answer."""
    advice = advice_of(choice)
    return replace(advice, among=frozenset((str(choice.best), *choice.undecided))) if advice.is_open else advice


def alternatives(choices: Sequence[Choice]) -> tuple[str, ...]:
    """Those that can be told apart from the best one in none of the cells, in the first one's order."""
    if not choices:
        return ()
    common = set(choices[0].equals).intersection(*(choice.equals for choice in choices))
    return tuple(name for name in choices[0].equals if name in common)


@dataclass(frozen=True, kw_only=True)
class Crossover:
    """The winner changes somewhere above ``below`` and not above ``above``: between two tested widths."""

    below: int
    above: int
    before: str
    after: str


def crossovers(found: Sequence[Stretch[Advice, Choice]]) -> list[Crossover]:
    """Where one winner follows another; widths without one lie within the gap."""
    decided = [stretch for stretch in found if stretch.answer.best is not None]
    return [
        Crossover(
            below=one.widths[-1], above=other.widths[0], before=str(one.answer.best), after=str(other.answer.best)
        )
        for one, other in pairwise(decided)
        if one.answer != other.answer
    ]
