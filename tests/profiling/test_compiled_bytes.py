"""Inductor's own count of generated kernels, with the real compiler; zero is absent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch._inductor import compile_fx

from normbench import compilation
from normbench.implementations import eager
from normbench.profiling.compiled_bytes import count, counting

pytestmark = pytest.mark.skipif(compilation.missing_compiler("cpu") is not None, reason="needs a C++ compiler")


@pytest.fixture(scope="module")
def tensors() -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    x, gain, dy = torch.randn(2048, 256), torch.randn(256), torch.randn(2048, 256)
    yield x.requires_grad_(), gain.requires_grad_(), dy
    torch._dynamo.reset()


def test_the_generated_kernels_of_forward_and_backward_are_counted_to_the_byte(
    tensors: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    x, gain, dy = tensors
    compiled = torch.compile(eager.rmsnorm, fullgraph=True, dynamic=False)
    outputs: list[torch.Tensor] = []
    level = compile_fx.inductor_metrics_log.level
    with counting():
        forward = count(lambda: outputs.append(compiled(x, gain, None, 1e-6)))
        again = count(lambda: compiled(x, gain, None, 1e-6))
        backward = count(lambda: torch.autograd.grad(outputs[0], (x, gain), dy))
    assert sum(kernel.bytes for kernel in forward) == 4_203_520
    assert sum(kernel.bytes for kernel in backward) == 10_504_192
    assert again == (), "nothing was generated: absent, not zero"
    assert all("mul" in kernel.name for kernel in (*forward, *backward))
    assert {kernel.read_bytes for kernel in forward} == {None}, "only the sum of both ways is known"
    assert compile_fx.inductor_metrics_log.level == level
