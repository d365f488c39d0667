"""What is right is never called wrong, by whatever arithmetic it is; and what is known of torch's own is found."""

from __future__ import annotations

import pytest

from normbench.implementations import Implementation, eager, naive, nn
from normbench.records import Check, DType, Mark, Op, Output, Property
from tests.faults import in_one_pass
from tests.properties.asking import examined, failing
from tests.right_norms import FINE, STORING, WIDE, implementation

OVERFLOW = {Property.FP32_SQUARES_OVERFLOW}
HALVES = [DType.BF16, DType.FP16]
NARROW = (1, 2, 3, 5, 7, 8, 31, 64)
OPS = [Op.LAYERNORM, Op.RMSNORM]

IN_FLOAT32 = (
    *(implementation(op, name, make(op)) for name, make in FINE.items() for op in OPS),
    *(eager.LAYERNORM, eager.RMSNORM, nn.RMSNORM),
)
"""Right but where the square of an x overflows float32."""
IN_MORE = tuple(implementation(op, name, make(op)) for name, make in WIDE.items() for op in OPS)
STORED = tuple(implementation(op, name, make(op)) for name, make in STORING.items() for op in OPS)


def overflowing(dtype: DType) -> set[Property]:
    return set() if dtype is DType.FP16 else OVERFLOW


def wrong(checks: list[Check]) -> dict[Property, set[Output | None]]:
    """Which outputs of which properties."""
    found: dict[Property, set[Output | None]] = {}
    for check in checks:
        if check.mark is Mark.FAIL:
            found.setdefault(check.property, set()).add(check.output)
    return found


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("one", IN_FLOAT32, ids=lambda i: i.name)
def test_float32_inside_is_right_but_where_its_squares_overflow(one: Implementation, dtype: DType) -> None:
    assert failing(examined([one], dtypes=(dtype,), seed=1)) == overflowing(dtype)


@pytest.mark.parametrize("one", IN_MORE, ids=lambda i: i.name)
def test_who_scales_or_computes_in_float64_passes_everything(one: Implementation) -> None:
    assert failing(examined([one], dtypes=tuple(DType), seed=1)) == set()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("one", STORED, ids=lambda i: i.name)
def test_a_root_stored_in_half_precision_is_right_where_it_fits(one: Implementation, dtype: DType) -> None:
    assert failing(examined([one], dtypes=(dtype,), seed=1)) == overflowing(dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("eps", "seed"), [(1e-3, 20), (1e-5, 24), (1e-6, 28), (1e-8, 32), (1e-12, 36)])
@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("one", [*IN_FLOAT32, *IN_MORE], ids=lambda i: i.name)
def test_what_is_right_is_so_whatever_the_values_and_eps(
    one: Implementation, dtype: DType, eps: float, seed: int
) -> None:
    right = overflowing(dtype) if one in IN_FLOAT32 else set()
    for each in range(seed, seed + 4):
        assert failing(examined([one], dtypes=(dtype,), widths=NARROW, eps=eps, seed=each)) == right, each


@pytest.mark.slow
@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("one", [i for i in (*IN_FLOAT32, *IN_MORE) if "welford" not in i.name], ids=lambda i: i.name)
def test_what_is_right_is_so_in_wide_rows(one: Implementation, dtype: DType) -> None:
    right = overflowing(dtype) if one in IN_FLOAT32 else set()

    assert failing(examined([one], dtypes=(dtype,), widths=(1000, 4096), seed=2)) == right


@pytest.mark.slow
@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("one", [eager.LAYERNORM, eager.RMSNORM, nn.RMSNORM], ids=lambda i: i.name)
def test_what_is_right_is_so_in_the_widest_rows(one: Implementation, dtype: DType) -> None:
    assert failing(examined([one], dtypes=(dtype,), widths=(65536,), seed=2)) == overflowing(dtype)


@pytest.mark.parametrize("dtype", HALVES)
def test_torch_s_layernorm_on_a_cpu_keeps_its_mean_in_half_precision_which_a_large_offset_shows(dtype: DType) -> None:
    found = wrong(examined([nn.LAYERNORM], dtypes=(dtype,)))

    assert set(found) == {Property.LARGE_OFFSET} | overflowing(dtype)
    assert found[Property.LARGE_OFFSET] == {Output.DGAIN}


@pytest.mark.parametrize("dtype", list(DType))
def test_its_gradients_are_as_exact_as_that_elsewhere_which_is_marked(dtype: DType) -> None:
    coarse = {check.output for check in examined([nn.LAYERNORM], dtypes=(dtype,)) if check.coarse}

    assert (Output.DX in coarse) is (dtype is not DType.FP32)
    assert Output.Y not in coarse


def test_one_pass_over_x_is_found_in_every_format_where_its_variance_is_lost() -> None:
    """Of half precision's numbers float32 loses it where the spread is a step of few among many."""
    one = implementation(Op.LAYERNORM, "one-pass", in_one_pass(Op.LAYERNORM))
    for dtype, width in ((DType.FP32, 3), (DType.FP32, 64), (DType.FP16, 64), (DType.BF16, 1000), (DType.BF16, 4096)):
        found = failing(examined([one], dtypes=(dtype,), widths=(width,)))
        assert Property.LARGE_OFFSET in found, (dtype, width)
        assert found <= {Property.LARGE_OFFSET, Property.CONSTANT_ROWS, Property.SHIFT_INVARIANCE} | OVERFLOW


def test_torch_s_layernorm_on_a_cpu_refuses_half_precision_parameters_beside_a_float32_x() -> None:
    checks = examined([nn.LAYERNORM])
    refused = {check.reason for check in checks if check.property is Property.MIXED_PARAMETERS}

    assert failing(checks) == {Property.MIXED_PARAMETERS} | OVERFLOW
    assert len(refused) == 1
    assert str(refused.pop()).startswith("RuntimeError: mixed dtype (CPU)")


@pytest.mark.parametrize("width", [1, 3, 64, 1000])
def test_a_chain_in_fp16_gives_a_wrong_y_and_dgain_exactly_where_squares_overflow(width: int) -> None:
    found = wrong(examined([naive.RMSNORM], dtypes=(DType.FP16,), widths=(width,)))

    for output in (Output.Y, Output.DGAIN):
        assert {one for one, outputs in found.items() if output in outputs} == {Property.FP16_SQUARES_OVERFLOW}


@pytest.mark.parametrize("width", [1, 3, 64, 1000])
def test_its_dx_is_wrong_too_where_the_cube_of_the_root_s_reciprocal_leaves_fp16(width: int) -> None:
    """Of 1000 and more it is too large, of 1 ÷ 50 and less it has no bits left."""
    found = wrong(examined([naive.RMSNORM], dtypes=(DType.FP16,), widths=(width,)))
    small = {"zeros", "tiny-values", "subnormals", "eps-inside-root", "eps-rules"}
    large = {"large-values", "large-offset", "constant-rows"} | ({"outlier"} if width < 8 else set())

    assert {one for one, outputs in found.items() if Output.DX in outputs} == {
        *map(Property, small | large),
        Property.FP16_SQUARES_OVERFLOW,
    }


def test_the_same_chain_in_bf16_is_right() -> None:
    assert failing(examined([naive.RMSNORM], dtypes=(DType.BF16,))) == OVERFLOW


@pytest.mark.parametrize(("eps", "fails"), [(1e-6, False), (1e-8, True)])
def test_a_chain_in_fp16_has_no_eps_left_where_that_is_below_its_smallest_number(eps: float, fails: bool) -> None:
    checks = examined([naive.RMSNORM], dtypes=(DType.FP16,), eps=eps, properties=(Property.ZEROS,))
    y = [check for check in checks if check.output is Output.Y]

    assert [check.mark is Mark.FAIL for check in y] == [fails] * 3
    assert all("is nan, not 0" in str(check.reason) for check in y if fails)
    assert failing(examined([nn.RMSNORM], dtypes=(DType.FP16,), eps=eps, properties=(Property.ZEROS,))) == set()
