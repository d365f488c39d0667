"""What a function that a user brings is to be called with: by the names of its parameters, or in a fixed order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

import torch
from torch._library.custom_ops import CustomOpDef
from torch._ops import OpOverload, OpOverloadPacket

from normbench.records import Op

EPS = frozenset(
    {
        *("eps", "epsilon", "variance_epsilon", "norm_eps", "layer_norm_eps", "layer_norm_epsilon"),
        *("rms_norm_eps", "rms_eps", "ln_eps", "layernorm_epsilon", "norm_epsilon"),
    }
)
BIAS = frozenset({"bias", "beta", "shift", "offset", "b", "b_2"})
GAIN = frozenset({"weight", "gain", "gamma", "scale", "w", "g"})
_INPUT = frozenset({"x", "input", "inputs", "hidden_states", "hidden", "inp", "tensor"})


class Role(StrEnum):
    """What a parameter of a function is for."""

    INPUT = "x"
    GAIN = "weight"
    BIAS = "bias"
    EPS = "eps"
    SHAPE = "normalized_shape"


_ORDER = (Role.INPUT, Role.GAIN, Role.BIAS, Role.EPS)
_ALLOWED = "a function takes x, weight, bias and eps, by these names or in this order; others need a default"
_ROLES = {Role.GAIN: GAIN, Role.BIAS: BIAS, Role.EPS: EPS, Role.SHAPE: {"normalized_shape"}}


@dataclass(frozen=True, kw_only=True)
class Default:
    """A parameter of no role, which keeps its value."""

    value: object


Argument: TypeAlias = Role | Default


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """What a function gets: by position, in order, and by name."""

    positions: list[Argument] = field(default_factory=list)
    names: dict[str, Role] = field(default_factory=dict)


def arguments(function: Callable[..., Any], op: Op) -> Arguments:
    """What a function of that formula is to be called with.

    Raises:
        TypeError: It asks for something that no norm has, or not for what this one has.
    """
    found = parameters(function)
    if found is None or _says_nothing(found):
        return Arguments(positions=list(_ORDER))
    roles = _roles(found)
    there = set(roles.values())
    for role, is_needed in ((Role.GAIN, op.has_gain), (Role.BIAS, op.has_bias)):
        if is_needed and role not in there:
            raise TypeError(f"it has no parameter called {role}, and {op} has one: {_ALLOWED}")
    return _arguments(found, roles)


def parameters(function: Callable[..., Any]) -> Sequence[inspect.Parameter] | None:
    """Its parameters; None where they can't be known."""
    schema = _schema(function)
    if schema is not None:
        return [_of_schema(argument) for argument in schema.arguments]
    owner = getattr(function, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
        return _of_autograd(owner)
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _schema(function: Callable[..., Any]) -> Any:
    """Of one of torch's operators, or of a function in TorchScript."""
    if isinstance(function, CustomOpDef):
        return function._opoverload._schema
    if isinstance(function, OpOverloadPacket):
        return getattr(function, function.overloads()[0])._schema  # type: ignore[no-untyped-call]
    if isinstance(function, OpOverload):
        return function._schema
    return function.schema if isinstance(function, torch.jit.ScriptFunction) else None


def _of_schema(argument: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    default = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
    return inspect.Parameter(argument.name, kind, default=default)


def _of_autograd(owner: type[torch.autograd.Function]) -> Sequence[inspect.Parameter]:
    """Those of its ``apply``: of its forward, without the context where that gets one; none can be named."""
    found = list(inspect.signature(owner.forward).parameters.values())
    own = owner.setup_context is not torch.autograd.Function.setup_context
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [
        one.replace(kind=inspect.Parameter.POSITIONAL_ONLY) if one.kind in plain else one
        for one in found[0 if own else 1 :]
    ]


def _says_nothing(found: Sequence[inspect.Parameter]) -> bool:
    """Whether no name tells a role where it takes all four, or whatever it gets, as decorators often leave it."""
    plain = [one for one in _single(found) if one.kind is not one.KEYWORD_ONLY]
    takes_all = any(one.kind is one.VAR_POSITIONAL for one in found) or len(plain) == len(_ORDER)
    return takes_all and not any(_role(one.name) for one in _single(found))


def _single(found: Sequence[inspect.Parameter]) -> Iterator[inspect.Parameter]:
    return (one for one in found if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD))


def _roles(found: Sequence[inspect.Parameter]) -> dict[str, Role]:
    """The role of each parameter that has one."""
    names = [one.name for one in _single(found)]
    if names[:1] == ["self"]:
        raise TypeError("it is a method, which needs its object: bring the class")
    unknown = [name for name in names if _role(name) is None]
    x = next((name for name in unknown if name.lower() in _INPUT), next(iter(unknown), None))
    if x is None:
        raise TypeError(f"it has no parameter for x: {_ALLOWED}")
    roles = {x: Role.INPUT}
    for name in names:
        role = _role(name)
        if role is not None and role not in roles.values():
            roles[name] = role
    return roles


def _role(name: str) -> Role | None:
    plain = name.lower().strip("_")  # `_bias` is one that is not used
    return next((role for role, known in _ROLES.items() if plain in known), None)


def _arguments(found: Sequence[inspect.Parameter], roles: dict[str, Role]) -> Arguments:
    made = Arguments()
    for parameter in _single(found):
        role = roles.get(parameter.name)
        if role is None and parameter.default is parameter.empty:
            raise TypeError(f"nothing is known of its parameter {parameter.name!r}: {_ALLOWED}")
        if parameter.kind is not parameter.KEYWORD_ONLY:
            made.positions.append(role or Default(value=parameter.default))
        elif role is not None:
            made.names[parameter.name] = role
    while made.positions and isinstance(made.positions[-1], Default):
        made.positions.pop()
    return made
