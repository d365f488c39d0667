"""The ways to compute a norm: one file a provider, and one ordered tuple.

To add one, write a file like the ones here and add its implementations to ``ALL``. Nothing in this package
imports torch before something is built, so that names are known at the command line's speed.
"""

from collections.abc import Collection

from normbench.implementations import compiled, copy, eager, nn
from normbench.implementations.base import Bind, Forward, Implementation, Setting

ALL: tuple[Implementation, ...] = (
    copy.COPY,
    eager.LAYERNORM,
    eager.RMSNORM,
    nn.LAYERNORM,
    nn.RMSNORM,
    compiled.LAYERNORM,
    compiled.RMSNORM,
)
"""Every implementation, in the order in which reports list them."""

NAMES: tuple[str, ...] = tuple(implementation.name for implementation in ALL)
"""The names that ``--impls`` takes."""

CHECKABLE: tuple[Implementation, ...] = ALL[1:]
"""The implementations that ``check`` takes."""

CHECKED: tuple[Implementation, ...] = CHECKABLE
"""Those of which it is asked unless told."""

CHECK_NAMES: tuple[str, ...] = tuple(implementation.name for implementation in CHECKABLE)
"""Their names."""


def chosen(names: Collection[str]) -> tuple[Implementation, ...]:
    """The implementations that are named, in the order of reports."""
    return tuple(implementation for implementation in ALL if implementation.name in names)


def by_name(name: str) -> Implementation:
    """The implementation called ``name``; a KeyError where there is none."""
    for implementation in ALL:
        if implementation.name == name:
            return implementation
    raise KeyError(name)


__all__ = [
    "ALL",
    "CHECKABLE",
    "CHECKED",
    "CHECK_NAMES",
    "NAMES",
    "Bind",
    "Forward",
    "Implementation",
    "Setting",
    "by_name",
    "chosen",
]
