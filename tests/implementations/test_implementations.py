from __future__ import annotations

import pytest
import torch

from normbench import compilation, correctness, implementations
from normbench.implementations import Implementation, eager, nn
from normbench.inputs import Operands, draw
from normbench.records import DType, Mode, Op, Operation
from tests.helpers import BOTH, CPU, EPS, EVERY, cell_for, check, make_cell, results_of

NORMS = [i for i in EVERY if i.op is not Op.COPY]
LAYERNORMS = [i for i in EVERY if i.op is Op.LAYERNORM]
RMSNORMS = [i for i in EVERY if i.op is Op.RMSNORM]

every = pytest.mark.parametrize("implementation", BOTH, ids=lambda i: i.name)
every_norm = pytest.mark.parametrize("implementation", NORMS, ids=lambda i: i.name)
every_layernorm = pytest.mark.parametrize("implementation", LAYERNORMS, ids=lambda i: i.name)
every_rmsnorm = pytest.mark.parametrize("implementation", RMSNORMS, ids=lambda i: i.name)


@pytest.fixture(autouse=True)
def _forget_graphs() -> None:
    compilation.reset()


def plain(x: torch.Tensor) -> Operands:
    """Values of x with a gain of ones and a bias of zeros."""
    width = x.shape[-1]
    return Operands(x=x, dy=None, gain=torch.ones(width), bias=torch.zeros(width))


def forward(implementation: Implementation, values: Operands, eps: float = EPS) -> torch.Tensor:
    rows, width = values.x.shape
    return results_of(implementation, make_cell(rows=rows, width=width), values, eps)["y"].detach()


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("width", [1, 3, 64, 1000, 4096])
@pytest.mark.parametrize("mode", [Mode.FORWARD, Mode.BACKWARD])
@every
def test_every_implementation_agrees_with_float64_forward_and_in_every_gradient(
    implementation: Implementation, mode: Mode, width: int, dtype: DType
) -> None:
    cell = cell_for(implementation, rows=17, width=width, dtype=dtype, mode=mode)

    assert check(implementation, cell).problem is None


@pytest.mark.parametrize("mode", [Mode.INFERENCE, Mode.FORWARD_BACKWARD])
@every
def test_inference_and_both_passes_in_one_call_are_right_too(implementation: Implementation, mode: Mode) -> None:
    assert check(implementation, cell_for(implementation, rows=17, width=1000, mode=mode)).problem is None


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("implementation", [eager.LAYERNORM, eager.RMSNORM, nn.RMSNORM], ids=lambda i: i.name)
def test_many_rows_of_few_columns_are_right_though_their_errors_do_not_cancel(
    implementation: Implementation, width: int, dtype: DType
) -> None:
    for seed in range(5):
        cell = make_cell(rows=2048, width=width, dtype=dtype, mode=Mode.FORWARD_BACKWARD)

        assert check(implementation, cell, draw(cell, seed, CPU)).problem is None


@pytest.mark.parametrize("mode", [Mode.FORWARD, Mode.FORWARD_BACKWARD])
@every
def test_parameters_in_float32_beside_activations_in_half_precision_are_right_too(
    implementation: Implementation, mode: Mode
) -> None:
    cell = cell_for(implementation, rows=64, width=256, dtype=DType.BF16, parameter_dtype=DType.FP32, mode=mode)

    assert check(implementation, cell).problem is None


@every_layernorm
def test_layernorm_of_a_constant_is_its_bias(implementation: Implementation) -> None:
    values = draw(make_cell(rows=3, width=64), 0, CPU)
    constant = Operands(x=torch.full((3, 64), 4.0), dy=None, gain=values.gain, bias=values.bias)

    assert values.bias is not None
    torch.testing.assert_close(forward(implementation, constant), values.bias.expand(3, 64), rtol=0, atol=1e-6)


@pytest.mark.parametrize("constant", [4.0, -4.0])
@every_rmsnorm
def test_rmsnorm_of_a_constant_is_its_gain_with_the_constant_s_sign(
    implementation: Implementation, constant: float
) -> None:
    gain = draw(make_cell(rows=3, width=64), 0, CPU).gain
    y = forward(implementation, Operands(x=torch.full((3, 64), constant), dy=None, gain=gain, bias=None))

    assert gain is not None
    torch.testing.assert_close(y, (gain if constant > 0 else -gain).expand(3, 64), rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("op", "right"),
    [(Op.LAYERNORM, [-1.224744, 0.0, 1.224744]), (Op.RMSNORM, [0.462910, 0.925820, 1.388730])],
)
def test_1_2_3_gives_what_the_formula_gives_by_hand(op: Op, right: list[float]) -> None:
    for implementation in (i for i in NORMS if i.op is op):
        y = forward(implementation, plain(torch.tensor([[1.0, 2.0, 3.0]])), eps=1e-12)

        torch.testing.assert_close(y, torch.tensor([right]), rtol=0, atol=2e-6)


@every_norm
def test_zeros_stay_zeros_without_a_bias(implementation: Implementation) -> None:
    assert torch.equal(forward(implementation, plain(torch.zeros(3, 64))), torch.zeros(3, 64))


@every_layernorm
def test_adding_a_constant_leaves_layernorm_as_it_is(implementation: Implementation) -> None:
    values = draw(make_cell(rows=8, width=64), 0, CPU)
    shifted = Operands(x=values.x + 3, dy=None, gain=values.gain, bias=values.bias)

    torch.testing.assert_close(forward(implementation, shifted), forward(implementation, values), rtol=0, atol=1e-5)


@every_rmsnorm
def test_adding_a_constant_moves_rmsnorm(implementation: Implementation) -> None:
    x = draw(make_cell(rows=8, width=64), 0, CPU).x
    moved = forward(implementation, plain(x + 3)) - forward(implementation, plain(x))

    assert bool((moved.abs().amax(-1) > 0.5).all())


@pytest.mark.parametrize("factor", [0.01, 3.0, 1000.0])
@every_norm
def test_scaling_changes_nothing_as_far_as_eps_allows(implementation: Implementation, factor: float) -> None:
    x = draw(make_cell(rows=8, width=64), 0, CPU).x

    torch.testing.assert_close(
        forward(implementation, plain(x * factor), eps=1e-12),
        forward(implementation, plain(x), eps=1e-12),
        rtol=1e-5,
        atol=1e-6,
    )


@every_norm
def test_where_eps_is_as_large_as_the_square_a_row_comes_out_smaller(implementation: Implementation) -> None:
    signs = torch.tensor([1.0, -1.0]).repeat(32)
    y = forward(implementation, plain((1e-3 * signs).expand(2, 64)), eps=1e-6)

    torch.testing.assert_close(y, (signs / 2**0.5).expand(2, 64), rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", list(DType))
@every
def test_no_row_sees_another(implementation: Implementation, dtype: DType) -> None:
    cell = cell_for(implementation, rows=16, width=64, dtype=dtype, mode=Mode.FORWARD_BACKWARD)
    values = draw(cell, 0, CPU)
    changed = values.map_rows(torch.Tensor.clone)
    for tensor in changed.inputs:
        tensor[5] = 7.0 - 2 * tensor[5]
    before = results_of(implementation, cell, values)
    after = results_of(implementation, cell, changed)

    others = [row for row in range(16) if row != 5]
    for name in before.keys() & set(correctness.OF_ROWS):
        assert torch.equal(before[name][others], after[name][others])
        assert not torch.equal(before[name][5], after[name][5])


@every
def test_an_implementation_leaves_its_inputs_as_they_are_unless_it_says_otherwise(
    implementation: Implementation,
) -> None:
    cell = cell_for(implementation, mode=Mode.FORWARD_BACKWARD)
    values = draw(cell, 0, CPU)
    first, second = (results_of(implementation, cell, values) for _ in range(2))

    assert implementation.mutates is False
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_names_are_provider_and_formula_and_none_stands_twice() -> None:
    assert len(set(implementations.NAMES)) == len(implementations.ALL)
    for implementation in implementations.ALL:
        assert implementation.op.is_floor or implementation.name == f"{implementation.provider}-{implementation.op}"


def test_the_names_of_the_contract_are_there_in_the_order_of_the_reports() -> None:
    assert implementations.NAMES == (
        "copy",
        "eager-layernorm",
        "eager-rmsnorm",
        "nn-layernorm",
        "nn-rmsnorm",
        "compile-layernorm",
        "compile-rmsnorm",
        "add-copy",
        "eager-add-layernorm",
        "eager-add-rmsnorm",
        "nn-add-layernorm",
        "nn-add-rmsnorm",
        "compile-add-layernorm",
        "compile-add-rmsnorm",
    )


def test_every_name_is_of_one_operation_whose_floor_comes_first_and_whose_baseline_is_among_them() -> None:
    of_each = {operation: implementations.names_of(operation) for operation in Operation}
    assert sorted(name for names in of_each.values() for name in names) == sorted(implementations.NAMES)
    for operation, names in of_each.items():
        found = [implementations.by_name(name) for name in names]
        assert [one.op.is_floor for one in found] == [True] + [False] * (len(names) - 1)
        assert {one.op.operation for one in found} == {operation}
        assert operation.baseline in names[1:]


@pytest.mark.parametrize("implementation", implementations.ALL, ids=lambda i: i.name)
def test_an_implementation_is_found_by_its_name_and_described_in_one_line(implementation: Implementation) -> None:
    assert implementations.by_name(implementation.name) is implementation
    info = implementation.info
    assert (info.name, info.op, info.compiled) == (implementation.name, implementation.op, implementation.compiled)
    assert info.summary
    assert "\n" not in info.summary


def test_compiled_are_those_of_torch_compile_and_no_other() -> None:
    assert {i.name for i in implementations.ALL if i.compiled} == {
        name for name in implementations.NAMES if name.startswith("compile-")
    }


def test_a_name_that_nobody_has_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="nobodys-rmsnorm"):
        implementations.by_name("nobodys-rmsnorm")
