from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from normbench.inputs import Operands
from normbench.properties import values
from normbench.properties.agreement import non_finite
from normbench.properties.subject import NoResult, Subject, as_leaves, cell_of
from normbench.properties.values import operands
from normbench.records import Cache, DType, Mode, Op, Output
from tests.faults import AsSubclass, on_y, with_gradients, writing_into
from tests.properties.asking import spot, subject
from tests.right_norms import LN, RMS, exact, implementation

LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "packed": lambda t: t,
    "transposed": lambda t: t.t().contiguous().t(),
    "half": lambda t: torch.cat([t, t + 1], dim=1)[:, : t.shape[1]],
    "every other": lambda t: torch.stack([t, t + 1], dim=-1).flatten(1)[:, ::2],
}


def exactly(op: Op = LN, **changes: Any) -> Subject:
    return subject(implementation(op, "exact", exact(op)), spot(**changes))


def given(of: Subject) -> Operands:
    return operands(of, "any", values.normal)


@pytest.mark.parametrize("laid_out", LAYOUTS.values(), ids=LAYOUTS)
def test_leaves_are_copies_with_the_strides_of_the_original(laid_out: Callable[[torch.Tensor], torch.Tensor]) -> None:
    original = values.with_layout(given(exactly()), laid_out)
    leaves = as_leaves(original)
    assert original.dy is not None
    assert leaves.dy is not None

    for leaf, tensor in ((leaves.x, original.x), (leaves.dy, original.dy)):
        assert torch.equal(leaf, tensor)
        assert leaf.stride() == tensor.stride()
        assert leaf.data_ptr() != tensor.data_ptr()
    assert leaves.x.is_leaf
    assert leaves.x.requires_grad
    assert not leaves.dy.requires_grad
    assert isinstance(leaves.gain, torch.nn.Parameter)


@pytest.mark.parametrize("laid_out", LAYOUTS.values(), ids=LAYOUTS)
def test_an_implementation_gets_x_and_dy_in_the_layout_in_which_they_lie(
    laid_out: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    seen: list[tuple[int, ...]] = []
    one = subject(
        implementation(
            RMS,
            "looking",
            with_gradients(dx=lambda known: (seen.extend(t.stride() for t in known.handed[:2]), known.dx)[1])(RMS),
        )
    )
    laid = values.with_layout(given(one), laid_out)
    assert laid.dy is not None
    one.call(laid)

    assert seen == [laid.x.stride(), laid.dy.stride()]


def test_without_rows_there_is_an_empty_leaf() -> None:
    leaves = as_leaves(given(exactly(rows=0)))

    assert leaves.x.shape == (0, 64)
    assert leaves.x.requires_grad


def test_a_call_gives_y_and_every_gradient_by_torch_s_autograd() -> None:
    one = exactly()
    values_given = given(one)
    x, gain, bias = (t.detach().clone().requires_grad_() for t in values_given.differentiable)
    y = torch.nn.functional.layer_norm(x, (64,), gain, bias, one.eps)
    right = (y, *torch.autograd.grad(y, (x, gain, bias), values_given.dy))
    results = one.call(values_given)

    assert list(results) == [Output.Y, Output.DX, Output.DGAIN, Output.DBIAS]
    for result, tensor in zip(results.values(), right, strict=True):
        torch.testing.assert_close(result, tensor, rtol=1e-4, atol=1e-5)
        assert not result.requires_grad


def test_rmsnorm_has_no_bias() -> None:
    one = exactly(RMS)

    assert list(one.call(given(one))) == [Output.Y, Output.DX, Output.DGAIN]


def test_results_are_copies_that_a_later_call_can_not_change() -> None:
    one = subject(implementation(RMS, "x-itself", lambda x, _gain, _bias, _eps: x.view_as(x)))
    handed = given(one)
    kept: list[torch.Tensor] = []

    def bind(_gain: Any, _bias: Any) -> Callable[[torch.Tensor], torch.Tensor]:
        return lambda x: (kept.append(x.view_as(x)), kept[-1])[1]

    y = replace(one, bind=bind).infer(handed)[Output.Y]
    kept[-1].data.zero_()

    assert torch.equal(y, handed.x)


def test_a_call_leaves_the_operands_alone_and_a_run_may_write_into_them() -> None:
    one = subject(implementation(LN, "writing", with_gradients(dx=writing_into(0))(LN)))
    original = given(one)
    before = original.x.clone()
    one.call(original)
    assert torch.equal(original.x, before)

    leaves = as_leaves(original)
    one.run(leaves)
    assert not torch.equal(leaves.x.detach(), before)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda y: y[:, 1:], "y has shape (5, 63), not (5, 64)"),
        (lambda y: y.unsqueeze(0), "y has shape (1, 5, 64), not (5, 64)"),
        (AsSubclass.apply, "y is a Tagged, not a plain tensor"),
    ],
)
def test_what_can_not_be_compared_is_no_result_and_says_why(change: Any, reason: str) -> None:
    one = subject(implementation(LN, "odd", on_y(change)(LN)))

    with pytest.raises(NoResult) as caught:
        one.infer(given(one))
    assert str(caught.value) == reason


def test_integers_are_no_result_either() -> None:
    one = subject(implementation(LN, "whole", on_y(lambda y: y.to(torch.int32))(LN)))

    with pytest.raises(NoResult, match=r"y is torch\.int32, not real floating point"):
        one.infer(given(one))


def test_to_infer_is_to_ask_for_no_gradient() -> None:
    enabled: list[bool] = []
    one = subject(implementation(LN, "looking", on_y(lambda y: (enabled.append(torch.is_grad_enabled()), y)[1])(LN)))
    assert list(one.infer(given(one))) == [Output.Y]
    one.call(given(one))

    assert enabled == [False, True]


def test_autocast_is_on_in_the_forward_of_a_spot_that_has_it() -> None:
    seen: list[bool] = []
    one = implementation(LN, "looking", on_y(lambda y: (seen.append(torch.is_autocast_enabled("cpu")), y)[1])(LN))
    for autocast in (None, DType.BF16):
        of = subject(one, spot(autocast=autocast))
        of.call(given(of))

    assert seen == [False, True]


def test_another_bind_is_called_in_place_of_the_subject_s() -> None:
    one = exactly(RMS)
    twice = one.call(given(one), lambda gain, _bias: lambda x: 2 * one.bind(gain, None)(x))

    torch.testing.assert_close(twice[Output.Y], 2 * one.call(given(one))[Output.Y])


def test_a_spot_without_rows_is_built_for_as_one_of_a_single_row() -> None:
    at = spot(rows=0, dtype=DType.BF16, parameter_dtype=DType.FP32, autocast=DType.BF16)
    cell = cell_of(at, Mode.INFERENCE)

    assert (cell.rows, cell.width, cell.mode, cell.cache) == (1, 64, Mode.INFERENCE, Cache.WARM)
    assert (cell.dtype, cell.parameter_dtype, cell.autocast) == (DType.BF16, DType.FP32, DType.BF16)
    assert cell_of(spot(rows=7), Mode.FORWARD).rows == 7


def test_one_element_in_the_middle_is_no_finite_number() -> None:
    x = operands(exactly(), "any", non_finite(float("nan"))).x

    assert x.isnan().nonzero().tolist() == [[2, 32]]
