"""The chain that nothing but ``check`` offers: as it is first written down, and wrong in fp16."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from normbench import implementations
from normbench.implementations import ALL, NAMES, PACKAGED, catalog, checkable, copy, naive, nn
from normbench.records import DType, Op
from tests.helpers import EPS, aten_calls, check, make_cell, results_of


def test_it_is_right_in_float32_and_bf16() -> None:
    for dtype in (DType.FP32, DType.BF16):
        assert check(naive.RMSNORM, make_cell(rows=33, width=256, dtype=dtype)).problem is None


def test_it_is_six_ops_in_x_s_own_format() -> None:
    x, gain = torch.ones(3, 8).half(), torch.ones(8).half()

    assert aten_calls(lambda: naive.rmsnorm(x, gain, None, EPS)) == ["pow", "mean", "add", "rsqrt", "mul", "mul"]
    assert naive.rmsnorm(x, gain, None, EPS).dtype is torch.float16


def test_squares_of_256_and_more_are_infinite_in_fp16_and_y_is_0() -> None:
    for value, right in ((255.0, 1.0), (256.0, 0.0)):
        y = naive.rmsnorm(torch.full((1, 4), value).half(), torch.ones(4).half(), None, EPS)
        assert y.unique().tolist() == [right]


def test_only_check_offers_it() -> None:
    assert naive.RMSNORM in checkable(catalog())
    assert naive.RMSNORM not in ALL
    assert "naive-rmsnorm" not in NAMES
    assert implementations.chosen(["naive-rmsnorm"]) == ()
    with pytest.raises(KeyError):
        implementations.by_name("naive-rmsnorm")


def test_check_can_ask_every_norm_and_asks_all_that_are_meant_to_be_right() -> None:
    norms = tuple(one for one in (*ALL, *PACKAGED) if one.op in (Op.LAYERNORM, Op.RMSNORM))

    assert checkable(catalog()) == (*norms, naive.RMSNORM)
    assert catalog().norms == norms
    assert copy.COPY not in checkable(catalog())


def test_only_torch_s_modules_have_an_eps_of_their_own() -> None:
    assert {one.name: one.unset.eps for one in checkable(catalog()) if one.unset} == {
        "nn-layernorm": torch.nn.LayerNorm(1).eps,
        "nn-rmsnorm": torch.finfo(torch.float32).eps,
    }


def test_without_an_eps_torch_s_modules_do_not_add_the_setting_s() -> None:
    cell = make_cell(rows=2, width=8)
    for one in (nn.LAYERNORM, nn.RMSNORM):
        assert one.unset is not None
        ys = [results_of(one, cell, eps=eps)["y"] for eps in (EPS, 1.0)]
        assert not torch.equal(*ys)
        modules = [one.unset.build(implementations.Setting(cell=cell, eps=eps)) for eps in (EPS, 1.0)]
        gain, bias = (torch.nn.Parameter(t) for t in (torch.ones(8), torch.zeros(8)))
        assert torch.equal(*(bind(gain, bias)(torch.arange(16.0).view(2, 8)) for bind in modules))


def test_what_check_offers_is_known_without_importing_torch() -> None:
    code = "import sys, normbench.implementations as i\nprint(len(i.checkable(i.catalog())), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == [str(len(checkable(catalog()))), "False"]
