"""The floors: they move the bytes that any norm must move, with a residual add or without, and compute nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normbench.implementations.base import Bind, Forward, Implementation, Setting
from normbench.records import Op

if TYPE_CHECKING:
    import torch


def _build_add(_setting: Setting) -> Bind:
    """Forward reads x and the residual and writes y and h, their copies; backward reads h, dy and dh and writes one.

    That one is the gradient of x and of the residual, which an add makes no copies of either. The backward is one
    kernel that reads three tensors (``h + dy·dh``, for want of a simpler one); see ``both`` for the forward.
    """
    import torch

    class AddCopy(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y, h = both(x, residual)
            ctx.save_for_backward(h)
            return y, h

        @staticmethod
        def backward(ctx: Any, dy: torch.Tensor, dh: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            (h,) = ctx.saved_tensors
            dx = torch.addcmul(h, dy, dh)
            return dx, dx

    def bind(_gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
        return lambda x, residual: AddCopy.apply(x, residual)  # type: ignore[no-untyped-call]

    return bind


def both(x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Copies of both: two tensors read and two written, no more, whichever way.

    torch has no kernel that copies one tensor to one and another to another. A GPU runs one elementwise kernel over
    both where they lie side by side in memory, as they are placed for this: two kernels would have the ramp and the
    tail of one twice, and the fused one for lists of tensors leaves most of a GPU idle where they are small (it has a
    block for each 65,536 elements). A CPU runs a loop for each: that costs little to start, while a result of twice
    the size would come anew from the system in every call at half the size from which everybody else's do.
    """
    pair = side_by_side(x, residual) if x.is_cuda else None
    return copies(x, residual) if pair is None else copies_of_pair(pair)


def copies(x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Copies of both, each by an elementwise loop of its own."""
    import torch

    y, h = torch._foreach_add((x, residual), 0)
    return y, h


def copies_of_pair(pair: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Copies of both halves by one elementwise kernel, in one piece of memory."""
    import torch

    y, h = torch.add(pair, 0).unbind()
    return y, h


def side_by_side(x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor | None:
    """Both as one tensor of shape (2, rows, width), where the second lies right behind the first; else None."""
    is_pair = (
        x.is_contiguous()
        and residual.is_contiguous()
        and residual.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        and residual.storage_offset() == x.storage_offset() + x.numel()
    )
    return x.as_strided((2, *x.shape), (x.numel(), *x.stride())) if is_pair else None


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
ADD_COPY = Implementation(
    name="add-copy",
    op=Op.ADD_COPY,
    provider="floor",
    summary="the floor: reads and writes what any residual add and norm must, computes nothing",
    build=_build_add,
)
