"""What an implementation is: a small frozen object that builds a forward and knows where it can't run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from normbench.implementations.located import Located
from normbench.optional import Package
from normbench.records import Cell, DeviceInfo, Flag, ImplementationInfo, Mode, Op

if TYPE_CHECKING:
    import torch

    Forward: TypeAlias = Callable[..., Any]
    Bind: TypeAlias = Callable[[torch.Tensor | None, torch.Tensor | None], Forward]
    Function: TypeAlias = Callable[[torch.Tensor, torch.Tensor | None, torch.Tensor | None, float], torch.Tensor]
    AddFunction: TypeAlias = Callable[
        [torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor | None, float],
        tuple[torch.Tensor, torch.Tensor],
    ]
else:
    Forward = Bind = Function = AddFunction = Callable
"""``Forward`` is what is timed: x to y, or x and the residual to y and h = x + residual, where the formula adds one.
``Bind`` makes one from a placement's gain and bias."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a build is for: the cell, and what the whole run has in common.

    ``device`` is torch's name of the device, such as ``cuda:0``; ``precompiled`` says that the code that
    torch.compile would generate is there already.
    """

    cell: Cell
    eps: float
    compile_mode: str = "default"
    device: str = "cpu"
    precompiled: bool = False


def _runs_everywhere(_setting: Setting, _device: DeviceInfo) -> str | None:
    return None


def _keeps_its_results(_setting: Setting) -> bool:
    return False


def _as_it_is(implementation: Implementation) -> Implementation:
    return implementation


def _nothing_odd(_setting: Setting, _device: torch.device) -> tuple[Flag, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Unset:
    """What a provider does where the user names no eps.

    Args:
        eps: What it is known to add then.
        build: As an implementation's, without handing on the setting's eps.
    """

    eps: float
    build: Callable[[Setting], Bind]


@dataclass(frozen=True, kw_only=True)
class Implementation:
    """One way to compute a norm.

    Args:
        name: ``provider-op``.
        op: The formula it is checked against.
        provider: Who computes it.
        summary: One line on what it is, for lists and reports.
        build: Does everything costly, once a cell and process, and returns ``bind``. ``bind(gain, bias)``
            is called once a placement, since a module owns its parameters; the ``forward(x) -> y`` it
            returns only computes and is what is timed: ``forward(x, residual) -> (y, h)`` where the formula adds a
            residual. gain and bias are ``torch.nn.Parameter`` of shape (width,), None where the formula has none.
        load: Imports its code, and gives the implementation as that says it is. Everybody's is imported before
            anybody's is built.
        unsupported: Why it can't run here, None where it can.
        observe: What is odd about how it runs here.
        compiled: Whether its first call compiles, so that a compile time is taken and graphs are counted.
        mutates: Whether it writes into what it is given by design, and so gets fresh copies for each call: of x, dy,
            the residual and the gradient that arrives for the new one. Its results may lie in that memory. True, or
            the modes in which it does.
        reuses_output: Whether each call overwrites the results of the one before by design, as CUDA graphs do.
        unset: What its provider does without an eps; None where it has to be given one.
        package: What has to be installed for it; None where torch is enough.
        located: Where its code lies, where normbench does not bring it.
    """

    name: str
    op: Op
    provider: str
    summary: str
    build: Callable[[Setting], Bind]
    load: Callable[[Implementation], Implementation] = _as_it_is
    unsupported: Callable[[Setting, DeviceInfo], str | None] = _runs_everywhere
    observe: Callable[[Setting, torch.device], tuple[Flag, ...]] = _nothing_odd
    compiled: bool = False
    mutates: bool | tuple[Mode, ...] = False
    reuses_output: Callable[[Setting], bool] = _keeps_its_results
    unset: Unset | None = None
    located: Located | None = None
    package: Package | None = None

    def writes_in(self, mode: Mode) -> bool:
        """Whether it says that it writes into its inputs or dy in this mode."""
        return self.mutates if isinstance(self.mutates, bool) else mode in self.mutates

    def absent(self, device: DeviceInfo) -> str | None:
        """Why it can't run on this machine whatever the cell, so that it is left out unless it is named."""
        return None if self.package is None else self.package.absent(device)

    def loaded(self) -> Implementation:
        """The same, its code imported into this process; as it is where that raises, since building says it again."""
        with suppress(Exception):
            return self.load(self)
        return self

    @property
    def info(self) -> ImplementationInfo:
        """What reports say of it."""
        return ImplementationInfo(
            name=self.name,
            op=self.op,
            provider=self.provider,
            summary=self.summary,
            compiled=self.compiled,
            source=self.located.info.source if self.located else None,
        )


def binding(function: Function, eps: float) -> Bind:
    """A ``bind`` for a plain function of x, gain, bias and eps."""

    def bind(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
        return lambda x: function(x, gain, bias, eps)

    return bind


def adding(function: AddFunction, eps: float) -> Bind:
    """A ``bind`` for a plain function of x, residual, gain, bias and eps that returns y and x + residual."""

    def bind(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
        return lambda x, residual: function(x, residual, gain, bias, eps)

    return bind
