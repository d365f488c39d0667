from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from normbench.properties import laws, values
from normbench.properties.laws import Law
from normbench.properties.values import operands, plain
from normbench.records import DType, Mark, Op, Output, Property
from tests.faults import of_the_other, on_x, on_y, with_root
from tests.properties.asking import asked, spot, subject
from tests.right_norms import LN, RMS, exact, implementation, root

P = Property
RIGHT = {op: implementation(op, "exact", exact(op)) for op in (LN, RMS)}


def marks(one: Property, op: Op, make: object = exact, **at: object) -> dict[Output | None, Mark]:
    return {o: f.mark for o, f in asked(one, subject(implementation(op, "one", make(op)), spot(**at))).items()}  # type: ignore[operator,arg-type]


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize(
    ("one", "ops", "outputs"),
    [
        (P.SHIFT_INVARIANCE, (LN,), {Output.Y, Output.DX}),
        (P.SHIFT_DEPENDENCE, (RMS,), {Output.Y}),
        (P.SCALE_INVARIANCE, (LN, RMS), {Output.Y, Output.DX}),
        (P.SIGN_FLIP, (LN, RMS), {Output.Y, Output.DX}),
        (P.EPS_RULES, (LN, RMS), {Output.Y, Output.DX}),
        (P.ZERO_MEAN, (LN,), {Output.Y}),
        (P.RETAINED_MEAN, (RMS,), {Output.Y}),
    ],
)
def test_a_law_holds_for_the_norms_it_is_of_and_is_not_asked_of_the_other(
    one: Property, ops: tuple[Op, ...], outputs: set[Output], dtype: DType
) -> None:
    for op in (LN, RMS):
        found = marks(one, op, dtype=dtype)
        if op in ops:
            assert found == dict.fromkeys(outputs, Mark.PASS)
        else:
            assert found == {None: Mark.NOT_APPLICABLE}


def test_why_a_law_is_not_asked_is_said() -> None:
    (shift,) = asked(P.SHIFT_INVARIANCE, subject(RIGHT[RMS])).values()
    (mean,) = asked(P.RETAINED_MEAN, subject(RIGHT[LN])).values()

    assert (shift.reason, mean.reason) == ("RMSNorm takes no mean off", "LayerNorm takes the mean off")


@pytest.mark.parametrize("one", [P.SHIFT_INVARIANCE, P.ZERO_MEAN])
def test_a_layernorm_that_takes_no_mean_off_breaks_its_laws(one: Property) -> None:
    assert marks(one, LN, of_the_other)[Output.Y] is Mark.FAIL


@pytest.mark.parametrize("one", [P.SHIFT_DEPENDENCE, P.RETAINED_MEAN])
def test_an_rmsnorm_that_does_breaks_its_own(one: Property) -> None:
    assert marks(one, RMS, of_the_other)[Output.Y] is Mark.FAIL


@pytest.mark.parametrize("op", [LN, RMS])
@pytest.mark.parametrize(
    ("one", "make"),
    [
        (P.SIGN_FLIP, on_y(torch.abs)),
        (P.SCALE_INVARIANCE, on_x(lambda x: x.clamp(-4, 4))),
        (P.EPS_RULES, with_root(lambda v, _eps: root(v, 0.0))),
        (P.EPS_RULES, with_root(lambda v, eps: root(v, 10 * eps))),
    ],
)
def test_who_breaks_a_law_is_found_by_it(op: Op, one: Property, make: object) -> None:
    assert marks(one, op, make)[Output.Y] is Mark.FAIL


@pytest.mark.parametrize("op", [LN, RMS])
def test_x_times_16_changes_y_by_what_eps_is_against_the_mean_square_and_no_more(op: Op) -> None:
    """Of a law that forgot eps, values as small as its root would be the exception; here they are a case."""
    tiny = Law(kind=values.tiny, change=lambda x: x * 16, weights=laws.UNCHANGED)
    one = subject(RIGHT[op])
    given = operands(one, "tiny", values.tiny).of(op)
    y, larger = (one.call(replace(given, x=given.x * factor))[Output.Y] for factor in (1, 16))

    assert float((larger - y).abs().max()) > 0.1
    assert {f.mark for f in tiny(one)} == {Mark.PASS}


def test_a_change_that_rounding_hides_is_not_asked_for() -> None:
    """A width of 1 gives RMSNorm the sign of x, which a shift may leave as it is."""
    still = Law(kind=values.zeros, change=lambda x: x * 2, weights={Output.Y: (-1.0, 1.0)}, moves=True)
    (found,) = still(subject(RIGHT[RMS]))

    assert found.mark is Mark.NOT_APPLICABLE
    assert "too small to be told from rounding" in str(found.reason)


def test_a_sum_may_be_off_by_what_both_of_its_terms_may() -> None:
    part = operands(subject(RIGHT[RMS]), "any", values.normal)
    right = laws.truth(subject(RIGHT[RMS]), part.of(RMS)).fine
    summed = laws._summed(Output.Y, (-2.0, 1.0), [right, right], torch.float32)

    torch.testing.assert_close(summed.value, -right[Output.Y].value)
    torch.testing.assert_close(summed.tolerance, 3 * right[Output.Y].tolerance)
    torch.testing.assert_close(summed.scale, 2 * right[Output.Y].scale)


def test_plain_operands_have_a_gain_of_1_and_a_bias_of_0() -> None:
    given = plain(operands(subject(RIGHT[LN], spot(dtype=DType.BF16)), "any", values.normal))

    assert given.gain is not None
    assert given.bias is not None
    assert (given.gain.unique().tolist(), given.bias.unique().tolist()) == ([1.0], [0.0])
    assert given.gain.dtype is torch.bfloat16


def test_an_overflow_on_both_sides_of_a_law_is_no_difference() -> None:
    """Dx is beyond fp16 where eps is so small, before the change and after it."""
    one = subject(RIGHT[RMS], spot(dtype=DType.FP16), eps=1e-12)
    given = operands(one, "any", values.far_below_eps).of(RMS)

    assert bool(one.call(given)[Output.DX].isinf().any())
    assert {f.mark for f in laws.EPS_RULES(one)} == {Mark.PASS}
