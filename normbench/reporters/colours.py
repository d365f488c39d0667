"""stub until merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from normbench.records import ImplementationInfo


@dataclass(frozen=True)
class Colour:
    """A colour and its word."""

    hex: str
    word: str


_ALL = (
    Colour("#0072B2", "blue"),
    Colour("#D55E00", "vermilion"),
    Colour("#000000", "black"),
    Colour("#CC79A7", "pink"),
    Colour("#009E73", "green"),
    Colour("#E69F00", "orange"),
    Colour("#56B4E9", "sky blue"),
)


def of(implementations: Sequence[ImplementationInfo]) -> dict[str, Colour]:
    """Colours."""
    return {info.name: _ALL[i % len(_ALL)] for i, info in enumerate(implementations)}
