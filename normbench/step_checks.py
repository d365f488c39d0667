"""Are a model's norms right inside the model, and is the compiled model the eager one?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from normbench import correctness
from normbench.correctness import Finding
from normbench.decoder import Decoder, Norm
from normbench.implementations import Bind, Forward, Implementation
from normbench.inputs import Operands
from normbench.records import Cache, Cell, Mode, Op, StepCell
from normbench.stepping import Batch, Variant

_AS_CLOSE = 4.0
_ROUNDOFF = 2.0**-24


@dataclass
class _Seen:
    """What one norm was given, what it gave, and the gradients of both."""

    x: torch.Tensor | None = None
    y: torch.Tensor | None = None
    dx: torch.Tensor | None = None
    dy: torch.Tensor | None = None


@dataclass
class _Listener:
    """Takes down what passes through the norms of a model in one forward and backward."""

    seen: dict[Norm, _Seen] = field(default_factory=dict)

    def attach(self, norm: Norm) -> Sequence[torch.utils.hooks.RemovableHandle]:
        """Listen to one."""
        seen = self.seen.setdefault(norm, _Seen())

        def after_forward(_norm: object, given: tuple[torch.Tensor, ...], y: torch.Tensor) -> None:
            seen.x, seen.y = given[0].detach().flatten(0, -2), y.detach().flatten(0, -2)

        def after_backward(_norm: object, dx: tuple[torch.Tensor, ...], dy: tuple[torch.Tensor, ...]) -> None:
            seen.dx, seen.dy = dx[0].detach().flatten(0, -2), dy[0].detach().flatten(0, -2)

        return norm.register_forward_hook(after_forward), norm.register_full_backward_hook(after_backward)


def check_norms(variant: Variant, implementation: Implementation, cell: StepCell, eps: float) -> Finding:
    """Each norm of the eager model against float64, on what it is given there: y and every gradient.

    Returns:
        The finding of the first that is wrong, else the one with the largest error; a problem names the norm.
    """
    listener, norms = _Listener(), variant.model.norms()
    handles = [handle for norm in norms for handle in listener.attach(norm)]
    try:
        variant.place()
        variant.eager_loss().backward()  # type: ignore[no-untyped-call]
    finally:
        for handle in handles:
            handle.remove()
    worst: Finding | None = None
    for number, norm in enumerate(norms, start=1):
        finding = _judged(listener.seen[norm], norm, implementation.op, cell, eps)
        if finding.problem is not None:
            return replace(finding, problem=f"norm {number} of {len(norms)}: {finding.problem}")
        if worst is None or finding.accuracy.max_rel_error > worst.accuracy.max_rel_error:
            worst = finding
    assert worst is not None
    return worst


def _judged(seen: _Seen, norm: Norm, op: Op, cell: StepCell, eps: float) -> Finding:
    if seen.x is None or seen.y is None or seen.dx is None or seen.dy is None:
        return correctness.refusal("no gradient reached it")
    gradients = {f"d{name}": p.grad for name, p in (("gain", norm.weight), ("bias", norm.bias)) if p is not None}
    missing = [name for name, gradient in gradients.items() if gradient is None]
    if missing:
        return correctness.refusal(f"no {missing[0]} reached it")
    operands = Operands(x=seen.x, dy=seen.dy, gain=norm.weight, bias=norm.bias)
    results = {"y": seen.y, "dx": seen.dx, **{n: g for n, g in gradients.items() if g is not None}}
    return correctness.check(results, op, _cell_of(seen.x, cell), operands, eps, independent=False)


def _cell_of(x: torch.Tensor, cell: StepCell) -> Cell:
    dtype = correctness.dtype_of(x)
    assert dtype is not None, "a model's stream is in a format that cells have"
    rows, width = x.shape
    return Cell(
        mode=Mode.FORWARD_BACKWARD,
        rows=rows,
        width=width,
        dtype=dtype,
        parameter_dtype=cell.dtype,
        autocast=cell.autocast,
        cache=Cache.WARM,
    )


def check_compiled(variant: Variant, op: Op, batch: Batch, eps: float) -> str | None:
    """What is wrong with a compiled model: its gradients are farther from float64 than the eager one's, by a factor.

    Both round differently at every fused op, so neither can be asked for the other's bits; but a compiler is no
    reason to be less exact. The error is that of all gradients together, relative to their norm.
    """
    exact = _exact_gradient(variant.model, op, batch, eps)
    errors = []
    for loss in (variant.eager_loss, variant.loss):
        variant.place()
        loss().backward()  # type: ignore[no-untyped-call]
        errors.append(float((_gradient(variant.model) - exact).norm() / exact.norm()))
    eager, compiled = errors
    if compiled <= _AS_CLOSE * max(eager, _ROUNDOFF):
        return None
    return f"the compiled model's gradients are off by {compiled:.2g} of their norm, the eager one's by {eager:.2g}"


def _gradient(model: torch.nn.Module) -> torch.Tensor:
    parts = [p.grad.detach().double().flatten() for p in model.parameters() if p.grad is not None]
    return torch.cat(parts)


def _exact_gradient(model: Decoder, op: Op, batch: Batch, eps: float) -> torch.Tensor:
    """All gradients of the same model in float64, its norms by their formula."""
    twin = Decoder(model.shape, op, _in_float64(op, eps), seed=0).double().to(batch.tokens.device)
    with torch.no_grad():
        for own, other in zip(twin.parameters(), model.parameters(), strict=True):
            own.copy_(other)
    for norm in twin.norms():
        norm.bound()
    logits = twin(batch.tokens)
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.following.flatten())
    loss.backward()  # type: ignore[no-untyped-call]
    return _gradient(twin)


def _in_float64(op: Op, eps: float) -> Bind:
    def bind(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
        assert gain is not None

        def forward(x: torch.Tensor) -> torch.Tensor:
            centred = x - x.mean(-1, keepdim=True) if op is Op.LAYERNORM else x
            y = centred * (centred.square().mean(-1, keepdim=True) + eps).rsqrt() * gain
            return y if bias is None else y + bias

        return forward

    return bind
