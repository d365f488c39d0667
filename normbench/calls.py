"""One call of a task, caught the moment it returns: its values then, its memory, and whether it was done."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from normbench import correctness, modes
from normbench.clock import Task
from normbench.device import Device, hold
from normbench.inputs import OF_ROWS, Operands
from normbench.records import Cell, Op

INPUTS = (*OF_ROWS, "gain", "bias")
_WAITS = 5
_WAIT_S = 0.02
_KEPT_CALLS = 3


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A task, and what its calls are held against.

    Args:
        op: The formula.
        cell: The cell.
        eps: Added inside the root.
        task: What is called.
        operands: The memory that its calls read, unless each gets fresh copies; dy and dh in the dtypes in which they
            get them.
        exact: The values that belong there.
        device: Where.
        reuses_output: Whether its next call may overwrite what it returned, as it says itself.
    """

    op: Op
    cell: Cell
    eps: float
    task: Task
    operands: Operands
    exact: Operands
    device: Device
    reuses_output: bool = False


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one call returned, by name; ``part`` holds copies: the chosen rows of what has rows, all of the rest."""

    tensors: Mapping[str, torch.Tensor]
    part: Mapping[str, torch.Tensor]


class Odd(Exception):  # noqa: N818 - a finding, no error
    """A call returned what can't be right whatever its values are."""


@dataclass(frozen=True, kw_only=True)
class _Span:
    """Where the memory of a tensor lies; of the whole block, for the rest of it may be overwritten too."""

    start: int
    end: int

    @classmethod
    def of(cls, tensor: torch.Tensor) -> _Span:
        storage = tensor.untyped_storage()
        return cls(start=storage.data_ptr(), end=storage.data_ptr() + storage.nbytes())

    def overlaps(self, other: _Span) -> bool:
        return self.start < other.end and other.start < self.end


class Caller:
    """Calls a subject's task, one call after the other, and keeps the results of the last ones alive.

    Args:
        subject: Whose task.
        rows: The chosen ones.
    """

    def __init__(self, subject: Subject, rows: torch.Tensor) -> None:
        self._subject = subject
        self._rows = rows
        self._kept: list[tuple[Mapping[str, torch.Tensor], Mapping[str, _Span]]] = []

    def call(self, write: Callable[[], None] = lambda: None) -> Seen:
        """Call once, after ``write`` has changed the inputs, and copy what matters before anything waits for it.

        On a GPU the copy is queued right behind the call, and the call behind some milliseconds of waiting: what is
        done in another stream is too early for its inputs, or too late for the copy.

        Raises:
            Odd: What it returned is no plain tensor of the right shape.
        """
        subject = self._subject
        if not self._kept:
            _spoil_free_memory(subject.operands)
        hold(subject.device)
        write()
        returned = modes.outputs(subject.task.run())
        names = modes.output_names(subject.cell.mode, subject.operands)
        if len(returned) != len(names):
            raise Odd(modes.wrong_count(len(returned), names))
        tensors = dict(zip(names, returned, strict=True))
        problem = correctness.wrong_shape(tensors, subject.exact)
        if problem is not None:
            raise Odd(problem)
        part = {name: self._part(name, tensor) for name, tensor in tensors.items()}
        return Seen(tensors={name: tensor.detach() for name, tensor in tensors.items()}, part=part)

    def whole(self, seen: Seen) -> dict[str, torch.Tensor]:
        """Copies of all that a call returned, the chosen rows as they were the moment it returned."""
        copies = {name: tensor.clone() for name, tensor in seen.tensors.items()}
        for name in copies.keys() & set(correctness.OF_ROWS):
            copies[name].index_copy_(0, self._rows, seen.part[name])
        return copies

    def was_done(self, seen: Seen) -> bool:
        """Whether what was seen stays as it was seen; asked of wrong values, since it takes a moment."""
        for _ in range(_WAITS):
            self._subject.device.synchronize()
            if not all(same_bits(self._part(name, tensor), seen.part[name]) for name, tensor in seen.tensors.items()):
                return False
            time.sleep(_WAIT_S)
        return True

    def overlap(self, seen: Seen) -> str | None:
        """Whose memory a result lies in, where it isn't its own; the last few calls' results are still alive."""
        spans = {name: _Span.of(tensor) for name, tensor in seen.tensors.items()}
        inputs = {name: _Span.of(t) for name in INPUTS if (t := getattr(self._subject.operands, name)) is not None}
        kept, self._kept = self._kept, [*self._kept, (seen.tensors, spans)][-_KEPT_CALLS:]
        for name, span in spans.items():
            for other, taken in inputs.items():
                if span.overlaps(taken):
                    return f"{name} lies in the memory of {other}"
            if not self._subject.reuses_output and any(span.overlaps(before[name]) for _, before in kept):
                return f"{name} lies in the same memory in every call: whoever keeps one has it overwritten"
        return None

    def _part(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.detach()
        return tensor.index_select(0, self._rows) if name in correctness.OF_ROWS else tensor.clone()


def written_input(operands: Operands, expected: Operands) -> str | None:
    """The name of an input that does not hold the values expected: what comes next is other work."""
    for name in INPUTS:
        there, right = getattr(operands, name), getattr(expected, name)
        if right is not None and not torch.equal(there.detach(), right.to(there.dtype)):
            return name
    return None


def restore_inputs(subject: Subject) -> None:
    """Put the values of all that has rows back, without a trace."""
    for name in OF_ROWS:
        there, exact = getattr(subject.operands, name), getattr(subject.exact, name)
        if there is not None:
            there.data.copy_(exact)


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one shape and dtype hold the same, NaNs included."""
    return torch.equal(one.contiguous().view(torch.uint8), other.contiguous().view(torch.uint8))


def all_finite(tensor: torch.Tensor) -> bool:
    """Whether there is no NaN and no infinity in it."""
    # A sum is finite only if all is, and quicker; it may also overflow.
    return bool(tensor.detach().sum(dtype=torch.float32).isfinite()) or bool(tensor.detach().isfinite().all())


def _spoil_free_memory(operands: Operands) -> None:
    """Leave NaNs in memory that is handed out next, where right values of earlier calls may still lie."""
    alike = (operands.x, *operands.inputs, operands.gain)
    spoiled = [torch.full_like(t, float("nan")) for t in alike if t is not None]
    del spoiled
