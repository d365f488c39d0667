"""From what users write, a function or a ``nn.Module`` class, to what is timed: a forward with parameters bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from normbench.implementations.base import Bind, Forward, Implementation, Setting
from normbench.implementations.modules import Maker, makes_modules
from normbench.implementations.signatures import Argument, Default, Role, arguments
from normbench.records import Op

_ALLOWED = "bring a torch.nn.Module class that takes a width, or a function (x, weight, bias, eps) -> y"


def adapted(found: object, op: Op, setting: Setting) -> Bind:
    """What binds gain and bias to the thing that a user has brought.

    Args:
        found: An ``Implementation``; a function of x, weight, bias and eps; a ``nn.Module`` class, or a function,
            that takes a width, and eps where it has a parameter of that name.
        op: The formula that it is of.
        setting: The cell, and what the run has in common.

    Raises:
        TypeError: It is none of these, or has other parameters than its formula.
    """
    if isinstance(found, Implementation):
        return _built(found, op, setting)
    if isinstance(found, type) and issubclass(found, torch.autograd.Function):
        found = found.apply
    if isinstance(found, torch.nn.Module):
        raise TypeError(f"it is a {type(found).__name__} already made, of one width: bring its class")
    if not callable(found):
        raise TypeError(f"it is a {type(found).__name__}, which can't be called: {_ALLOWED}")
    if makes_modules(found):
        return Maker(make=found, op=op, setting=setting).bind
    return _bound(found, op, setting)


def _built(found: Implementation, op: Op, setting: Setting) -> Bind:
    if found.op is not op:
        raise TypeError(f"it says that it is of {found.op}, its name says {op}: name it {found.provider}-{found.op}=")
    return found.build(setting)


def _bound(function: Callable[..., Any], op: Op, setting: Setting) -> Bind:
    """A ``bind`` for a function that gets x and, by their names or in this order, weight, bias and eps."""
    taken = arguments(function, op)

    def bind(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
        values = {Role.GAIN: gain, Role.BIAS: bias, Role.EPS: setting.eps, Role.SHAPE: (setting.cell.width,)}
        named = {name: values[role] for name, role in taken.names.items() if role is not Role.INPUT}
        if Role.INPUT in taken.positions:
            at = taken.positions.index(Role.INPUT)
            before, after = (_valued(part, values) for part in (taken.positions[:at], taken.positions[at + 1 :]))
            if not before and not named:
                return lambda x: function(x, *after)
            return lambda x: function(*before, x, *after, **named)
        (x_name,) = (name for name, role in taken.names.items() if role is Role.INPUT)
        positions = _valued(taken.positions, values)
        return lambda x: function(*positions, **{x_name: x}, **named)

    return bind


def _valued(positions: list[Argument], values: Mapping[Role, object]) -> tuple[object, ...]:
    return tuple(one.value if isinstance(one, Default) else values[one] for one in positions)
