"""What installed packages bring by themselves: entry points in the group ``normbench.implementations``."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from normbench.implementations.describing import describe
from normbench.implementations.located import Located
from normbench.implementations.naming import NAME, op_of, provider_of
from normbench.records import ImplementationInfo, Op, Source

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "normbench.implementations"
_VALUE = re.compile(r"(?P<module>\w+(?:\.\w+)*)\s*:\s*(?P<attribute>\w+(?:\.\w+)*)\s*(?:\[.*\])?\s*")


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """An entry point that brings nothing.

    Args:
        name: What it calls itself.
        package: The package and its version.
        why: Why, and what its package could do.
    """

    name: str
    package: str
    why: str

    def __str__(self) -> str:
        return f"{self.name} of {self.package or 'a package'} is left out: {self.why}"


def installed(taken: Collection[str] = ()) -> tuple[Located, ...]:
    """What the entry points name, none imported, each name once.

    Args:
        taken: The names that there are already.
    """
    return tuple(one for one in _found() if isinstance(one, Located) and one.info.name not in taken)


def left_out(taken: Collection[str] = ()) -> tuple[LeftOut, ...]:
    """The entry points that bring nothing; ``taken`` as for ``installed``."""
    return tuple(_left_out(one) for one in _found() if isinstance(one, LeftOut) or one.info.name in taken)


def _left_out(one: Located | LeftOut) -> LeftOut:
    if isinstance(one, LeftOut):
        return one
    package = one.info.source.package if one.info.source else None
    return LeftOut(name=one.info.name, package=package or "", why="there is an implementation of that name")


@cache
def _found() -> tuple[Located | LeftOut, ...]:
    """What becomes of each entry point, in the order in which Python finds their packages."""
    from importlib.metadata import entry_points

    found: dict[str, Located] = {}
    others: list[LeftOut] = []
    for point in entry_points(group=GROUP):
        one = _located(point)
        if isinstance(one, Located) and one.info.name in found:
            one = LeftOut(name=point.name, package=_package(point), why="another package has one of that name")
        if isinstance(one, Located):
            found[one.info.name] = one
        else:
            others.append(one)
    return (*found.values(), *others)


def _located(point: EntryPoint) -> Located | LeftOut:
    """Where it leads; or why nowhere."""
    op, value = op_of(point.name), _VALUE.fullmatch(point.value)
    why = _why_not(point, op, value)
    if why is not None or op is None or value is None:
        return LeftOut(name=point.name, package=_package(point), why=why or "")
    module, attribute = value["module"], value["attribute"]
    file = file_of(module)
    said = describe(file, attribute) if file else None
    info = ImplementationInfo(
        name=point.name,
        op=op,
        provider=provider_of(point.name, op),
        summary=(said.summary if said else None) or f"{module}:{attribute}",
        compiled=bool(said and said.compiled),
        source=Source(file=module, line=said.line if said else None, package=_package(point) or None),
    )
    return Located(info=info, attribute=attribute, module=module)


def _why_not(point: EntryPoint, op: Op | None, value: re.Match[str] | None) -> str | None:
    if not NAME.fullmatch(point.name):
        return "a name has letters, digits, and inside . _ -, up to 64"
    if op is None:
        return "its name has to end in -layernorm or -rmsnorm"
    if value is None:
        return f"{point.value!r} is not package.module:attribute"
    if _spec(value["module"].partition(".")[0]) is None:
        return f"there is no module {value['module']}"
    return None


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else ""


def file_of(module: str) -> Path | None:
    """The file of a module, found without running it or the packages it is in; None where there is none."""
    top, *rest = module.split(".")
    name, spec = top, _spec(top)
    for part in rest:
        name = f"{name}.{part}"
        places = spec.submodule_search_locations if spec else None
        spec = PathFinder.find_spec(name, places) if places else None
    return Path(spec.origin) if spec and spec.origin and spec.has_location else None


def _spec(top: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
