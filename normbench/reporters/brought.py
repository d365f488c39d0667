"""Whose code was measured where it is not normbench's own: what it is, and where it lies."""

from __future__ import annotations

from collections.abc import Iterable

from normbench.records import ImplementationInfo

Row = tuple[str, str, str]


def rows(implementations: Iterable[ImplementationInfo]) -> tuple[Row, ...]:
    """A row for each implementation that was brought: its name, what it says of itself, and its source."""
    return tuple((info.name, _what(info), str(info.source)) for info in implementations if info.source is not None)


def sentences(found: Iterable[Row]) -> list[str]:
    """The same, a sentence each."""
    return [f"{name}: {what}, from {where}." for name, what, where in found]


def _what(info: ImplementationInfo) -> str:
    how = f"{info.op}, compiled by torch.compile" if info.compiled else str(info.op)
    return f"{info.summary} ({how})"
