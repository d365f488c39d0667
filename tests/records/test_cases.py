from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from normbench.device import torch_dtype
from normbench.records import CELL_KEY, Cache, Cell, DType, Mode, Op, Operation, is_below
from tests.helpers import make_cell

CELLS = st.builds(
    Cell,
    operation=st.sampled_from(Operation),
    mode=st.sampled_from(Mode),
    rows=st.integers(1, 3),
    width=st.integers(1, 3),
    dtype=st.sampled_from(DType),
    parameter_dtype=st.sampled_from(DType),
    autocast=st.sampled_from([None, DType.BF16]),
    cache=st.sampled_from(Cache),
)


@pytest.mark.parametrize(
    ("op", "operation", "norm", "is_floor", "centres", "has_gain", "has_bias"),
    [
        (Op.COPY, Operation.NORM, Op.COPY, True, False, False, False),
        (Op.LAYERNORM, Operation.NORM, Op.LAYERNORM, False, True, True, True),
        (Op.RMSNORM, Operation.NORM, Op.RMSNORM, False, False, True, False),
        (Op.ADD_COPY, Operation.ADD_NORM, Op.COPY, True, False, False, False),
        (Op.ADD_LAYERNORM, Operation.ADD_NORM, Op.LAYERNORM, False, True, True, True),
        (Op.ADD_RMSNORM, Operation.ADD_NORM, Op.RMSNORM, False, False, True, False),
    ],
)
def test_a_formula_with_a_residual_has_what_its_norm_has(
    op: Op, operation: Operation, norm: Op, is_floor: bool, centres: bool, has_gain: bool, has_bias: bool
) -> None:
    assert (op.operation, op.norm, op.adds) == (operation, norm, operation is Operation.ADD_NORM)
    assert (op.is_floor, op.centres, op.has_gain, op.has_bias) == (is_floor, centres, has_gain, has_bias)


@pytest.mark.parametrize("size", [{"rows": 0}, {"width": 0}, {"rows": -1}])
def test_a_cell_without_elements_is_refused(size: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least one row and one column"):
        make_cell(**size)


def test_the_key_names_every_field_of_a_cell_in_the_order_of_the_csvs() -> None:
    assert CELL_KEY == ("operation", "mode", "rows", "width", "dtype", "parameter_dtype", "autocast", "cache")


def test_a_key_is_the_fields_as_text_with_an_empty_one_for_what_is_absent() -> None:
    cell = make_cell(mode=Mode.FORWARD_BACKWARD, rows=2048, width=256, dtype=DType.BF16)

    assert cell.key == ("norm", "forward-backward", "2048", "256", "bf16", "bf16", "", "warm")


@given(CELLS, CELLS)
def test_two_cells_have_the_same_key_exactly_when_they_are_equal(one: Cell, other: Cell) -> None:
    assert (one.key == other.key) == (one == other)


def test_a_cell_counts_its_elements() -> None:
    assert make_cell(rows=2048, width=256).elements == 524288


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "12×64 fp32 forward warm"),
        ({"parameter_dtype": DType.BF16}, "12×64 fp32 forward parameters bf16 warm"),
        ({"operation": Operation.ADD_NORM}, "add-norm 12×64 fp32 forward warm"),
        ({"autocast": DType.FP16, "cache": Cache.COLD}, "12×64 fp32 forward autocast fp16 cold"),
    ],
)
def test_a_cell_reads_as_its_shape_and_dtype_and_only_what_is_out_of_the_ordinary(
    changes: dict[str, object], text: str
) -> None:
    assert str(make_cell(**changes)) == text


def test_a_cell_cannot_be_changed() -> None:
    cell = make_cell()

    with pytest.raises(FrozenInstanceError):
        cell.width = 128  # type: ignore[misc]


@pytest.mark.parametrize(
    ("op", "gain", "bias"), [(Op.COPY, False, False), (Op.RMSNORM, True, False), (Op.LAYERNORM, True, True)]
)
def test_only_layernorm_has_a_bias_and_only_the_copy_has_no_gain(op: Op, gain: bool, bias: bool) -> None:
    assert (op.has_gain, op.has_bias) == (gain, bias)


@pytest.mark.parametrize(
    ("mode", "differentiates", "returns_output"),
    [
        (Mode.FORWARD, False, True),
        (Mode.INFERENCE, False, True),
        (Mode.BACKWARD, True, False),
        (Mode.FORWARD_BACKWARD, True, True),
    ],
)
def test_a_mode_says_whether_gradients_and_whether_y_are_computed(
    mode: Mode, differentiates: bool, returns_output: bool
) -> None:
    assert (mode.differentiates, mode.returns_output) == (differentiates, returns_output)


@pytest.mark.parametrize("dtype", list(DType))
def test_what_a_dtype_says_of_its_format_is_what_torch_says(dtype: DType) -> None:
    info = torch.finfo(torch_dtype(dtype))

    assert dtype.itemsize * 8 == info.bits
    assert dtype.roundoff * 2 == info.eps
    assert dtype.smallest == info.tiny * info.eps


@pytest.mark.parametrize("dtype", list(DType))
def test_the_roundoff_is_half_the_distance_from_1_to_the_next_number(dtype: DType) -> None:
    one = torch.ones((), dtype=torch.float64)

    assert float((one + dtype.roundoff).to(torch_dtype(dtype))) == 1.0
    assert float((one + dtype.roundoff * 1.01).to(torch_dtype(dtype))) > 1.0


@pytest.mark.parametrize("path", ["a", "a/b.json.gz", "./a", "a..b", "…/a"])
def test_a_path_below_leads_below(path: str) -> None:
    assert is_below(path)


@pytest.mark.parametrize("path", ["/a", "..", "../a", "a/../b", "a/..", "a\\b", "a\0"])
def test_a_path_that_may_lead_elsewhere_is_none_below(path: str) -> None:
    assert not is_below(path)
