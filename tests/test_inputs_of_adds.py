"""Values and placements of a residual add and norm."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from normbench.inputs import OF_ROWS, Operands, Placer, draw, draw_probes
from normbench.records import DType, Mode, Op, Operation
from tests.helpers import CPU, make_cell

BACKWARD = make_cell(operation=Operation.ADD_NORM, mode=Mode.BACKWARD)
OPS = (Op.ADD_COPY, Op.ADD_LAYERNORM, Op.ADD_RMSNORM)


def the_residual(operands: Operands) -> torch.Tensor:
    assert operands.residual is not None
    return operands.residual


def placed(*, shared: bool = False, gradients: bool = True, ops: tuple[Op, ...] = OPS) -> tuple[Operands, ...]:
    values = draw(BACKWARD, 0, CPU)
    return Placer(values, ops, gradients=gradients, shared=shared, seed=0).place().operands


def test_only_cells_with_a_residual_have_one_and_only_with_gradients_one_arrives_for_the_new_one() -> None:
    norm, forward = draw(make_cell(mode=Mode.BACKWARD), 0, CPU), draw(replace(BACKWARD, mode=Mode.FORWARD), 0, CPU)
    assert (norm.residual, norm.dh, forward.dh) == (None, None, None)
    assert the_residual(forward).shape == forward.x.shape


@pytest.mark.parametrize("dtype", list(DType))
def test_everything_that_has_rows_has_the_format_of_x_and_values_of_its_own(dtype: DType) -> None:
    values = draw(replace(BACKWARD, dtype=dtype), 0, CPU)
    found = [getattr(values, name) for name in OF_ROWS]
    assert len({(t.shape, t.dtype) for t in found}) == 1
    assert not any(torch.equal(one, other) for n, one in enumerate(found) for other in found[:n])


def test_the_residual_differs_from_x_in_mean_and_spread_and_so_does_their_sum() -> None:
    values = draw(replace(BACKWARD, rows=512, width=1024), 0, CPU)
    residual = the_residual(values)
    found = [(float(t.mean()), float(t.std())) for t in (values.x, residual, values.x + residual)]
    assert found == [pytest.approx(right, abs=0.02) for right in ((0.5, 1.0), (1.0, 2.0), (1.5, 5**0.5))]


def test_a_norms_values_do_not_depend_on_whether_others_have_a_residual() -> None:
    """The draws of a residual are its own: x, dy and the parameters come from the same seed in the same order."""
    cell = make_cell(mode=Mode.BACKWARD)
    generator = torch.Generator().manual_seed(draw_seed(cell))
    x = torch.randn((cell.rows, cell.width), generator=generator).add_(0.5)
    dy = torch.randn((cell.rows, cell.width), generator=generator)
    values = draw(cell, 0, CPU)
    assert torch.equal(values.x, x)
    assert torch.equal(values.dy, dy)  # type: ignore[arg-type]
    adding = draw(BACKWARD, 0, CPU)
    again = torch.Generator().manual_seed(draw_seed(BACKWARD))
    assert torch.equal(adding.x, torch.randn(x.shape, generator=again).add_(0.5))
    assert torch.equal(adding.dy, torch.randn(x.shape, generator=again))  # type: ignore[arg-type]


def draw_seed(cell: object) -> int:
    from normbench.inputs import cell_seed

    return cell_seed(0, cell, "values")  # type: ignore[arg-type]


def test_the_probes_make_the_sum_hard() -> None:
    values = draw(replace(BACKWARD, rows=9, width=256, dtype=DType.FP16), 0, CPU)
    (probe,) = draw_probes(values)
    sums = probe.x.float() + the_residual(probe).float()
    assert bool((sums[0::3].square().amax(1) > torch.finfo(torch.float16).max).all())
    assert bool((sums[1::3].square().mean(1) < 2e-5).all())
    assert bool(the_residual(probe)[1::3].any())
    assert not bool(sums[2::3].any())
    assert bool(sums.half().isfinite().all())


def test_where_all_is_float32_the_sum_has_a_large_mean_and_a_small_spread_too() -> None:
    *_others, last = draw_probes(draw(replace(BACKWARD, rows=20, width=256), 0, CPU), offset=True)
    sums = last.x + the_residual(last)
    assert bool((sums.mean(1) > 1000 * sums.std(1)).all())
    assert bool((sums.std(1) > 0.1).all())


@pytest.mark.parametrize(
    ("op", "names"),
    [
        (Op.ADD_COPY, ("x", "residual")),
        (Op.ADD_RMSNORM, ("x", "residual", "gain")),
        (Op.ADD_LAYERNORM, ("x", "residual", "gain", "bias")),
        (Op.LAYERNORM, ("x", "gain", "bias")),
    ],
)
def test_gradients_are_taken_of_x_of_the_residual_and_of_the_parameters(op: Op, names: tuple[str, ...]) -> None:
    operands = draw(BACKWARD, 0, CPU).of(op)
    assert [t.data_ptr() for t in operands.differentiable] == [getattr(operands, n).data_ptr() for n in names]
    assert (operands.dh is None) is not op.adds


@pytest.mark.parametrize("gradients", [False, True])
def test_x_and_residual_are_leaves_that_require_gradients_where_they_are_asked_for(gradients: bool) -> None:
    for operands in placed(gradients=gradients):
        for tensor in operands.inputs:
            assert (tensor.is_leaf, tensor.requires_grad) == (True, gradients)
        assert operands.dh is not None
        assert not operands.dh.requires_grad


def test_everyone_gets_equal_values_and_only_the_floors_two_inputs_share_a_piece_of_memory() -> None:
    values = draw(BACKWARD, 0, CPU)
    everyone = placed()
    for operands in everyone:
        assert all(torch.equal(getattr(operands, name), getattr(values, name)) for name in OF_ROWS)
    floor, *others = everyone
    blocks = [
        t.untyped_storage().data_ptr() for o in others for name in OF_ROWS if (t := getattr(o, name)) is not None
    ]
    assert len(set(blocks)) == 8
    assert len({tensor.untyped_storage().data_ptr() for tensor in floor.inputs}) == 1
    assert floor.x.untyped_storage().data_ptr() not in blocks


def test_where_memory_is_short_one_x_one_residual_and_what_arrives_for_both_are_everybodys() -> None:
    first, *others = placed(shared=True)
    for operands in others:
        assert all(getattr(operands, name) is getattr(first, name) for name in OF_ROWS)


def test_what_is_made_of_the_rows_leaves_parameters_and_what_is_absent_alone() -> None:
    values = draw(replace(BACKWARD, mode=Mode.FORWARD), 0, CPU)
    changed = values.map_rows(lambda tensor: tensor[:2])
    assert (changed.x.shape[0], the_residual(changed).shape[0]) == (2, 2)
    assert (changed.dy, changed.dh) == (None, None)
    assert changed.gain is values.gain
