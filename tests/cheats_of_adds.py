"""Residual adds and norms that are wrong, each in its own way, and what they must be caught with.

Each computes by torch ops alone and so runs on any device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from normbench.implementations import Implementation, eager
from normbench.records import Mode, Op
from tests.helpers import own

Two = tuple[torch.Tensor, torch.Tensor]
Adder = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Two]
"""x, residual and gain to y and h."""
Gradients = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, Two], tuple[torch.Tensor, ...]]
"""The right dx and dgain, dy and dh, and (x, residual) to the gradients of x, residual and gain."""

BACKWARD = (Mode.BACKWARD, Mode.FORWARD_BACKWARD)
FORWARD = (Mode.FORWARD, Mode.INFERENCE, Mode.FORWARD_BACKWARD)
OUTSIDE_INFERENCE = tuple(mode for mode in Mode if mode is not Mode.INFERENCE)


def right(x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor) -> Two:
    return eager.add_rmsnorm(x, residual, gain, None, 1e-6)


def with_gradients(forward: Adder, gradients: Gradients) -> Adder:
    """A forward and a backward of its own, which is told the right gradients."""

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor) -> Two:
            ctx.save_for_backward(x, residual, gain)
            return forward(x, residual, gain)

        @staticmethod
        def backward(ctx: Any, dy: torch.Tensor, dh: torch.Tensor) -> tuple[torch.Tensor, ...]:
            x, residual, gain = ctx.saved_tensors
            with torch.enable_grad():
                leaves = [t.detach().requires_grad_() for t in (x, residual, gain)]
                dx, _, dgain = torch.autograd.grad(right(*leaves), leaves, (dy, dh))
            return gradients(dx, dgain, dy, dh, (x, residual))

    return lambda x, residual, gain: Own.apply(x, residual, gain)  # type: ignore[no-untyped-call,no-any-return]


def in_forward(forward: Adder) -> Adder:
    """Wrong forward, right backward."""
    return with_gradients(forward, lambda dx, dgain, _dy, _dh, _inputs: (dx, dx, dgain))


def in_backward(gradients: Gradients) -> Adder:
    """Right forward, wrong backward."""
    return with_gradients(right, gradients)


def adding(name: str, function: Adder, **changes: Any) -> Implementation:
    return own(
        Op.ADD_RMSNORM,
        lambda x, residual, gain, _bias, _eps: function(x, residual, gain),
        name=f"cheat-{name}",
        **changes,
    )


def forgets_the_add(x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor) -> Two:
    return eager.rmsnorm(x, gain, None, 1e-6), x + residual


def norms_the_residual(x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor) -> Two:
    return eager.rmsnorm(residual, gain, None, 1e-6), x + residual


def returns_the_old_one(x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor) -> Two:
    return right(x, residual, gain)[0], residual


def returns_a_copy_of_the_old_one(x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor) -> Two:
    return right(x, residual, gain)[0], residual.clone()


def rounds_twice(x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor) -> Two:
    y, h = right(x, residual, gain)
    return y, h.to(torch.float8_e4m3fn if h.dtype is torch.bfloat16 else torch.bfloat16).to(h.dtype)


def writes_h_into_residual(x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor) -> Two:
    y, h = right(x, residual, gain)
    residual.data.copy_(h)
    return y, h


def returns_the_residual_it_wrote_h_into(x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor) -> Two:
    y, h = right(x, residual, gain)
    return y, residual.data.copy_(h)


def returns_x_it_wrote_y_into(x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor) -> Two:
    y, h = right(x, residual, gain)
    return x.data.copy_(y), h


def forgets_a_row(x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor) -> Two:
    y, h = right(x, residual, gain)
    h = h.clone()
    h[-1] = residual[-1]
    return y, h


def writes_into_dh(
    dx: torch.Tensor, dgain: torch.Tensor, _dy: torch.Tensor, dh: torch.Tensor, _inputs: Two
) -> tuple[torch.Tensor, ...]:
    dh.data.copy_(dx)
    return dx, dx, dgain


def keeps_its_sum() -> Adder:
    """Knows a residual again by its place, and takes it for unchanged."""
    kept: dict[int, torch.Tensor] = {}

    def forward(x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor) -> Two:
        h = kept.setdefault(residual.data_ptr(), x + residual)
        return right(x, residual, gain)[0], h.clone()

    return forward


def keeps_its_residual() -> Adder:
    """Knows a residual again by its place, and reads x anew."""
    kept: dict[int, torch.Tensor] = {}

    def forward(x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor) -> Two:
        return right(x, kept.setdefault(residual.data_ptr(), residual.clone()), gain)

    return forward


def one_buffer() -> Adder:
    """Writes h of every call into the same memory."""
    buffer: list[torch.Tensor] = []

    def forward(x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor) -> Two:
        y, h = right(x, residual, gain)
        if not buffer:
            buffer.append(h.clone())
        return y, buffer[0].copy_(h)

    return forward


@dataclass(frozen=True, kw_only=True)
class Cheat:
    """What must be caught, where, and with which words."""

    function: Adder
    reason: str
    modes: tuple[Mode, ...] = tuple(Mode)


CHEATS: Mapping[str, Cheat] = {
    "forgets-the-add": Cheat(function=in_forward(forgets_the_add), reason="y[", modes=FORWARD),
    "norms-the-residual": Cheat(function=in_forward(norms_the_residual), reason="y[", modes=FORWARD),
    "old-residual": Cheat(function=returns_the_old_one, reason="h[", modes=FORWARD),
    "copy-of-old-residual": Cheat(function=in_forward(returns_a_copy_of_the_old_one), reason="h[", modes=FORWARD),
    "rounds-twice": Cheat(function=in_forward(rounds_twice), reason="h[", modes=FORWARD),
    "forgets-a-row": Cheat(function=in_forward(forgets_a_row), reason="h[", modes=FORWARD),
    "writes-into-residual": Cheat(
        function=in_forward(writes_h_into_residual), reason="wrote into residual without declaring it"
    ),
    "h-in-residual": Cheat(
        function=returns_the_residual_it_wrote_h_into,
        reason="wrote into residual without declaring it",
        modes=(Mode.INFERENCE,),
    ),
    "y-in-x": Cheat(
        function=returns_x_it_wrote_y_into, reason="wrote into x without declaring it", modes=(Mode.INFERENCE,)
    ),
    "h-is-cut-off": Cheat(
        function=lambda x, residual, gain: (right(x, residual, gain)[0], (x + residual).detach()),
        reason="h does not require grad",
        modes=OUTSIDE_INFERENCE,
    ),
    "one-result": Cheat(
        function=lambda x, residual, gain: right(x, residual, gain)[:1],  # type: ignore[arg-type,return-value]
        reason="returned 1 tensor, not y and h",
    ),
    "only-y": Cheat(
        function=lambda x, residual, gain: right(x, residual, gain)[0],  # type: ignore[arg-type,return-value]
        reason="returned 1 tensor, not y and h",
    ),
    "drops-dh": Cheat(
        function=in_backward(lambda dx, dgain, _dy, dh, _inputs: (dx - dh, dx - dh, dgain)),
        reason="dx[",
        modes=BACKWARD,
    ),
    "zero-for-residual": Cheat(
        function=in_backward(lambda dx, dgain, _dy, _dh, _inputs: (dx, torch.zeros_like(dx), dgain)),
        reason="dresidual[",
        modes=BACKWARD,
    ),
    "dh-for-residual": Cheat(
        function=in_backward(lambda dx, dgain, _dy, dh, _inputs: (dx, dh.clone(), dgain)),
        reason="dresidual[",
        modes=BACKWARD,
    ),
    "writes-into-dh": Cheat(
        function=in_backward(writes_into_dh), reason="wrote into dh without declaring it", modes=BACKWARD
    ),
    "dx-in-x": Cheat(
        function=in_backward(lambda dx, dgain, _dy, _dh, inputs: (inputs[0].data.copy_(dx), dx, dgain)),
        reason="wrote into x without declaring it",
        modes=BACKWARD,
    ),
}
