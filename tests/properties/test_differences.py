from __future__ import annotations

import pytest
import torch

from normbench.properties import differences, values
from normbench.properties.differences import _slopes
from normbench.properties.judging import truth
from normbench.properties.values import operands
from normbench.records import DType, Mark, Op, Output, Property
from tests.faults import Backward, with_gradients
from tests.properties.asking import asked, spot, subject
from tests.right_norms import LN, RMS, exact, implementation

OPS = [LN, RMS]
ONE = Property.FINITE_DIFFERENCES


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("width", [1, 2, 3, 64])
@pytest.mark.parametrize("kind", [values.normal, values.tiny, values.zeros])
def test_differences_show_the_gradients_of_the_formula_to_a_ten_millionth(op: Op, width: int, kind: object) -> None:
    one = subject(implementation(op, "exact", exact(op)), spot(width))
    given = operands(one, "any", kind).of(op)  # type: ignore[arg-type]
    right = truth(one, given).fine
    for output, slope in _slopes(one, given).items():
        assert bool(((slope - right[output].value).abs() <= 1e-7 * right[output].scale).all()), output


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("op", OPS)
def test_every_gradient_is_compared_and_y_is_not(op: Op, dtype: DType) -> None:
    found = asked(ONE, subject(implementation(op, "exact", exact(op)), spot(dtype=dtype)))
    outputs = [Output.DX, Output.DGAIN] + ([Output.DBIAS] if op is LN else [])

    assert {output: f.mark for output, f in found.items()} == dict.fromkeys(outputs, Mark.PASS)


@pytest.mark.parametrize("name", ["dx", "dgain", "dbias"])
def test_a_gradient_that_is_a_thousandth_too_large_is_found_and_the_others_are_not(name: str) -> None:
    def larger(known: Backward) -> torch.Tensor:
        return getattr(known, name) * 1.001  # type: ignore[no-any-return]

    found = asked(ONE, subject(implementation(LN, "one", with_gradients(**{name: larger})(LN))))

    assert {str(output) for output, f in found.items() if f.mark is Mark.FAIL} == {name}


@pytest.mark.parametrize("width", [1, 2])
def test_a_row_near_0_is_stepped_along_by_its_own_size(width: int) -> None:
    """A step of 1e-5 would be a hundredth of it, and the second order be seen."""
    one = subject(implementation(RMS, "exact", exact(RMS)), spot(width))
    given = operands(one, "any", torch.full((5, width), 1e-3)).of(RMS)

    assert torch.allclose(_slopes(one, given)[Output.DX], truth(one, given).fine[Output.DX].value, rtol=1e-6)


def test_what_is_compared_with_are_the_differences_and_no_derived_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    right = implementation(RMS, "exact", exact(RMS))
    slopes = differences._slopes
    for factor, mark in ((1.0, Mark.PASS), (1.001, Mark.FAIL)):
        monkeypatch.setattr(
            differences, "_slopes", lambda *given, by=factor: {o: by * s for o, s in slopes(*given).items()}
        )
        assert {f.mark for f in asked(ONE, subject(right)).values()} == {mark}


def test_wide_rows_are_not_asked() -> None:
    (found,) = asked(ONE, subject(implementation(RMS, "exact", exact(RMS)), spot(65))).values()

    assert (found.mark, found.output) == (Mark.NOT_APPLICABLE, None)
