"""Which keys a plan can have: made from a command's own options, so that each new option is a key by itself."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, Union, get_args, get_origin, get_type_hints

from typer.core import TyperCommand, TyperOption

NOT_OF_A_PLAN = frozenset(
    {
        *("plan", "save_plan", "resume", "force", "out", "dry_run", "as_json", "quiet"),
        *("share_device", "wait", "serve", "run"),
    }
)
"""Parameters that belong on the command line alone: where results go, and what is of the moment."""


class Kind(Enum):
    """What a value of a key can be, in words."""

    LIST = "texts or numbers, one or a list of them"
    FLAG = "true or false"
    INTEGER = "a whole number"
    NUMBER = "a number"
    TEXT = "a text or a number"


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key of a plan, which is an option of a command.

    Args:
        parameter: The name of the command's parameter.
        kind: What its values can be.
        names: What it is called: the long names of the option without the dashes, the first the one that is shown.
        opposites: Names that turn a flag off: ``no-graphs``.
        help: What the option's help says.
    """

    parameter: str
    kind: Kind
    names: tuple[str, ...]
    opposites: tuple[str, ...] = ()
    help: str = ""


@dataclass(frozen=True, kw_only=True)
class Keys:
    """The keys of one command.

    Args:
        command: The command's name.
        known: Its keys, in the order of its help.
        apart: The names of its options that are none.
        elsewhere: Names that are keys of another command alone, and whose.
    """

    command: str
    known: tuple[Key, ...]
    apart: frozenset[str] = frozenset()
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> Mapping[str, Key]:
        """Every name that a key has, with the key."""
        return {name: key for key in self.known for name in (*key.names, *key.opposites)}

    @property
    def shown(self) -> tuple[str, ...]:
        """One name of each key."""
        return tuple(key.names[0] for key in self.known)


def keys_of(command: TyperCommand, others: Mapping[str, TyperCommand] | None = None) -> Keys:
    """The keys of a command.

    Args:
        command: The command.
        others: Other commands that take plans, by name: what is a key there and not here is said to be so.
    """
    own = tuple(_keys(command))
    names = {name for key in own for name in (*key.names, *key.opposites)}
    elsewhere = {
        name: other
        for other, its in (others or {}).items()
        for key in _keys(its)
        for name in (*key.names, *key.opposites)
        if name not in names
    }
    apart = {name for option in _options(command) if not _is_key(option) for name in _long(option.opts)}
    return Keys(command=command.name or "", known=own, apart=frozenset(apart), elsewhere=elsewhere)


def _keys(command: TyperCommand) -> Iterator[Key]:
    hints = get_type_hints(command.callback)
    for option in filter(_is_key, _options(command)):
        yield Key(
            parameter=option.name,
            kind=_kind(hints[option.name]),
            names=_long(option.opts),
            opposites=_long(option.secondary_opts),
            help=option.help or "",
        )


def _options(command: TyperCommand) -> Iterator[TyperOption]:
    yield from (option for option in command.params if isinstance(option, TyperOption))


def _is_key(option: TyperOption) -> bool:
    return option.name not in NOT_OF_A_PLAN


def _long(names: list[str]) -> tuple[str, ...]:
    return tuple(name.removeprefix("--") for name in names if name.startswith("--"))


def _kind(hint: Any) -> Kind:
    """What the values of a parameter with this annotation can be."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (part for part in get_args(hint) if part is not type(None))
    if get_origin(hint) is list:
        return Kind.LIST
    return {bool: Kind.FLAG, int: Kind.INTEGER, float: Kind.NUMBER}.get(hint, Kind.TEXT)
