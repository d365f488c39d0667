from __future__ import annotations

from typing import Any

import pytest
import torch

from normbench.device import torch_dtype
from normbench.inputs import Operands, Placement, Placer, cell_seed, draw, draw_probes
from normbench.records import Cache, Cell, DType, Mode, Op
from tests.helpers import CPU, make_cell

BACKWARD = make_cell(mode=Mode.BACKWARD, rows=64, width=256)
OPS = (Op.COPY, Op.LAYERNORM, Op.RMSNORM)


def tensors(operands: Operands) -> list[torch.Tensor]:
    return [t for t in (operands.x, operands.dy, operands.gain, operands.bias) if t is not None]


def addresses(placement: Placement) -> set[int]:
    return {t.data_ptr() for operands in placement.operands for t in tensors(operands)}


def make_placer(cell: Cell = BACKWARD, **changes: Any) -> Placer:
    options: dict[str, Any] = {"ops": OPS, "gradients": True, "shared": False, "seed": 0}
    return Placer(draw(cell, 0, CPU), **{**options, **changes})


def test_the_same_seed_gives_the_same_values() -> None:
    one, other = draw(BACKWARD, 3, CPU), draw(BACKWARD, 3, CPU)

    assert len(tensors(one)) == 4
    assert all(torch.equal(a, b) for a, b in zip(tensors(one), tensors(other), strict=True))


@pytest.mark.parametrize(
    ("cell", "seed"),
    [(BACKWARD, 1), (make_cell(mode=Mode.FORWARD_BACKWARD, rows=64, width=256), 0)],
    ids=["another seed", "another cell"],
)
def test_another_seed_and_another_cell_of_the_same_shape_give_other_values(cell: Cell, seed: int) -> None:
    here, there = draw(BACKWARD, 0, CPU), draw(cell, seed, CPU)

    assert not any(torch.equal(a, b) for a, b in zip(tensors(here), tensors(there), strict=True))


def test_a_seed_is_the_same_on_every_machine_and_differs_by_purpose() -> None:
    # The first four bytes of SHA-256 of "0||norm|forward|12|64|fp32|fp32||warm", and of "0|order|norm|…".
    assert cell_seed(0, make_cell()) == 0x62E3F243
    assert cell_seed(0, make_cell(), "order") == 0xF6B7BBE0


@pytest.mark.parametrize("field", [{"cache": Cache.COLD}, {"autocast": DType.BF16}, {"rows": 13}])
def test_every_field_of_a_cell_changes_its_seed(field: dict[str, Any]) -> None:
    assert cell_seed(0, make_cell(**field)) != cell_seed(0, make_cell())


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("parameter_dtype", list(DType))
def test_activations_and_parameters_have_the_shapes_and_dtypes_of_the_cell(
    dtype: DType, parameter_dtype: DType
) -> None:
    cell = make_cell(mode=Mode.BACKWARD, rows=5, width=7, dtype=dtype, parameter_dtype=parameter_dtype)
    x, dy, gain, bias = tensors(draw(cell, 0, CPU))

    assert {(t.shape, t.dtype) for t in (x, dy)} == {((5, 7), torch_dtype(dtype))}
    assert {(t.shape, t.dtype) for t in (gain, bias)} == {((7,), torch_dtype(parameter_dtype))}


@pytest.mark.parametrize("mode", [Mode.FORWARD, Mode.INFERENCE])
def test_a_mode_without_gradients_has_no_dy(mode: Mode) -> None:
    assert draw(make_cell(mode=mode), 0, CPU).dy is None


def test_the_values_show_what_is_left_out() -> None:
    values = draw(make_cell(rows=512, width=1024), 0, CPU)

    assert values.gain is not None
    assert values.bias is not None
    assert float(values.x.mean()) == pytest.approx(0.5, abs=0.01)
    assert (float(values.gain.mean()), float(values.gain.std())) == pytest.approx((1.0, 0.25), abs=0.03)
    assert (float(values.bias.mean()), float(values.bias.std())) == pytest.approx((0.0, 0.25), abs=0.03)


def test_the_probe_s_rows_overflow_float16_when_squared_or_are_ruled_by_eps_or_are_zero() -> None:
    values = draw(make_cell(rows=9, width=256, dtype=DType.FP16), 0, CPU)
    probe = next(draw_probes(values))
    squares = probe.x.float().square()

    assert bool((squares[0::3].amax(1) > torch.finfo(torch.float16).max).all())
    assert bool((squares[1::3].mean(1) < 2e-6).all())
    assert not bool(probe.x[2::3].any())
    assert bool(probe.x.isfinite().all())
    assert probe.gain is values.gain


@pytest.mark.parametrize(("rows", "probes"), [(1, 3), (2, 2), (3, 1), (100, 1)])
def test_every_kind_of_hard_row_is_tried_however_few_rows_there_are(rows: int, probes: int) -> None:
    found = list(draw_probes(draw(make_cell(rows=rows, width=256, dtype=DType.FP16), 0, CPU)))
    sizes = torch.cat([probe.x.float().abs().amax(1) for probe in found])

    assert len(found) == probes
    assert bool((sizes > 256).any())
    assert bool(((sizes > 0) & (sizes < 1e-2)).any())
    assert bool((sizes == 0).any())


def test_where_all_is_float32_rows_of_a_large_mean_and_a_small_spread_come_last() -> None:
    values = draw(make_cell(rows=100, width=256), 0, CPU)
    *others, last = draw_probes(values, offset=True)

    assert len(others) == len(list(draw_probes(values))) == 1
    assert bool((last.x.mean(1) > 1000 * last.x.std(1)).all())
    assert bool((last.x.std(1) > 0.1).all())


@pytest.mark.parametrize(("op", "names"), [(Op.COPY, ()), (Op.RMSNORM, ("gain",)), (Op.LAYERNORM, ("gain", "bias"))])
def test_gradients_are_taken_of_x_and_of_the_parameters_a_formula_has(op: Op, names: tuple[str, ...]) -> None:
    operands = draw(BACKWARD, 0, CPU).of(op)

    assert all(
        a is b
        for a, b in zip(operands.differentiable, (operands.x, *(getattr(operands, n) for n in names)), strict=True)
    )


def test_every_implementation_of_a_placement_gets_equal_values_in_storage_of_its_own() -> None:
    values = draw(BACKWARD, 0, CPU)
    placement = make_placer().place()

    for op, operands in zip(OPS, placement.operands, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(tensors(operands), tensors(values.of(op)), strict=True))
    everything = [t for operands in (*placement.operands, values) for t in tensors(operands)]
    assert len({t.data_ptr() for t in everything}) == len(everything) == 2 + 4 + 3 + 4


def test_a_new_placement_lies_at_new_addresses_while_the_old_one_is_alive() -> None:
    placer = make_placer()
    seen: set[int] = set()
    old = None
    for _ in range(5):
        new = placer.place()
        assert old is None or not addresses(new) & addresses(old)
        seen |= addresses(new)
        old = new

    assert len(seen) > len(addresses(new))


def test_other_memory_is_touched_before_a_placement_and_half_of_it_is_free_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    touched: list[int] = []
    ones = torch.ones

    def counting(*size: int, **options: Any) -> torch.Tensor:
        touched.extend(size)
        return ones(*size, **options)

    monkeypatch.setattr(torch, "ones", counting)
    placement = make_placer().place()
    kept = sum(bool(pad.all()) and pad.numel() in touched for pad in placement.padding[: len(touched) // 2])

    assert len(touched) >= 2
    assert kept == len(touched) // 2


def test_the_padding_is_drawn_by_the_seed() -> None:
    def sizes(seed: int) -> list[int]:
        return [pad.numel() for pad in make_placer(seed=seed).place().padding]

    assert sizes(1) == sizes(1)
    assert sizes(1) != sizes(2)
    assert len(set(sizes(1))) > 1


def test_the_padding_differs_from_one_placement_to_the_next() -> None:
    placer = make_placer()
    one, other = placer.place(), placer.place()

    assert [pad.numel() for pad in one.padding] != [pad.numel() for pad in other.padding]


def test_what_one_implementation_writes_into_its_tensors_reaches_nobody_else() -> None:
    values = draw(BACKWARD, 0, CPU)
    before = [t.clone() for t in tensors(values)]
    placer = Placer(values, OPS, gradients=False, shared=False, seed=0)
    first, *others = placer.place().operands
    for tensor in tensors(first):
        tensor.fill_(float("nan"))

    later = placer.place().operands
    assert not any(bool(t.isnan().any()) for operands in (*others, *later) for t in tensors(operands))
    assert all(torch.equal(t, old) for t, old in zip(tensors(values), before, strict=True))


def test_where_memory_is_short_x_and_dy_are_shared_and_the_parameters_are_not() -> None:
    _, layernorm, rmsnorm = make_placer(shared=True).place().operands

    assert layernorm.x is rmsnorm.x
    assert layernorm.dy is rmsnorm.dy
    assert layernorm.gain is not None
    assert rmsnorm.gain is not None
    assert layernorm.gain.data_ptr() != rmsnorm.gain.data_ptr()
    assert torch.equal(layernorm.gain, rmsnorm.gain)


def test_shared_inputs_too_lie_at_new_addresses_in_the_next_placement() -> None:
    placer = make_placer(shared=True)
    one, other = placer.place(), placer.place()

    assert not addresses(one) & addresses(other)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("gradients", [False, True])
def test_x_and_the_parameters_require_gradients_where_they_are_asked_for_and_dy_never(
    gradients: bool, shared: bool
) -> None:
    _, operands, _ = make_placer(gradients=gradients, shared=shared).place().operands
    x, dy, gain, bias = tensors(operands)

    assert [t.requires_grad for t in (x, dy, gain, bias)] == [gradients, False, gradients, gradients]
    assert all(isinstance(t, torch.nn.Parameter) for t in (gain, bias))
    assert x.is_leaf
