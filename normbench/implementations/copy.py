"""The floor: moves the bytes that any norm must move, and computes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normbench.implementations.base import Bind, Forward, Implementation, Setting
from normbench.records import Op

if TYPE_CHECKING:
    import torch


def _build(_setting: Setting) -> Bind:
    """Forward reads x and writes y; backward reads x and dy and writes dx.

    An ``autograd.Function`` as every implementation's own is, and an op that allocates its result. The
    add is a kernel on a GPU, where ``Tensor.copy_`` would be a memcpy, which is slower than one.
    """
    import torch

    class Copy(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return torch.add(x, 0)

        @staticmethod
        def backward(ctx: Any, dy: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            return torch.add(x, dy)

    def bind(_gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
        return lambda x: Copy.apply(x)  # type: ignore[no-untyped-call]

    return bind


COPY = Implementation(
    name="copy",
    op=Op.COPY,
    provider="floor",
    summary="the floor: reads and writes what any norm must, computes nothing",
    build=_build,
)
