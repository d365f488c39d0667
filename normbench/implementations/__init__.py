"""The ways to compute a norm: one file a provider, and one ordered tuple.

To add one, write a file like the ones here and add its implementations to ``ALL``. Nothing in this package
imports torch before something is built, so that names are known at the command line's speed.
"""

from collections.abc import Collection

from normbench.implementations import apex, compiled, copy, eager, flashinfer, liger, naive, nn, quack, te
from normbench.implementations.base import Bind, Forward, Implementation, Setting, Unset
from normbench.implementations.brought import implementation
from normbench.implementations.catalog import Catalog
from normbench.implementations.located import Located
from normbench.implementations.packages import LeftOut, installed, left_out
from normbench.records import DeviceInfo, Operation

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

PACKAGED: tuple[Implementation, ...] = (
    liger.LAYERNORM,
    liger.RMSNORM,
    liger.ADD_RMSNORM,
    quack.LAYERNORM,
    quack.RMSNORM,
    quack.ADD_RMSNORM,
    flashinfer.LAYERNORM,
    flashinfer.RMSNORM,
    flashinfer.ADD_RMSNORM,
    apex.LAYERNORM,
    apex.RMSNORM,
    te.LAYERNORM,
    te.RMSNORM,
)
"""Those of the optional packages that normbench knows, whether or not they are installed."""

NAMES: tuple[str, ...] = tuple(one.name for one in ALL)
"""The names of the built-in ones."""

_KNOWN = (*ALL, *PACKAGED)
_TAKEN = tuple(one.name for one in _KNOWN)


def catalog() -> Catalog:
    """What there is without anything brought: the built-in ones, and those of packages behind them."""
    return Catalog(implementations=(*_KNOWN, *map(implementation, installed(_TAKEN))))


def without_place() -> tuple[LeftOut, ...]:
    """What packages would bring and can't: nobody could name it, or it is not there."""
    return left_out(_TAKEN)


def default_names(names: Collection[str], device: DeviceInfo) -> tuple[str, ...]:
    """Whom a run takes that names nobody: those of ``names`` that this machine has what they need for."""
    absent = {one.name for one in PACKAGED if one.absent(device)}
    return tuple(name for name in names if name not in absent)


def names_of(operation: Operation) -> tuple[str, ...]:
    """The names of the built-in ones that compute an operation, in the order of reports: its floor first."""
    return Catalog(implementations=ALL).of(operation).names


def chosen(names: Collection[str]) -> tuple[Implementation, ...]:
    """The implementations that normbench knows and that are named, in the order of reports."""
    return Catalog(implementations=_KNOWN).chosen(names)


def by_name(name: str) -> Implementation:
    """The implementation called ``name`` that normbench knows; a KeyError where there is none."""
    return Catalog(implementations=_KNOWN).by_name(name)


def checkable(there: Catalog) -> tuple[Implementation, ...]:
    """What ``check`` can ask: every norm, and one that is known to be wrong somewhere, which nothing else offers."""
    return (*there.norms, naive.RMSNORM)


__all__ = [
    "ALL",
    "NAMES",
    "PACKAGED",
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
    "default_names",
    "names_of",
    "without_place",
]
