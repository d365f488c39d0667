from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normbench import traffic
from normbench.records import DType, Mode, ModelShape, Op, Operation, StepCell
from tests.helpers import make_cell

ACTIVATION_FP32 = 2048 * 256 * 4


def floor_bytes(op: Op, **changes: Any) -> int:
    return traffic.floor_bytes(op, make_cell(**{"rows": 2048, "width": 256, **changes}))


@pytest.mark.parametrize(
    ("op", "dtype", "count"),
    [
        (Op.RMSNORM, DType.FP32, 4_195_328),
        (Op.LAYERNORM, DType.FP32, 4_196_352),
        (Op.COPY, DType.FP32, 4_194_304),
        (Op.RMSNORM, DType.FP16, 2_097_664),
        (Op.RMSNORM, DType.BF16, 2_097_664),
    ],
)
@pytest.mark.parametrize("mode", [Mode.FORWARD, Mode.INFERENCE])
def test_a_forward_moves_x_and_y_and_each_parameter_once(op: Op, dtype: DType, count: int, mode: Mode) -> None:
    assert floor_bytes(op, dtype=dtype, mode=mode) == count


@pytest.mark.parametrize(("op", "count"), [(Op.COPY, 6_291_456), (Op.RMSNORM, 6_293_504), (Op.LAYERNORM, 6_295_552)])
def test_a_backward_moves_x_dy_dx_the_parameters_and_their_gradients(op: Op, count: int) -> None:
    assert floor_bytes(op, mode=Mode.BACKWARD) == count


@pytest.mark.parametrize("mode", [Mode.FORWARD, Mode.INFERENCE, Mode.BACKWARD])
@pytest.mark.parametrize(("op", "vectors"), [(Op.ADD_COPY, 0), (Op.ADD_RMSNORM, 1), (Op.ADD_LAYERNORM, 2)])
def test_a_residual_add_and_norm_moves_four_activations_in_each_pass(op: Op, vectors: int, mode: Mode) -> None:
    """x, residual, y and h; backward h, dy, dh and the one gradient of x and residual."""
    passes = 2 if mode is Mode.BACKWARD else 1

    assert floor_bytes(op, mode=mode) == 4 * ACTIVATION_FP32 + passes * vectors * 256 * 4


def test_the_floors_of_the_two_norms_differ_by_a_fiftieth_of_a_per_cent() -> None:
    assert round(floor_bytes(Op.LAYERNORM) / floor_bytes(Op.RMSNORM), 4) == 1.0002


def test_parameters_are_counted_in_their_own_dtype() -> None:
    mixed = floor_bytes(Op.LAYERNORM, dtype=DType.BF16, parameter_dtype=DType.FP32)

    assert mixed == ACTIVATION_FP32 + 2 * 256 * 4


@pytest.mark.parametrize(("op", "count"), [(Op.COPY, 0), (Op.RMSNORM, 1024), (Op.LAYERNORM, 2048)])
def test_the_copy_has_no_parameters_rmsnorm_one_and_layernorm_two(op: Op, count: int) -> None:
    assert traffic.parameter_bytes(op, make_cell(width=256)) == count


@given(
    st.sampled_from(Op), st.integers(1, 4096), st.integers(1, 4096), st.sampled_from(DType), st.sampled_from(DType)
)
def test_forward_backward_moves_what_the_two_move(
    op: Op, rows: int, width: int, dtype: DType, parameter_dtype: DType
) -> None:
    def of(mode: Mode) -> int:
        return floor_bytes(op, rows=rows, width=width, dtype=dtype, parameter_dtype=parameter_dtype, mode=mode)

    assert of(Mode.FORWARD_BACKWARD) == of(Mode.FORWARD) + of(Mode.BACKWARD)


@pytest.mark.parametrize(("mode", "tensors"), [(Mode.FORWARD, 1), (Mode.INFERENCE, 1), (Mode.BACKWARD, 2)])
def test_a_placement_holds_x_and_where_there_are_gradients_dy_for_each_implementation(
    mode: Mode, tensors: int
) -> None:
    cell = make_cell(rows=2048, width=256, mode=mode)

    assert traffic.placement_bytes(cell, 3, shared=False) == 3 * tensors * ACTIVATION_FP32
    assert traffic.placement_bytes(cell, 3, shared=True) == tensors * ACTIVATION_FP32


def test_measuring_a_cell_takes_the_values_two_placements_and_a_call() -> None:
    cell = make_cell(rows=2048, width=256, mode=Mode.BACKWARD)

    # Values x and dy; two placements of three implementations with x and dy; a chain forward and backward.
    parameters = 2 * 3 * 2 * 2 * 256 * 4  # two placements, three implementations, gain and bias, values and gradients
    assert traffic.cell_bytes(cell, 3) == (2 + 2 * 3 * 2 + 8) * ACTIVATION_FP32 + parameters
    assert traffic.cell_bytes(cell, 3, shared=True) == (2 + 2 * 2 + 8) * ACTIVATION_FP32 + parameters


def test_with_a_residual_each_placement_and_the_values_hold_twice_as_much() -> None:
    cell = make_cell(operation=Operation.ADD_NORM, rows=2048, width=256, mode=Mode.BACKWARD)
    parameters = 2 * 3 * 2 * 2 * 256 * 4

    assert traffic.placement_bytes(cell, 3, shared=False) == 3 * 4 * ACTIVATION_FP32
    assert traffic.cell_bytes(cell, 3) == (4 + 2 * 3 * 4 + 10) * ACTIVATION_FP32 + parameters


@pytest.mark.parametrize(
    ("mode", "tensors"),
    [(Mode.FORWARD, 4), (Mode.INFERENCE, 4), (Mode.BACKWARD, 4), (Mode.FORWARD_BACKWARD, 7)],
)
def test_a_call_with_a_residual_goes_through_two_inputs_and_two_outputs(mode: Mode, tensors: int) -> None:
    cell = make_cell(operation=Operation.ADD_NORM, rows=2048, width=256, mode=mode)

    assert traffic.touched_bytes(cell) == tensors * ACTIVATION_FP32


@pytest.mark.parametrize(
    ("mode", "tensors"),
    [(Mode.FORWARD, 2), (Mode.INFERENCE, 2), (Mode.BACKWARD, 3), (Mode.FORWARD_BACKWARD, 4)],
)
def test_a_call_goes_through_x_and_y_and_the_gradients_of_its_mode(mode: Mode, tensors: int) -> None:
    assert traffic.touched_bytes(make_cell(rows=2048, width=256, mode=mode)) == tensors * ACTIVATION_FP32


def test_a_chain_needs_less_on_top_where_nothing_is_saved_for_a_backward() -> None:
    inference, forward = (make_cell(mode=mode) for mode in (Mode.INFERENCE, Mode.FORWARD))

    assert traffic.working_bytes(inference) < traffic.working_bytes(forward)


def test_what_a_chain_takes_is_float32_whatever_the_dtype() -> None:
    assert traffic.working_bytes(make_cell(dtype=DType.BF16)) == traffic.working_bytes(make_cell(dtype=DType.FP32))


def test_steps_need_five_copies_of_every_variants_parameters_and_one_step() -> None:
    shape = ModelShape(width=16, layers=2, heads=2, context=4, batch=2, vocabulary=11)
    cell = StepCell(shape=shape, dtype=DType.FP32)
    parameters = (11 + 4) * 16 + 2 * 12 * 16**2 + 5 * 2 * 16
    activations = 4 * (2 * 24 * 8 * 16 + 4 * 8 * 11)

    assert traffic.step_bytes(cell, 3) == 16 * parameters * 4 + activations
    assert traffic.step_bytes(replace(cell, dtype=DType.BF16), 3) == 16 * parameters * 2 + activations
    exact = 2 * parameters * 8 + 2 * activations
    assert traffic.step_bytes(replace(cell, compiled=True), 3) == 16 * parameters * 4 + activations + exact
