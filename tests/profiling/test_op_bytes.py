"""Op bytes are exact integers: N09's figures come out to the byte."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from normbench import traffic
from normbench.implementations import eager
from normbench.profiling.op_bytes import count, merged, touched_bytes
from normbench.records import DType, Op, OpTraffic
from tests.helpers import make_cell

M, N = 2048, 256
MN = M * N


def tensors(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """x, gain, bias and dy."""
    x, gain, bias, dy = (torch.randn(*shape, dtype=dtype) for shape in ((M, N), (N,), (N,), (M, N)))
    return x.requires_grad_(), gain.requires_grad_(), bias.requires_grad_(), dy


def sizes(ops: tuple[OpTraffic, ...]) -> tuple[int, int]:
    """Bytes and calls together."""
    return sum(op.bytes for op in ops), sum(op.calls for op in ops)


@pytest.mark.parametrize(
    ("dtype", "forward", "backward"),
    [
        (torch.float32, (14_730_240, 6), (48_318_464, 14)),
        (torch.float16, (18_924_032, 8), (48_317_440, 16)),
        (torch.bfloat16, (18_924_032, 8), (48_317_440, 16)),
    ],
)
def test_the_rmsnorm_chain_moves_what_was_counted_by_hand(
    dtype: torch.dtype, forward: tuple[int, int], backward: tuple[int, int]
) -> None:
    x, gain, _bias, dy = tensors(dtype)
    assert sizes(count(lambda: eager.rmsnorm(x, gain, None, 1e-6))) == forward
    y = eager.rmsnorm(x, gain, None, 1e-6)
    assert sizes(count(lambda: torch.autograd.grad(y, (x, gain), dy))) == backward


def test_the_chain_in_fp32_makes_seven_passes_and_little_more() -> None:
    x, gain, *_ = tensors(torch.float32)
    assert sizes(count(lambda: eager.rmsnorm(x, gain, None, 1e-6)))[0] == 4 * (7 * MN + 6 * M + N)


def test_layer_norm_is_one_op_whose_statistics_count_and_the_floors_do_not() -> None:
    x, gain, bias, dy = tensors(torch.float32)
    assert sizes(count(lambda: F.layer_norm(x, (N,), gain, bias, 1e-6))) == (4_212_736, 1)
    y = F.layer_norm(x, (N,), gain, bias, 1e-6)
    assert sizes(count(lambda: torch.autograd.grad(y, (x, gain, bias), dy))) == (6_311_936, 1)
    cell = make_cell(rows=M, width=N, dtype=DType.FP32)
    assert traffic.floor_bytes(Op.RMSNORM, cell) == 4_195_328


def test_the_layernorm_chain_has_nine_ops_in_fp32() -> None:
    x, gain, bias, _dy = tensors(torch.float32)
    ops = count(lambda: eager.layernorm(x, gain, bias, 1e-6))
    assert sum(op.calls for op in ops) == 9


X = torch.ones(8, 16)


@pytest.mark.parametrize(
    ("call", "moved"),
    [
        (lambda: X.view(16, 8).t().expand(8, 16)[:4], []),
        (lambda: X.clone().add_(1.0), [("clone", 512, 512), ("add_", 512, 512)]),
        (lambda: X.new_empty(8, 16).copy_(X), [("copy_", 512, 512)]),
        (lambda: torch.empty(8, 16).zero_(), [("zero_", 0, 512)]),
        (lambda: torch.zeros_like(X), [("zeros_like", 0, 512)]),
        (lambda: X + X, [("add", 512, 512)]),
        (lambda: X + torch.ones(16).expand(8, 16), [("ones", 0, 64), ("add", 512 + 64, 512)]),
        (lambda: X.sum(), [("sum", 512, 4)]),
    ],
    ids=["views", "in place", "copy", "fill", "shape only", "twice the same", "expanded", "reduction"],
)
def test_each_kind_of_op_counts_as_it_moves(call: Callable[[], object], moved: list[tuple[str, int, int]]) -> None:
    found = [(op.name, op.read_bytes, op.written_bytes) for op in count(call)]
    assert found == moved


def test_ops_of_one_name_are_summed_in_order_of_appearance() -> None:
    one = OpTraffic(name="mul", calls=1, bytes=3, read_bytes=2, written_bytes=1)
    other = OpTraffic(name="add", calls=1, bytes=5, read_bytes=4, written_bytes=1)
    assert merged([one, other, one]) == (
        OpTraffic(name="mul", calls=2, bytes=6, read_bytes=4, written_bytes=2),
        other,
    )


def test_memory_behind_a_dimension_of_stride_0_is_there_once() -> None:
    assert touched_bytes(torch.ones(1, 16).expand(1024, 16)) == 64
    assert touched_bytes(torch.ones(0, 16)) == 0
    assert touched_bytes(torch.ones(8, 16)[:, ::2]) == 8 * 8 * 4
