"""The ways to compute a norm: one file a provider, and one ordered tuple.

To add one, write a file like the ones here and add its implementations to ``ALL``. Nothing in this package
imports torch before something is built, so that names are known at the command line's speed.
"""

from collections.abc import Collection

from normbench.implementations import apex, compiled, copy, eager, flashinfer, liger, naive, nn, quack, te
from normbench.implementations.base import Bind, Forward, Implementation, Setting, Unset
from normbench.records import DeviceInfo

BUILT_IN: tuple[Implementation, ...] = (
    copy.COPY,
    eager.LAYERNORM,
    eager.RMSNORM,
    nn.LAYERNORM,
    nn.RMSNORM,
    compiled.LAYERNORM,
    compiled.RMSNORM,
)
"""Those that need nothing but torch."""

PACKAGED: tuple[Implementation, ...] = (
    liger.LAYERNORM,
    liger.RMSNORM,
    quack.LAYERNORM,
    quack.RMSNORM,
    flashinfer.LAYERNORM,
    flashinfer.RMSNORM,
    apex.LAYERNORM,
    apex.RMSNORM,
    te.LAYERNORM,
    te.RMSNORM,
)
"""Those of optional packages, whether or not they are installed."""

ALL: tuple[Implementation, ...] = (*BUILT_IN, *PACKAGED)
"""Every implementation, in the order in which reports list them."""

CHECKABLE: tuple[Implementation, ...] = (*(one for one in ALL if one is not copy.COPY), naive.RMSNORM)
"""What ``check`` can ask: every norm, and one that is known to be wrong somewhere, which nothing else offers."""

CHECKED: tuple[Implementation, ...] = tuple(one for one in CHECKABLE if one is not naive.RMSNORM)
"""What it asks unless told."""

CHECK_NAMES: tuple[str, ...] = tuple(implementation.name for implementation in CHECKABLE)
"""The names that ``check --impls`` takes."""

NAMES: tuple[str, ...] = tuple(implementation.name for implementation in ALL)
"""The names that ``--impls`` takes."""


def chosen(names: Collection[str]) -> tuple[Implementation, ...]:
    """The implementations that are named, in the order of reports."""
    return tuple(implementation for implementation in ALL if implementation.name in names)


def default_names(names: Collection[str], device: DeviceInfo) -> tuple[str, ...]:
    """Whom a run takes that names nobody: those of ``names`` that this machine has what they need for."""
    absent = {one.name for one in ALL if one.absent(device)}
    return tuple(name for name in names if name not in absent)


def by_name(name: str) -> Implementation:
    """The implementation called ``name``; a KeyError where there is none."""
    for implementation in ALL:
        if implementation.name == name:
            return implementation
    raise KeyError(name)


__all__ = [
    "ALL",
    "BUILT_IN",
    "CHECKABLE",
    "CHECKED",
    "CHECK_NAMES",
    "NAMES",
    "PACKAGED",
    "Bind",
    "Forward",
    "Implementation",
    "Setting",
    "Unset",
    "by_name",
    "chosen",
    "default_names",
]
