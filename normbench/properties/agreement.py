"""y and every gradient against float64, on values of every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from normbench.properties import values
from normbench.properties.judging import Found, agreement, broken, held, not_applicable, same, truth
from normbench.properties.subject import Subject
from normbench.properties.values import Kind
from normbench.records import DType, Mark, Output


class OnValues:
    """Agreement with float64 on one kind of values.

    Args:
        kind: Draws them.
        skipped: The formats that can't hold them.
    """

    def __init__(self, kind: Kind, skipped: tuple[DType, ...] = ()) -> None:
        self._kind = kind
        self._skipped = skipped

    def __call__(self, subject: Subject) -> Iterator[Found]:
        """What is found of y and each gradient."""
        if subject.spot.dtype in self._skipped:
            yield not_applicable(f"{subject.spot.dtype} can't hold such values")
            return
        operands = values.operands(subject, self._kind.__name__, self._kind)
        yield from agreement(subject.call(operands), truth(subject, operands.of(subject.op)), subject.spot)


def on_no_rows(subject: Subject) -> Iterator[Found]:
    """No rows give none, and gradients of 0."""
    results = subject.call(values.operands(subject, "no rows", values.normal))
    for output, tensor in results.items():
        if output in (Output.Y, Output.DX):
            yield held(output)  # there is nothing in it: its shape was right
        else:
            yield same(output, torch.zeros_like(tensor), tensor, "without rows the gradient is 0")


def under_no_grad(subject: Subject) -> Iterator[Found]:
    """Y alone, without gradients."""
    operands = values.operands(subject, "no grad", values.normal)
    yield from agreement(subject.infer(operands), truth(subject, operands.of(subject.op)), subject.spot)


def left_half(tensor: torch.Tensor) -> torch.Tensor:
    """The left half of a wider tensor, as a query is of what one product gives for query and key."""
    return torch.cat([tensor, tensor + 1], dim=1)[:, : tensor.shape[1]]


def by_columns(tensor: torch.Tensor) -> torch.Tensor:
    """Laid out column by column."""
    return tensor.t().contiguous().t()


class LaidOut:
    """Agreement with float64 where x and dy lie otherwise in memory than row after row.

    Args:
        purpose: What the values are drawn for.
        laid_out: The same values in another layout.
    """

    def __init__(self, purpose: str, laid_out: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self._purpose = purpose
        self._laid_out = laid_out

    def __call__(self, subject: Subject) -> Iterator[Found]:
        """What is found of y and each gradient."""
        operands = values.operands(subject, self._purpose, values.normal)
        apart = values.with_layout(operands, self._laid_out)
        yield from agreement(subject.call(apart), truth(subject, operands.of(subject.op)), subject.spot)


def non_finite(value: float) -> Kind:
    """Normal values, and in the middle of one row something that is no finite number."""

    def draw(draw: values.Draw, subject: Subject) -> torch.Tensor:
        x = values.normal(draw, subject)
        x[subject.spot.rows // 2, subject.spot.width // 2] = value
        return x

    return draw


class Contained:
    """A number that is not finite stays in its row, and is seen there.

    Args:
        value: NaN or an infinity.
    """

    def __init__(self, value: float) -> None:
        self._value = value

    def __call__(self, subject: Subject) -> Iterator[Found]:
        """What is found of y and dx; the parameters' gradients are sums over all rows, and rightly no numbers."""
        operands = values.operands(subject, "not finite", non_finite(self._value)).of(subject.op)
        row, column = subject.spot.rows // 2, subject.spot.width // 2
        others = torch.arange(subject.spot.rows, device=subject.device) != row
        kept = values.rows_of(operands, others)
        results, right = subject.call(operands), truth(subject, kept)
        rest = {output: results[output][others] for output in (Output.Y, Output.DX)}
        found = list(agreement(rest, right, subject.spot))
        hidden = float(results[Output.Y][row, column])
        if all(one.mark is Mark.PASS for one in found) and torch.tensor(hidden).isfinite():
            yield broken(f"y is {hidden:.6g} where x is {self._value}: it is hidden", Output.Y)
        else:
            yield from found
