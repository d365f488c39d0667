"""Residual adds and norms that are wrong, each in its own way, are caught; who writes in place by design is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from normbench.implementations import Bind, Forward, Implementation, Setting, by_name, eager
from normbench.records import CellRecords, DType, Flag, Mode, Op, Status
from tests.cheats_of_adds import (
    BACKWARD,
    CHEATS,
    FORWARD,
    Adder,
    Two,
    adding,
    in_backward,
    in_forward,
    keeps_its_residual,
    keeps_its_sum,
    one_buffer,
    right,
    writes_into_dh,
)
from tests.fakes import fake_sweep, row

FLOOR, BASELINE = by_name("add-copy"), by_name("nn-add-layernorm")
CASES = [(name, mode) for name, cheat in CHEATS.items() for mode in cheat.modes]


def swept(implementation: Implementation, mode: Mode, dtype: DType = DType.FP32) -> CellRecords:
    (records,) = fake_sweep(
        (FLOOR, implementation, BASELINE), modes=(mode,), dtypes=(dtype,), rows=(200,), widths=(32,)
    ).run()
    return records


@pytest.mark.parametrize(("name", "mode"), CASES, ids=[f"{name} {mode}" for name, mode in CASES])
def test_a_cheat_is_caught_with_its_reason_and_costs_its_own_row_alone(name: str, mode: Mode) -> None:
    cheat = CHEATS[name]
    records = swept(adding(name, cheat.function), mode)
    result = row(records, f"cheat-{name}")
    assert (result.status, result.timing) == (Status.INCORRECT, None)
    assert cheat.reason in (result.reason or "")
    assert {row(records, other.name).status for other in (FLOOR, BASELINE)} == {Status.OK}


@pytest.mark.parametrize("mode", FORWARD)
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (keeps_its_sum, "computed nothing for repeated inputs: h"),
        (keeps_its_residual, "on other inputs in the same memory: "),
        (one_buffer, "h lies in the same memory"),
    ],
)
def test_what_is_kept_from_one_call_to_the_next_is_caught(make: Callable[[], Adder], reason: str, mode: Mode) -> None:
    result = row(swept(adding("keeps", in_forward(make())), mode), "cheat-keeps")
    assert result.status is Status.INCORRECT
    assert reason in (result.reason or "")


@pytest.mark.parametrize("dtype", [DType.BF16, DType.FP16])
@pytest.mark.parametrize("name", ["forgets-the-add", "copy-of-old-residual", "rounds-twice", "drops-dh"])
def test_half_precision_hides_none_of_the_mistakes(name: str, dtype: DType) -> None:
    cheat = CHEATS[name]
    records = swept(adding(name, cheat.function), cheat.modes[-1], dtype)
    assert cheat.reason in (row(records, f"cheat-{name}").reason or "")


@pytest.mark.parametrize("mode", Mode)
def test_what_is_right_in_the_same_clothes_is_timed(mode: Mode) -> None:
    result = row(swept(adding("none", in_forward(right)), mode), "cheat-none")
    assert (result.status, result.reason) == (Status.OK, None)


def in_place(x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor) -> Two:
    """As fused kernels for inference do: h into the residual, y into x."""
    residual.add_(x)
    x.copy_(eager.rmsnorm(residual, gain, None, 1e-6))
    return x, residual


def test_results_may_lie_in_x_and_residual_for_whom_declares_to_write_there_and_it_is_flagged() -> None:
    result = row(swept(adding("in-place", in_place, mutates=True), Mode.INFERENCE), "cheat-in-place")
    assert (result.status, result.reason) == (Status.OK, None)
    assert Flag.IN_PLACE in result.flags


@pytest.mark.parametrize("dtype", list(DType))
def test_whoever_does_the_same_without_declaring_it_is_incorrect(dtype: DType) -> None:
    result = row(swept(adding("in-place", in_place), Mode.INFERENCE, dtype), "cheat-in-place")
    assert result.status is Status.INCORRECT
    assert (result.reason or "").startswith("wrote into x without declaring it")


def test_an_input_handed_back_as_it_is_is_no_result_of_its_own_even_where_its_values_are_right() -> None:
    """The floor's h is the residual, bit by bit, and must still be a copy."""

    def build(_setting: Setting) -> Bind:
        def bind(_gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
            return lambda x, residual: (x.clone(), residual)

        return bind

    hands_back = Implementation(
        name="cheat-hands-back", op=Op.ADD_COPY, provider="cheat", summary="hands its residual back", build=build
    )
    result = row(swept(hands_back, Mode.INFERENCE), "cheat-hands-back")
    assert result.status is Status.INCORRECT
    assert (result.reason or "").startswith("h lies in the memory of")


@pytest.mark.parametrize("mode", BACKWARD)
def test_a_backward_that_writes_into_dh_by_design_leaves_everybody_elses_alone(mode: Mode) -> None:
    declared = adding("declared", in_backward(writes_into_dh), mutates=True)
    records = swept(declared, mode)
    assert row(records, "cheat-declared").status is Status.OK
    assert {row(records, other.name).status for other in (FLOOR, BASELINE)} == {Status.OK}
