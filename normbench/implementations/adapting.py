"""From what users write, a function or a ``nn.Module`` class, to what is timed: a forward with parameters bound."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import torch

from normbench.implementations.base import Bind, Forward, Implementation, Setting
from normbench.records import Mode, Op

_EPS = frozenset({"eps", "epsilon", "variance_epsilon", "norm_eps", "layer_norm_eps", "layer_norm_epsilon"})
_WIDTH = frozenset(
    {"width", "dim", "hidden_size", "hidden_dim", "normalized_shape", "features", "num_features", "d_model", "size"}
)
_GAIN = frozenset({"weight", "gain", "gamma", "scale", "w", "g"})
_BIAS = frozenset({"bias", "beta", "shift", "b"})


class _Role(StrEnum):
    """What a parameter of a function is for."""

    GAIN = "weight"
    BIAS = "bias"
    EPS = "eps"
    SHAPE = "normalized_shape"


_IN_ORDER = (_Role.GAIN, _Role.BIAS, _Role.EPS)
"""What a function gets behind x where it does not say by names what it takes."""


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
        if found.op is not op:
            raise TypeError(f"it says that it is of {found.op}, its name says {op}")
        return found.build(setting)
    if isinstance(found, torch.nn.Module):
        raise TypeError(f"it is a {type(found).__name__} already made, of one width: bring its class")
    if not callable(found):
        raise TypeError(f"it is a {type(found).__name__}, neither a function nor a class")
    if isinstance(found, type) or _makes_modules(found):
        return _Maker(make=found, op=op, setting=setting).bind
    return _bound(found, setting)


def _parameters(function: Callable[..., Any]) -> Sequence[inspect.Parameter] | None:
    """Its parameters; None where they can't be known."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _makes_modules(found: Callable[..., Any]) -> bool:
    parameters = _parameters(found)
    return bool(parameters) and parameters is not None and parameters[0].name in _WIDTH


def _bound(function: Callable[..., Any], setting: Setting) -> Bind:
    """A ``bind`` for a function that gets x and, by their names or in this order, weight, bias and eps."""
    fixed = {_Role.EPS: setting.eps, _Role.SHAPE: (setting.cell.width,)}
    positions, names = _roles(_parameters(function))

    def bind(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
        values: Mapping[_Role, object] = {_Role.GAIN: gain, _Role.BIAS: bias, **fixed}
        after, named = tuple(values[role] for role in positions), {n: values[role] for n, role in names.items()}
        return lambda *inputs: function(*inputs, *after, **named)

    return bind


def _roles(parameters: Sequence[inspect.Parameter] | None, inputs: int = 1) -> tuple[list[_Role], dict[str, _Role]]:
    """What a function gets behind its inputs: by position, and by name.

    Raises:
        TypeError: It asks for something that no norm has.
    """
    if parameters is None or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return list(_IN_ORDER), {}
    positions: list[_Role] = []
    names: dict[str, _Role] = {}
    by_position = True
    for parameter in parameters[inputs:]:
        role = _role(parameter.name)
        if role is None and parameter.default is not parameter.empty:
            by_position = False  # it keeps its default, and what follows is handed over by name
        elif role is None:
            raise TypeError(f"nothing is known of its parameter {parameter.name!r}: it gets {', '.join(_IN_ORDER)}")
        elif by_position and parameter.kind is not parameter.KEYWORD_ONLY:
            positions.append(role)
        else:
            names[parameter.name] = role
    return positions, names


def _role(name: str) -> _Role | None:
    roles = {_Role.GAIN: _GAIN, _Role.BIAS: _BIAS, _Role.EPS: _EPS, _Role.SHAPE: {"normalized_shape"}}
    return next((role for role, known in roles.items() if name.lower() in known), None)


@dataclass(frozen=True, kw_only=True)
class _Maker:
    """Makes modules of the cell's width, and puts the placement's gain and bias in the place of their own."""

    make: Callable[..., Any]
    op: Op
    setting: Setting

    def bind(self, gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
        """A module with these parameters, in evaluation mode where nothing is trained."""
        with torch.device(self.setting.device):
            module = self.make(self.setting.cell.width, **self._eps())
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"it makes a {type(module).__name__}, not a torch.nn.Module")
        for name, parameter in self._places(module).items():
            owner, _, attribute = name.rpartition(".")
            setattr(module.get_submodule(owner), attribute, bias if _is_bias(name) else gain)
            if parameter.numel() != self.setting.cell.width:
                raise TypeError(f"its parameter {name} has the shape {tuple(parameter.shape)}, not that of the width")
        return module.train(self.setting.cell.mode is not Mode.INFERENCE)

    def _eps(self) -> dict[str, float]:
        names = [parameter.name for parameter in _parameters(self.make) or () if parameter.name in _EPS]
        return dict.fromkeys(names[:1], self.setting.eps)

    def _places(self, module: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
        found = dict(module.named_parameters())
        wanted = ["weight"] * self.op.has_gain + ["bias"] * self.op.has_bias
        if sorted("bias" if _is_bias(name) else "weight" for name in found) != sorted(wanted):
            has = f"has the parameters {', '.join(found)}" if found else "has no parameters"
            raise TypeError(f"its module {has}; {self.op} has {' and '.join(wanted)}")
        return found


def _is_bias(name: str) -> bool:
    return name.rpartition(".")[2].lower() in _BIAS
