"""Is the result right? Compared with the float64 reference before anything is timed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import torch

from normbench import reference
from normbench.expected import Coarsest, Expected, Sums
from normbench.inputs import Operands
from normbench.records import Accuracy, Cell, DType, Op, Spot

OF_ROWS = ("y", "h", "dx", "dresidual")
"""The results that have x's shape; h is the new residual, x + residual."""

_CHUNK_ELEMENTS = 1 << 22
_LEAST_UNCANCELLED = 0.05
_BEYOND, _STUCK = 0.5, 0.9
"""How far a gradient may be beyond the right one and short of it, whatever the arithmetic, where its rows depend on
each other: sums in half precision get stuck on the way, and do not shoot over. One never written is neither."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a check found.

    Args:
        accuracy: How far off the result is.
        problem: What is wrong with it; None where it is right.
        coarse_sums: Whether a parameter's gradient is only as good as partial sums kept in half precision
            let it be. torch's own LayerNorm does that on a CPU; it is right by its arithmetic, and far less
            exact than a float32 sum.
    """

    accuracy: Accuracy
    problem: str | None
    coarse_sums: bool = False


class _Tally:
    """The worst errors seen, per output the first problem, and the projection of errors on the result."""

    def __init__(self) -> None:
        self.max_abs = 0.0
        self.max_rel = 0.0
        self.problems: list[str] = []
        self._projections: dict[str, tuple[float, float, float]] = {}

    def add(self, name: str, actual: torch.Tensor, expected: Expected, numbers: Sequence[int] = ()) -> None:
        """Take in one output, or the part of it whose rows have these ``numbers``."""
        actual = actual.detach()
        error = (actual.double() - expected.value).abs()
        relative = error / expected.scale.clamp(min=torch.finfo(torch.float64).tiny)
        self.max_abs = _worst(self.max_abs, float(error.max()))
        self.max_rel = _worst(self.max_rel, float(torch.where(error == 0, 0.0, relative).max()))
        # A NaN or infinity is never a pass, not even where the truth or the tolerance is no number either.
        wrong = ~((error <= expected.tolerance) & error.isfinite())
        if bool(wrong.any()):
            self.problems.append(_describe(name, actual, expected, wrong, numbers))
        signed = (actual.double() - expected.value) * expected.value
        new = (
            float(signed.sum()),
            float(expected.value.square().sum()),
            float(expected.scale.square().sum()),
        )
        old = self._projections.get(name, (0.0, 0.0, 0.0))
        self._projections[name] = (old[0] + new[0], old[1] + new[1], old[2] + new[2])

    def check_scale(self, name: str, tolerance: float, *, short: float | None = None) -> None:
        """Whether the result is the right one times a common factor other than 1.

        Not asked where the terms of most elements cancel: there the errors do not shrink with the values.

        Args:
            name: Of the output.
            tolerance: How far from 1 the factor may be.
            short: How far below 1; None for as far as above.
        """
        along, total, sizes = self._projections.get(name, (0.0, 0.0, 0.0))
        lowest = -(tolerance if short is None else short)
        if total > _LEAST_UNCANCELLED * sizes and not lowest <= along / total <= tolerance:
            self.problems.append(f"{name} is {1 + along / total:.6f} times the right values throughout")


def check(
    results: Mapping[str, torch.Tensor],
    op: Op,
    cell: Cell,
    operands: Operands,
    eps: float,
    *,
    probe: bool = False,
    independent: bool = True,
    numbers: Sequence[int] | None = None,
) -> Finding:
    """Compare what a call returned with the float64 reference.

    Args:
        results: The call's tensors by name: y, dx, dgain, dbias; h and dresidual where a residual is added.
        op: The formula they should follow.
        cell: For its dtypes.
        operands: The exact values that went in.
        eps: Added inside the root.
        probe: The rows are hard ones, with scales far apart: only what belongs to single rows is judged.
        independent: Whether dy's rows are independent of each other, as drawn values are and a model's are not.
        numbers: What the rows are called, where they are some of many.
    """
    out_dtype = dtype_of(results["y"]) if "y" in results else None
    shape_problem = wrong_shape(results, operands)
    if shape_problem:
        return refusal(shape_problem, out_dtype)
    coarsest = coarsest_of(cell)
    tally = _Tally()
    sums: dict[str, Sums] = {}
    called = range(operands.x.shape[0]) if numbers is None else numbers
    for part, rows in _chunks(operands):
        expected = reference.rows(op, rows, eps, coarsest)
        for name, of_rows in expected.outputs.items():
            if name in results:
                tally.add(name, results[name][part], of_rows, called[part])
        for name, new in (("dgain", expected.gain_sums), ("dbias", expected.bias_sums)):
            if new is not None:
                sums[name] = sums[name] + new if name in sums else new
    coarse_sums = not probe and _check_whole(tally, results, sums, cell, independent=independent)
    return Finding(
        accuracy=Accuracy(max_abs_error=tally.max_abs, max_rel_error=tally.max_rel, out_dtype=out_dtype),
        problem=tally.problems[0] if tally.problems else None,
        coarse_sums=coarse_sums,
    )


def refusal(problem: str, out_dtype: DType | None = None) -> Finding:
    """What is found of a result that can't even be compared: its errors have no bound."""
    worst = float("inf")
    accuracy = Accuracy(max_abs_error=worst, max_rel_error=worst, out_dtype=out_dtype)
    return Finding(accuracy=accuracy, problem=problem)


def coarsest_of(place: Cell | Spot) -> Coarsest:
    """The coarsest that a correct implementation may round to there."""
    return Coarsest.of([place.dtype, place.parameter_dtype, *([place.autocast] if place.autocast else [])])


def _check_whole(
    tally: _Tally, results: Mapping[str, torch.Tensor], sums: Mapping[str, Sums], cell: Cell, *, independent: bool
) -> bool:
    """What needs all rows: a common factor in what has rows, and the parameters' gradients.

    Returns:
        Whether a parameter's gradient is right only if partial sums may be kept in the coarsest format.
    """
    coarsest = coarsest_of(cell)
    for name in OF_ROWS:
        if name in results:
            tally.check_scale(name, reference.systematic_tolerance(cell.rows, cell.width, coarsest))
    coarse_sums = False
    for name, total in sums.items():
        if name in results:
            actual = results[name]
            exact, allowed = (
                reference.parameter_gradient(total, cell.rows, coarsest, accumulator, independent=independent)
                for accumulator in (DType.FP32, coarsest)
            )
            tally.add(name, actual, allowed)
            if independent:
                tally.check_scale(name, reference.gradient_factor_tolerance(cell.rows, cell.width, coarsest))
            else:
                tally.check_scale(name, _BEYOND, short=_STUCK)
            coarse_sums |= not bool(((actual.double() - exact.value).abs() <= exact.tolerance).all())
    return coarse_sums


def _chunks(operands: Operands) -> Iterator[tuple[slice, Operands]]:
    """The rows, a few million elements at a time, so that float64 never takes more memory than that."""
    count, width = operands.x.shape
    step = max(1, _CHUNK_ELEMENTS // max(width, 1))
    for start in range(0, count, step):
        part = slice(start, start + step)
        yield part, operands.map_rows(itemgetter(part))


def wrong_shape(results: Mapping[str, torch.Tensor], operands: Operands) -> str | None:
    """Which of the results can't even be compared, and why: no plain tensor, no real numbers, another shape."""
    parameter = operands.x.shape[1:]
    right = {**dict.fromkeys(OF_ROWS, operands.x.shape), "dgain": parameter, "dbias": parameter}
    for name, tensor in results.items():
        if type(tensor) is not torch.Tensor:  # a subclass may put its work off until somebody looks
            return f"{name} is a {type(tensor).__name__}, not a plain tensor"
        if not tensor.is_floating_point():
            return f"{name} is {tensor.dtype}, not real floating point"
        if tensor.shape != right[name]:
            return f"{name} has shape {tuple(tensor.shape)}, not {tuple(right[name])}"
    return None


def _describe(
    name: str, actual: torch.Tensor, expected: Expected, wrong: torch.Tensor, numbers: Sequence[int]
) -> str:
    """The first wrong element, in a sentence."""
    index = tuple(int(i) for i in wrong.nonzero()[0])
    got, right = float(actual[index]), float(expected.value[index])
    at = [numbers[index[0]], *index[1:]] if len(index) > 1 else list(index)
    share = float(wrong.double().mean())
    return f"{name}{at} is {got:.6g}, not {right:.6g} ({share:.1%} of the elements looked at are wrong)"


def _worst(one: float, other: float) -> float:
    """The larger, where NaN is larger than anything."""
    return other if other != other else max(one, other)


def dtype_of(tensor: torch.Tensor) -> DType | None:
    """The format of a tensor; None for one that no cell asks for, such as float64."""
    return next((dtype for dtype in DType if f"torch.{dtype.torch_name}" == str(tensor.dtype)), None)
