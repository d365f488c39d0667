"""Modules that a user's class or function makes: of the cell's width, with the run's parameters for their own."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from normbench.device import torch_dtype
from normbench.implementations.base import Forward, Setting
from normbench.implementations.signatures import BIAS, EPS, GAIN, parameters
from normbench.records import Mode, Op

_WIDTH = frozenset(
    {
        *("width", "size", "dim", "dims", "ndim", "n_dim", "d", "d_model", "dim_model", "model_dim"),
        *("hidden", "hidden_size", "hidden_dim", "n_embd", "embed_dim", "embedding_dim", "channels", "num_channels"),
        *("features", "num_features", "in_features", "n_features", "normalized_shape"),
    }
)
_BIASED = frozenset({"bias", "use_bias", "has_bias", "with_bias"})
_AFFINE = frozenset({"affine", "elementwise_affine"})
_ALLOWED = "a class gets the width, and eps where it has a parameter of that name; others need a default"


def makes_modules(found: Callable[..., Any]) -> bool:
    """Whether it is a class, or a function that takes something called like a width first, and no gain."""
    if isinstance(found, type):
        return True
    names = [one.name for one in parameters(found) or ()]
    return bool(names) and names[0] in _WIDTH and not any(name.lower() in GAIN for name in names)


@dataclass(frozen=True, kw_only=True)
class Maker:
    """Makes modules, and puts a placement's gain and bias in the place of their own.

    Args:
        make: Called for each.
        op: The formula.
        setting: The cell, and what the run has in common.
    """

    make: Callable[..., Any]
    op: Op
    setting: Setting

    def bind(self, gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
        """A module with these parameters, in evaluation mode where nothing is trained.

        Raises:
            TypeError: It makes something else, or its parameters are not those of the formula.
        """
        width, named = self._arguments()
        with torch.device(self.setting.device):
            module = self.make(*width, **named)
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"it makes a {type(module).__name__}, not a torch.nn.Module")
        self._refuse_other(module)
        module.to(self.setting.device)
        for name, _own in list(module.named_parameters(remove_duplicate=False)):
            owner, _, attribute = name.rpartition(".")
            setattr(module.get_submodule(owner), attribute, bias if _is_bias(name) else gain)
        return module.train(self.setting.cell.mode is not Mode.INFERENCE)

    def _arguments(self) -> tuple[tuple[int, ...], dict[str, object]]:
        """What it is called with: the width by position where it comes first, the rest by name.

        Raises:
            TypeError: It asks for something that no norm has.
        """
        found, width = parameters(self.make), self.setting.cell.width
        if found is None:
            return (width,), {}
        named = {one.name: value for one in found if (value := self._value(one)) is not None}
        free = [one for one in found if one.name not in named and one.kind is not one.VAR_KEYWORD]
        first = next((one for one in free if one.name in _WIDTH), next(iter(free), None))
        for one in free:
            if one is not first and one.default is one.empty and one.kind is not one.VAR_POSITIONAL:
                raise TypeError(f"nothing is known of its parameter {one.name!r}: {_ALLOWED}")
        if first is None:
            raise TypeError(f"it takes no width: {_ALLOWED}")
        if first is found[0]:
            return (width,), named
        return (), {first.name: width, **named}

    def _value(self, parameter: inspect.Parameter) -> object:
        """What is handed over by the parameter's name; None where it means nothing here, or has its default."""
        cell, is_needed = self.setting.cell, parameter.default is parameter.empty
        if parameter.name in EPS:
            return self.setting.eps
        if parameter.name in _BIASED and parameter.default in (parameter.empty, None, True, False):
            return self.op.has_bias
        if parameter.name in _AFFINE:
            return True
        if parameter.name == "device" and is_needed:
            return torch.device(self.setting.device)
        return torch_dtype(cell.parameter_dtype) if parameter.name == "dtype" and is_needed else None

    def _refuse_other(self, module: torch.nn.Module) -> None:
        """A TypeError where the module has not exactly the formula's parameters, each of the width."""
        found = dict(module.named_parameters())
        wanted = ["weight"] * self.op.has_gain + ["bias"] * self.op.has_bias
        if sorted("bias" if _is_bias(name) else "weight" for name in found) != sorted(wanted):
            has = f"has the parameters {', '.join(found)}" if found else "has no parameters"
            is_it = "is it of another formula? Its name says that: NAME-rmsnorm="
            raise TypeError(f"its module {has}; {self.op} has {' and '.join(wanted)}: {is_it}")
        for name, parameter in found.items():
            if not self.setting.cell.width == parameter.numel() == math.prod(parameter.shape[-1:]):
                raise TypeError(f"its parameter {name} has the shape {tuple(parameter.shape)}, not that of the width")


def _is_bias(name: str) -> bool:
    return name.rpartition(".")[2].lower() in BIAS
