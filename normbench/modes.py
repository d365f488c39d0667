"""A bound forward and its operands in, the task of a mode out: this is where backward is derived."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from normbench.clock import Call, Task
from normbench.device import torch_dtype
from normbench.implementations import Forward
from normbench.inputs import Operands
from normbench.records import Cell, DType, Mode


def task(name: str, cell: Cell, forward: Forward, operands: Operands, *, fresh_copies: bool = False) -> Task:
    """The task of timing ``forward`` in the cell's mode.

    Every call returns its tensors: y in a forward, the gradients of x and of every parameter in a backward,
    all of them in both. A backward's forward is prepared outside the clock, afresh for each call.

    Args:
        name: Whose task it is.
        cell: Decides mode and autocast.
        forward: x to y, with parameters bound.
        operands: Of the placement; the parameters are the bound ones.
        fresh_copies: Copy x and dy for each call, outside the clock: for implementations that write into them.
    """
    context = partial(_context, cell, operands.x.device.type)
    prepare = {
        Mode.FORWARD: partial(_prepare_forward, forward),
        Mode.INFERENCE: partial(_prepare_forward, forward),
        Mode.BACKWARD: partial(_prepare_backward, forward, context),
        Mode.FORWARD_BACKWARD: partial(_prepare_both, forward, context),
    }[cell.mode]
    kept = _Arguments(operands)
    return Task(
        name=name,
        prepare=(lambda: prepare(_Arguments(copied(operands)))) if fresh_copies else (lambda: prepare(kept)),
        repeatable=cell.mode is not Mode.BACKWARD and not fresh_copies,
        # A backward runs outside autocast; its forward enters the context by itself.
        context=nullcontext if cell.mode.differentiates else context,
    )


def output_names(mode: Mode, operands: Operands) -> tuple[str, ...]:
    """What the task's call returns, in order."""
    gradients = ("dx", *(f"d{n}" for n in ("gain", "bias") if getattr(operands, n) is not None))
    return (("y",) if mode.returns_output else ()) + (gradients if mode.differentiates else ())


def output_of(task_cell: Cell, forward: Forward, operands: Operands) -> torch.Tensor:
    """y, computed once as the cell's mode computes it: what a backward starts from and does not return."""
    with _context(task_cell, operands.x.device.type):
        (y,) = outputs(forward(operands.x), tensors=1)
    return y


def outputs(result: object, tensors: int | None = None) -> tuple[torch.Tensor, ...]:
    """What a task's call returned, always as a tuple.

    Raises:
        TypeError: It is something else than tensors, or not so many.
    """
    found = tuple(result) if isinstance(result, tuple | list) else (result,)
    if not all(isinstance(one, torch.Tensor) for one in found) or tensors not in (None, len(found)):
        raise TypeError(f"it returned a {type(result).__name__}, not a tensor")
    return found


def as_handed(operands: Operands, y_dtype: torch.dtype) -> Operands:
    """The same with dy in the dtype of the y it belongs to, in the memory that calls will really read."""
    return operands if operands.dy is None else replace(operands, dy=operands.dy.to(y_dtype))


class _Arguments:
    """Operands, and dy in the dtype of the y it belongs to.

    Where a mixed-precision output is wider than x, so is the gradient that arrives; it is cast once, not in
    every timed call.
    """

    def __init__(self, operands: Operands) -> None:
        self.x = operands.x
        self.differentiable = operands.differentiable
        self._dy = operands.dy

    def dy_like(self, y: torch.Tensor) -> torch.Tensor:
        assert self._dy is not None
        if self._dy.dtype is not y.dtype:
            self._dy = self._dy.to(y.dtype)
        return self._dy


def copied(operands: Operands) -> Operands:
    """The same with x and dy in memory of their own."""
    x = operands.x.detach().clone().requires_grad_(operands.x.requires_grad)
    return replace(operands, x=x, dy=None if operands.dy is None else operands.dy.clone())


def _prepare_forward(forward: Forward, arguments: _Arguments) -> Call:
    return partial(forward, arguments.x)


def _prepare_backward(
    forward: Forward, context: Callable[[], AbstractContextManager[Any]], arguments: _Arguments
) -> Call:
    with context():
        y = forward(arguments.x)
    return partial(torch.autograd.grad, y, arguments.differentiable, arguments.dy_like(y))


def _prepare_both(
    forward: Forward, context: Callable[[], AbstractContextManager[Any]], arguments: _Arguments
) -> Call:
    def call() -> tuple[torch.Tensor, ...]:
        with context():
            y = forward(arguments.x)
        return (y, *torch.autograd.grad(y, arguments.differentiable, arguments.dy_like(y)))

    return call


@contextmanager
def _context(cell: Cell, device_type: str) -> Iterator[None]:
    with ExitStack() as stack:
        if cell.mode is Mode.INFERENCE:
            stack.enter_context(torch.no_grad())
        if cell.autocast is not None:
            stack.enter_context(_autocast(cell.autocast, device_type))
        yield


def _autocast(dtype: DType, device_type: str) -> AbstractContextManager[Any]:
    # In a training step each gain is cast once, so a cache that lives through a batch would flatter.
    return torch.autocast(device_type, dtype=torch_dtype(dtype), cache_enabled=False)
