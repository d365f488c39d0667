"""How an implementation's line looks: colour, marker and dashes, the same in every picture of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from normbench.records import ImplementationInfo, Run
from normbench.reporters import colours

INK = "#000000"
GRID = "#dddddd"
MUTED = "#555555"
REST = "#bbbbbb"

_MARKERS = {"eager": "s", "nn": "o", "compile": "^"}
_OTHER_MARKERS = ("D", "v", "P", "X", "<", ">")


@dataclass(frozen=True, kw_only=True)
class Style:
    """Colour, marker and dashes as matplotlib names them."""

    colour: str
    marker: str
    dashes: str


def of(run: Run) -> dict[str, Style]:
    """The style of each implementation of a run, by name."""
    return of_implementations(run.header.implementations)


def of_implementations(implementations: Sequence[ImplementationInfo]) -> dict[str, Style]:
    """The style of each of some implementations, by name: a marker for a provider, dashes for RMSNorm."""
    of_name = colours.of(implementations)
    norms = [info for info in implementations if not info.op.is_floor]
    others = list(dict.fromkeys(info.provider for info in norms if info.provider not in _MARKERS))

    def style(info: ImplementationInfo) -> Style:
        colour = of_name[info.name].hex
        if info.op.is_floor:
            return Style(colour=colour, marker=".", dashes=":")
        known = _MARKERS.get(info.provider)
        marker = known or _OTHER_MARKERS[others.index(info.provider) % len(_OTHER_MARKERS)]
        return Style(colour=colour, marker=marker, dashes="-" if info.op.centres else "--")

    return {info.name: style(info) for info in implementations}
