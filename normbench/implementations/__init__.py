"""The ways to compute a norm: one file a provider, and one ordered tuple.

To add one, write a file like the ones here and add its implementations to ``ALL``. Nothing in this package
imports torch before something is built, so that names are known at the command line's speed.
"""

from collections.abc import Collection

from normbench.implementations import compiled, copy, eager, naive, nn
from normbench.implementations.base import Bind, Forward, Implementation, Setting, Unset
from normbench.implementations.brought import implementation
from normbench.implementations.catalog import Catalog
from normbench.implementations.located import Located
from normbench.implementations.packages import LeftOut, installed, left_out
from normbench.records import Operation

ALL: tuple[Implementation, ...] = (
    copy.COPY,
    eager.LAYERNORM,
    eager.RMSNORM,
    nn.LAYERNORM,
    nn.RMSNORM,
    compiled.LAYERNORM,
    compiled.RMSNORM,
    copy.ADD_COPY,
    eager.ADD_LAYERNORM,
    eager.ADD_RMSNORM,
    nn.ADD_LAYERNORM,
    nn.ADD_RMSNORM,
    compiled.ADD_LAYERNORM,
    compiled.ADD_RMSNORM,
)
"""Every built-in implementation, in the order in which reports list them."""

NAMES: tuple[str, ...] = tuple(one.name for one in ALL)
"""Their names."""


def catalog() -> Catalog:
    """What there is without anything brought: the built-in ones, and those of installed packages behind them."""
    return Catalog(implementations=(*ALL, *map(implementation, installed(NAMES))))


def without_place() -> tuple[LeftOut, ...]:
    """What packages would bring and can't: nobody could name it, or it is not there."""
    return left_out(NAMES)


def names_of(operation: Operation) -> tuple[str, ...]:
    """The names of the built-in ones that compute an operation, in the order of reports: its floor first."""
    return Catalog(implementations=ALL).of(operation).names


def chosen(names: Collection[str]) -> tuple[Implementation, ...]:
    """The built-in implementations that are named, in the order of reports."""
    return Catalog(implementations=ALL).chosen(names)


def by_name(name: str) -> Implementation:
    """The built-in implementation called ``name``; a KeyError where there is none."""
    return Catalog(implementations=ALL).by_name(name)


def checkable(there: Catalog) -> tuple[Implementation, ...]:
    """What ``check`` can ask: every norm, and one that is known to be wrong somewhere, which nothing else offers."""
    return (*there.norms, naive.RMSNORM)


__all__ = [
    "ALL",
    "NAMES",
    "Bind",
    "Catalog",
    "Forward",
    "Implementation",
    "LeftOut",
    "Located",
    "Setting",
    "Unset",
    "by_name",
    "catalog",
    "checkable",
    "chosen",
    "names_of",
    "without_place",
]
