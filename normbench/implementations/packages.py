"""What installed packages bring by themselves: entry points in the group ``normbench.implementations``."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from normbench.implementations.describing import describe
from normbench.implementations.located import Located
from normbench.implementations.naming import op_of, provider_of
from normbench.records import ImplementationInfo, Source

GROUP = "normbench.implementations"


@cache
def installed() -> tuple[Located, ...]:
    """What the entry points name, none imported, each name once; one whose name says no formula is left out."""
    found = {point.name: point for point in entry_points(group=GROUP)}
    return tuple(one for point in found.values() if (one := _located(point)) is not None)


@cache
def nameless() -> tuple[str, ...]:
    """The names of entry points that say no formula."""
    return tuple(point.name for point in entry_points(group=GROUP) if op_of(point.name) is None)


def file_of(module: str) -> Path | None:
    """The file of a module, found without running it or the packages it is in; None where there is none."""
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    name = top
    for part in rest:
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, spec.submodule_search_locations) if spec else None
    return Path(spec.origin) if spec and spec.origin and spec.has_location else None


def _located(point: EntryPoint) -> Located | None:
    op = op_of(point.name)
    if op is None:
        return None
    attribute = point.attr or point.name
    file = file_of(point.module)
    said = describe(file, attribute) if file else None
    info = ImplementationInfo(
        name=point.name,
        op=op,
        provider=provider_of(point.name, op),
        summary=(said.summary if said else None) or f"{point.module}:{attribute}",
        compiled=bool(said and said.compiled),
        source=Source(file=point.module, line=said.line if said else None, package=" ".join(_package(point))),
    )
    return Located(info=info, attribute=attribute, module=point.module)


def _package(point: EntryPoint) -> Iterator[str]:
    if point.dist is not None:
        yield from (point.dist.name, point.dist.version)
