"""Results against what is right: how far off at worst, in which units, and whether that is allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch

from normbench import correctness, reference
from normbench.expected import Coarsest, Expected, Rounding
from normbench.inputs import Operands
from normbench.properties.subject import Subject
from normbench.records import Check, DType, Gap, Mark, Op, Output, Property, Spot

_ALL_WRONG = 0.5


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a property finds of one output: a check, but for who, which and where."""

    output: Output | None
    mark: Mark
    reason: str | None = None
    gap: Gap | None = None
    coarse: bool = False
    out_dtype: DType | None = None

    def of(self, implementation: str, asked: Property, spot: Spot) -> Check:
        """The check."""
        return Check(implementation=implementation, property=asked, spot=spot, **vars(self))


def not_applicable(reason: str) -> Found:
    """A property can't be asked here."""
    return Found(output=None, mark=Mark.NOT_APPLICABLE, reason=reason)


def held(output: Output | None = None) -> Found:
    """A property holds, and there is no distance to give."""
    return Found(output=output, mark=Mark.PASS)


def broken(reason: str, output: Output | None = None) -> Found:
    """A property does not hold, and there is no distance to give."""
    return Found(output=output, mark=Mark.FAIL, reason=reason)


Truths = Mapping[Output, Expected]


@dataclass(frozen=True, kw_only=True)
class Truth:
    """The right values of one call: with the errors that float32 statistics leave, and with those of coarser ones."""

    fine: Truths
    coarse: Truths


def truth(subject: Subject, operands: Operands, *, op: Op | None = None, eps: float | None = None) -> Truth:
    """What ``subject`` should give for ``operands``, of which there is one row at least.

    Args:
        subject: Decides the formats.
        operands: The values.
        op: Another formula than the subject's.
        eps: Another than the subject's.
    """
    spot = subject.spot
    statistic, sums = _coarse_of([spot.dtype], spot), _coarse_of([spot.dtype, spot.parameter_dtype], spot)
    fine, coarse = (
        _truths(op or subject.op, operands, subject.eps if eps is None else eps, correctness.coarsest_of(spot), *kept)
        for kept in ((DType.FP32, DType.FP32), (statistic, sums))
    )
    return Truth(fine=fine, coarse={output: _capped(coarse[output], fine[output]) for output in fine})


def _capped(coarse: Expected, fine: Expected) -> Expected:
    """Off by no more than half of the terms beyond what float32 statistics leave: more is wrong in any format."""
    return replace(coarse, tolerance=torch.minimum(coarse.tolerance, fine.tolerance + _ALL_WRONG * fine.scale))


def _coarse_of(dtypes: list[DType], spot: Spot) -> Rounding:
    """The coarsest that something may be kept in which is of these formats, and of autocast's."""
    used = {*dtypes, spot.autocast or spot.dtype}
    return DType.FP32 if used == {DType.FP32} else Coarsest.of(used)


def _truths(
    op: Op, operands: Operands, eps: float, coarsest: Coarsest, statistic: Rounding, accumulator: Rounding
) -> Truths:
    rows = reference.rows(op, operands, eps, coarsest, statistic)
    count = operands.x.shape[0]
    found = {Output.Y: rows.y, Output.DX: rows.dx}
    for output, sums in ((Output.DGAIN, rows.gain_sums), (Output.DBIAS, rows.bias_sums)):
        if sums is not None:
            found[output] = reference.parameter_gradient(sums, count, coarsest, accumulator)
    return {output: expected for output, expected in found.items() if expected is not None}


def agreement(results: Mapping[Output, torch.Tensor], right: Truth, spot: Spot) -> Iterator[Found]:
    """Each of the results against what is right."""
    for output, actual in results.items():
        found = compared(output, actual, right.fine[output], right.coarse[output], actual.dtype)
        out_dtype = correctness.dtype_of(actual)
        differs = out_dtype is not spot.dtype and output in (Output.Y, Output.DX)
        yield replace(found, out_dtype=out_dtype) if differs else found


def compared(output: Output, actual: torch.Tensor, fine: Expected, coarse: Expected, stored_in: torch.dtype) -> Found:
    """One result against what is right, first as exact as float32 statistics allow, then as coarser ones do.

    Args:
        output: What is looked at.
        actual: The result, or what was calculated from it.
        fine: What is right.
        coarse: The same with the larger tolerance.
        stored_in: The format of the result, for units in its last place and the largest number that it holds.
    """
    error = _error(actual, fine, stored_in)
    found = Found(output=output, mark=Mark.PASS, gap=_gap(error, fine, stored_in))
    if not bool(_wrong(error, fine).any()):
        return found
    if not bool(_wrong(error, coarse).any()):
        return replace(found, coarse=True)
    return replace(found, mark=Mark.FAIL, reason=_problem(output, actual, fine, error))


def overflowed(actual: torch.Tensor, expected: Expected, stored_in: torch.dtype) -> torch.Tensor:
    """The result in float64, where it is rightly infinite the largest number of its format, with the right sign.

    An infinity is right where what is right is too large for the format, or may round to that.
    """
    most, result, right = torch.finfo(stored_in).max, actual.double(), expected.value
    rightly = result.isinf() & (result.sign() == right.sign()) & (right.abs() + expected.tolerance >= most)
    return torch.where(rightly, result.sign() * most, result)


def within(expected: Expected, stored_in: torch.dtype) -> Expected:
    """The same with the largest numbers of a format in place of what it can't hold."""
    most = torch.finfo(stored_in).max
    return replace(expected, value=expected.value.clamp(-most, most))


def _error(actual: torch.Tensor, expected: Expected, stored_in: torch.dtype) -> torch.Tensor:
    """How far off each element is; NaN where it is no number."""
    return (overflowed(actual, expected, stored_in) - within(expected, stored_in).value).abs()


def _wrong(error: torch.Tensor, expected: Expected) -> torch.Tensor:
    return ~((error <= expected.tolerance) & error.isfinite())


def same(output: Output, one: torch.Tensor, other: torch.Tensor, what: str) -> Found:
    """Whether two results are the same numbers, to the last bit, NaNs too; how far apart they are where not.

    Args:
        output: What is looked at.
        one: A result.
        other: Another.
        what: What has happened where they differ, as a sentence begins.
    """
    differ = (one != other) & ~(one.isnan() & other.isnan())
    count = int(differ.sum())
    if not count:
        return Found(output=output, mark=Mark.PASS, gap=Gap(ulp=0.0, relative=0.0, of_allowed=0.0))
    value = one[differ].double()
    exact = Expected(value=value, tolerance=torch.zeros_like(value), scale=value.abs().nan_to_num())
    reason = f"{what}: {count} of {one.numel()} elements differ"
    gap = _gap((other[differ].double() - value).abs(), exact, other.dtype)
    return Found(output=output, mark=Mark.FAIL, reason=reason, gap=gap)


def _gap(error: torch.Tensor, expected: Expected, stored_in: torch.dtype) -> Gap | None:
    """The largest distances; none where there is no element."""
    if not error.numel():
        return None
    error = error.nan_to_num(nan=torch.inf, posinf=torch.inf)
    # What is allowed may be more than the terms: where they are all 0 and an error of the mean is passed on.
    sizes = torch.maximum(expected.scale, expected.tolerance)
    return Gap(
        ulp=_largest(error, spacings(sizes, stored_in)),
        relative=_largest(error, sizes),
        of_allowed=_largest(error, expected.tolerance),
    )


def _largest(error: torch.Tensor, unit: torch.Tensor) -> float:
    return float(_in_units(error, unit).max())


def _in_units(error: torch.Tensor, unit: torch.Tensor) -> torch.Tensor:
    """Errors in a unit of each element's own; of no error it is 0 in any, and what is no number is infinite."""
    return torch.where(error == 0, 0.0, error / unit).nan_to_num(nan=torch.inf, posinf=torch.inf)


def spacings(sizes: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The distance between neighbouring numbers of a format at each of some sizes (IEEE 754: 2^(e - p + 1))."""
    info = torch.finfo(dtype)
    exponent = torch.frexp(sizes.double().clamp(min=info.smallest_normal)).exponent - 1
    return torch.ldexp(torch.full_like(sizes, info.eps, dtype=torch.float64), exponent)


def _problem(output: Output, actual: torch.Tensor, expected: Expected, error: torch.Tensor) -> str:
    """The element that is the most beyond what is allowed, in a sentence; the first of several."""
    beyond = _in_units(error, expected.tolerance)
    index = tuple(int(i) for i in (beyond == beyond.max()).nonzero()[0])
    share = float(_wrong(error, expected).double().mean())
    return (
        f"{output}{list(index)} is {float(actual[index]):.6g}, not {float(expected.value[index]):.6g} "
        f"({share:.0%} of the elements are wrong)"
    )
