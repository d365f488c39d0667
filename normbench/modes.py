"""A bound forward and its operands in, the task of a mode out: this is where backward is derived."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from normbench import units
from normbench.clock import Call, Task
from normbench.device import torch_dtype
from normbench.implementations import Forward
from normbench.inputs import Operands
from normbench.records import Cell, DType, Mode


def task(name: str, cell: Cell, forward: Forward, operands: Operands, *, fresh_copies: bool = False) -> Task:
    """The task of timing ``forward`` in the cell's mode.

    Every call returns its tensors: y in a forward, the gradients of x and of every parameter in a backward,
    all of them in both; where a residual is added also the new one, and the residual's gradient. A backward's
    forward is prepared outside the clock, afresh for each call.

    Args:
        name: Whose task it is.
        cell: Decides mode and autocast.
        forward: x to y, or x and the residual to y and h, with parameters bound.
        operands: Of the placement; the parameters are the bound ones.
        fresh_copies: Copy all but the parameters for each call, outside the clock: for implementations that write
            into what they are given.
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
    gradients = ("dx", *(f"d{n}" for n in ("residual", "gain", "bias") if getattr(operands, n) is not None))
    results = forward_names(operands)
    return (results if mode.returns_output else ()) + (gradients if mode.differentiates else ())


def forward_names(operands: Operands) -> tuple[str, ...]:
    """What a forward returns, in order."""
    return ("y",) if operands.residual is None else ("y", "h")


def wrong_count(count: int, names: Sequence[str]) -> str:
    """What is wrong with a call that returned so many tensors where these belong."""
    return f"returned {units.count(count, 'tensor')}, not {units.join(names)}"


def output_of(task_cell: Cell, forward: Forward, operands: Operands) -> tuple[torch.Tensor, ...]:
    """Y, and h where there is one, computed once as the cell's mode computes it: what a backward starts from."""
    with _context(task_cell, operands.x.device.type):
        return outputs(forward(*operands.inputs))


def outputs(result: object) -> tuple[torch.Tensor, ...]:
    """What a task's call returned, always as a tuple.

    Raises:
        TypeError: It is something else than tensors.
    """
    found = tuple(result) if isinstance(result, tuple | list) else (result,)
    if not all(isinstance(one, torch.Tensor) for one in found):
        raise TypeError(f"it returned a {type(result).__name__}, not a tensor")
    return found


def as_handed(operands: Operands, dtypes: Sequence[torch.dtype]) -> Operands:
    """The same with dy, and dh, in the dtypes of the y and h they belong to, in the memory that calls will read."""
    dy, dh = operands.dy, operands.dh
    return replace(
        operands,
        dy=None if dy is None else dy.to(dtypes[0]),
        dh=None if dh is None else dh.to(dtypes[-1]),
    )


class _Arguments:
    """Operands, and what arrives for each result in the dtype of the result it belongs to.

    Where a mixed-precision output is wider than x, so is the gradient that arrives; it is cast once, not in
    every timed call.
    """

    def __init__(self, operands: Operands) -> None:
        self.inputs = operands.inputs
        self.differentiable = operands.differentiable
        self._names = forward_names(operands)
        self._arriving = [t for t in (operands.dy, operands.dh) if t is not None]

    def arriving(self, results: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """The gradients that arrive for these results; a ValueError where they are not what a forward returns."""
        if len(results) != len(self._names):
            raise ValueError(wrong_count(len(results), self._names))
        for at, result in enumerate(results):
            if self._arriving[at].dtype is not result.dtype:
                self._arriving[at] = self._arriving[at].to(result.dtype)
        return self._arriving


def copied(operands: Operands) -> Operands:
    """The same with everything but the parameters in memory of its own."""
    own = operands.map_rows(torch.Tensor.clone)
    for tensor in own.inputs:
        tensor.requires_grad_(operands.x.requires_grad)
    return own


def _prepare_forward(forward: Forward, arguments: _Arguments) -> Call:
    return partial(forward, *arguments.inputs)


def _prepare_backward(
    forward: Forward, context: Callable[[], AbstractContextManager[Any]], arguments: _Arguments
) -> Call:
    with context():
        results = outputs(forward(*arguments.inputs))
    return partial(torch.autograd.grad, results, arguments.differentiable, arguments.arriving(results))


def _prepare_both(
    forward: Forward, context: Callable[[], AbstractContextManager[Any]], arguments: _Arguments
) -> Call:
    def call() -> tuple[torch.Tensor, ...]:
        with context():
            results = outputs(forward(*arguments.inputs))
        return (*results, *torch.autograd.grad(results, arguments.differentiable, arguments.arriving(results)))

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
