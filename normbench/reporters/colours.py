"""One colour for each implementation: the same in every picture, in every report and in every run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

from normbench.records import ImplementationInfo


@dataclass(frozen=True, kw_only=True)
class Colour:
    """A colour as machines write it, ``#0072B2``, and as people say it, ``blue``."""

    hex: str
    word: str


FLOOR = Colour(hex="#888888", word="grey")
"""The floor's, whatever it is called."""

_NORMS: dict[str, Colour] = {
    "eager-layernorm": Colour(hex="#56B4E9", word="sky blue"),
    "eager-rmsnorm": Colour(hex="#D55E00", word="vermilion"),
    "nn-layernorm": Colour(hex="#0072B2", word="blue"),
    "nn-rmsnorm": Colour(hex="#CC79A7", word="pink"),
    "compile-layernorm": Colour(hex="#009E73", word="green"),
    "compile-rmsnorm": Colour(hex="#E69F00", word="orange"),
}
"""Of Okabe and Ito's colours, told apart by colour-blind readers too, the six that show on white and on black."""

BUILT_IN = _NORMS | {name.replace("-", "-add-"): colour for name, colour in _NORMS.items()}
"""By name. With a residual add a norm has the colour that it has alone: no run measures both."""

BROUGHT: tuple[Colour, ...] = (
    Colour(hex="#B2182B", word="dark red"),
    Colour(hex="#8B5A2B", word="brown"),
    Colour(hex="#999933", word="olive"),
    Colour(hex="#000000", word="black"),
)
"""For names that users bring, before what built-ins leave free. Black comes last: it vanishes on a dark page."""


def of(implementations: Sequence[ImplementationInfo]) -> dict[str, Colour]:
    """The colour of each implementation of a run, by name.

    The floor is grey and built-in names have their own colour always. Other names take what is left, in the
    order of the run; with more of them than colours, colours come again.
    """
    fixed = {
        info.name: FLOOR if info.op.is_floor else BUILT_IN[info.name]
        for info in implementations
        if info.op.is_floor or info.name in BUILT_IN
    }
    free = [colour for colour in (*BROUGHT, *_NORMS.values()) if colour not in fixed.values()]
    left = cycle(free)
    return {info.name: fixed[info.name] if info.name in fixed else next(left) for info in implementations}
