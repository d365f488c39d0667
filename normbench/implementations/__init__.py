"""The ways to compute a norm: one file a provider, and one ordered tuple.

To add one, write a file like the ones here and add its implementations to ``ALL``. Nothing in this package
imports torch before something is built, so that names are known at the command line's speed.
"""

from collections.abc import Collection

from normbench.implementations import compiled, copy, eager, naive, nn
from normbench.implementations.base import Bind, Forward, Implementation, Setting, Unset
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
"""Every implementation, in the order in which reports list them."""

CHECKABLE: tuple[Implementation, ...] = (
    *(one for one in ALL if one.op.operation is Operation.NORM and not one.op.is_floor),
    naive.RMSNORM,
)
"""What ``check`` can ask: every norm alone, and one that is known to be wrong somewhere and is nowhere else."""

CHECKED: tuple[Implementation, ...] = tuple(one for one in CHECKABLE if one is not naive.RMSNORM)
"""What it asks unless told."""

CHECK_NAMES: tuple[str, ...] = tuple(implementation.name for implementation in CHECKABLE)
"""The names that ``check --impls`` takes."""

NAMES: tuple[str, ...] = tuple(implementation.name for implementation in ALL)
"""The names that ``--impls`` takes."""


def names_of(operation: Operation) -> tuple[str, ...]:
    """The names of those who compute an operation, in the order of reports: its floor first."""
    ours = [one for one in ALL if one.op.operation is operation]
    return tuple(one.name for one in sorted(ours, key=lambda one: not one.op.is_floor))


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
    "Unset",
    "by_name",
    "chosen",
    "names_of",
]
