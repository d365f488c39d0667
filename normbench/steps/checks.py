"""Are a model's norms right inside the model, and is the compiled model the eager one?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from normbench import correctness, modes
from normbench.calls import Odd
from normbench.correctness import Finding
from normbench.decoder import Decoder
from normbench.failures import RAISED, Failure, failure
from normbench.implementations import Bind, Forward, Implementation, Setting
from normbench.inputs import Operands
from normbench.records import Cell, Op, Status, StepCell
from normbench.steps.listening import Ear, listen, numbered
from normbench.steps.variants import Batch, Variant
from normbench.torch_state import TorchState
from normbench.watch import changed_settings

_AS_CLOSE = 4.0
_ROUNDOFF = 2.0**-24
_SMALLER = 2.0**-4
"""What the embeddings are scaled by, so that eps weighs at the first norm: x is 0.0018 there, x² 3·10^-6."""
_SPREAD = 0.25
"""Of gain around 1 and bias around 0, as in the sweep: what a new model has would not tell who leaves them out."""


def check_norms(variant: Variant, implementation: Implementation, cell: StepCell, eps: float) -> Finding:
    """Each norm of the eager model against float64, on what it is given there: y and every gradient.

    Twice: with the weights as they are timed, and with others that show what those would not. Nothing of it is
    left: the weights are the initial ones again, without gradients. A y of another format than x is wrong unless
    autocast is on, whose layers cast what they read. Writing into x is wrong even where it is declared, since the
    model goes on with x; writing into dy, or into x in the backward, is wrong unless it is.

    Returns:
        The finding of the first that is wrong, else the one with the largest error; a problem names the norm.

    Raises:
        Exception: Whatever the implementation raises.
    """
    found: list[Finding] = []
    try:
        for told_apart in (False, True):
            variant.place()
            if told_apart:
                _tell_apart(variant.model)
            # A mean over all tokens makes dy so small that float16 has hardly a bit of it left.
            scale = cell.shape.rows if told_apart else 1
            for finding in _pass(variant, implementation, cell, eps, scale):
                if finding.problem is not None:
                    return finding
                found.append(finding)
    finally:
        variant.place()
    worst = max(found, key=lambda finding: finding.accuracy.max_rel_error)
    return replace(worst, coarse_sums=any(finding.coarse_sums for finding in found))


def still_right(
    variant: Variant, implementation: Implementation, cell: StepCell, eps: float, *, after: str = "it was timed"
) -> Failure | None:
    """What is wrong with a variant that was right before something; None where it still is, ``after`` that."""
    state = TorchState.now()
    try:
        problem = check_norms(variant, implementation, cell, eps).problem
    except RAISED as error:
        return failure(error)
    finally:
        changes = state.restore()
    if changes is not None:
        return changed_settings(changes)
    reason = f"after {after}, {problem}"
    return None if problem is None else Failure(status=Status.INCORRECT, reason=reason)


def _tell_apart(model: Decoder) -> None:
    """Other weights, the same each time: gains unlike 1, biases unlike 0, a stream so small that eps weighs."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for norm in model.norms():
            for parameter, mean in ((norm.weight, 1.0), (norm.bias, 0.0)):
                if parameter is not None:
                    parameter.copy_(mean + _SPREAD * torch.randn(parameter.shape, generator=generator))
        for embedding in (model.tokens, model.positions):
            embedding.weight.mul_(_SMALLER)


def _pass(
    variant: Variant, implementation: Implementation, cell: StepCell, eps: float, scale: float
) -> Iterator[Finding]:
    """What is found of each norm in one forward and backward of the model as it is."""

    def backward() -> None:
        (variant.eager_loss() * scale).backward()  # type: ignore[no-untyped-call]

    norms = variant.model.norms()
    try:
        ears = listen(norms, backward, autocast=cell.autocast is not None)
    except Odd as odd:
        yield correctness.refusal(str(odd))
        return
    reuses = implementation.reuses_output(Setting(cell=cell.norm_cell, eps=eps))
    # What one has spoilt the others are given: NaN comes out of them all.
    for number, ear in sorted(
        enumerate(ears, start=1), key=lambda numbered_ear: not numbered_ear[1].was_given_numbers
    ):
        written = ear.overwritten() or ear.undeclared(
            mutates=implementation.writes_in(cell.norm_cell.mode), reuses_output=reuses
        )
        found = correctness.refusal(written) if written else _judged(ear, implementation.op, cell, eps)
        problem = found.problem and numbered(number, len(ears), found.problem)
        yield replace(found, problem=problem)
    yield _asked_again(ears[0], implementation, cell, eps)


def _judged(ear: Ear, op: Op, cell: StepCell, eps: float) -> Finding:
    """One norm's results against the truth of what it was given."""
    gradients = {
        f"d{name}": parameter.grad
        for name, parameter in (("gain", ear.norm.weight), ("bias", ear.norm.bias))
        if parameter is not None
    }
    missing = [name for name, there in {"dx": ear.dx, **gradients}.items() if there is None]
    if ear.x is None or ear.y is None or ear.dy is None or ear.dx is None or missing:
        return correctness.refusal(f"no {missing[0] if missing else 'gradient'} comes of it")
    operands = Operands(x=ear.x.value, dy=ear.dy.value, gain=ear.norm.weight, bias=ear.norm.bias)
    results = {"y": ear.y.value, "dx": ear.dx.value} | {n: g for n, g in gradients.items() if g is not None}
    return correctness.check(results, op, _cell_of(ear.x.value, cell), operands, eps, independent=False)


def _asked_again(ear: Ear, implementation: Implementation, cell: StepCell, eps: float) -> Finding:
    """One norm by itself, with other values in the memory it was given: the next step's x may lie where this one did.

    They are written without a trace, and the first and last rows stay, for who knows its input by either.
    """
    assert ear.x is not None, "it was heard"
    assert ear.dy is not None, "it was heard"
    norm, where = ear.norm, _cell_of(ear.x.value, cell)
    for moment in (ear.x, ear.dy):
        value = moment.value
        moment.memory.data.copy_(torch.cat([value[:1], value[1:-1].flip(0), value[-1:]][: len(value)]))
    memory = Operands(x=ear.x.memory.requires_grad_(), dy=ear.dy.memory, gain=norm.weight, bias=norm.bias)
    exact = Operands(x=ear.x.memory.detach().clone(), dy=ear.dy.memory.clone(), gain=norm.weight, bias=norm.bias)
    forward = Ear(norm, autocast=cell.autocast is not None).listening(norm.implementation)
    try:
        called = modes.outputs(modes.task(implementation.name, where, forward, memory).run())
    except Odd as odd:
        finding = correctness.refusal(str(odd))
    else:
        results = {n: t.detach() for n, t in zip(modes.output_names(where.mode, memory), called, strict=True)}
        finding = correctness.check(results, implementation.op, where, exact, eps, independent=False)
    again = "called again with other values in the same memory"
    return replace(finding, problem=finding.problem and f"{again}, {finding.problem}")


def _cell_of(x: torch.Tensor, cell: StepCell) -> Cell:
    dtype = correctness.dtype_of(x)
    assert dtype is not None, "a model's stream is in a format that cells have"
    rows, width = x.shape
    return replace(cell.norm_cell, rows=rows, width=width, dtype=dtype)


def check_compiled(variant: Variant, op: Op, batch: Batch, eps: float) -> str | None:
    """What is wrong with a compiled model: a gradient is farther from float64 than the eager one's, by a factor.

    Both round differently at every fused op, so neither can be asked for the other's bits; but a compiler is no
    reason to be less exact. The error of each parameter's gradient, as a share of its norm, is held against the
    eager one's, or against that of all gradients together where it is larger. Nothing of it is left.
    """
    try:
        eager, compiled = (_gradients(variant, loss) for loss in (variant.eager_loss, variant.loss))
        exact = _exact_gradients(variant.model, op, batch, eps)
    finally:
        variant.place()
    whole = max(_off(torch.cat([*eager.values()]), torch.cat([*exact.values()])), _ROUNDOFF)
    for name, right in exact.items():
        there, before = (_off(found[name], right) for found in (compiled, eager))
        if not there <= _AS_CLOSE * max(before, whole):
            off = f"off by {there:.2g} of its norm, the eager one's by {before:.2g}"
            return f"the compiled model's gradient of {name} is {off}"
    return None


def _gradients(variant: Variant, loss: Callable[[], torch.Tensor]) -> dict[str, torch.Tensor]:
    """Every parameter's by one way to run the model, which is left as it is then."""
    variant.place()
    _tell_apart(variant.model)
    (loss() * variant.model.shape.rows).backward()  # type: ignore[no-untyped-call]
    return _by_name(variant.model)


def _exact_gradients(model: Decoder, op: Op, batch: Batch, eps: float) -> dict[str, torch.Tensor]:
    """Those of the same model in float64, its norms by their formula."""
    twin = Decoder(model.shape, op, _in_float64(op, eps), seed=0).double().to(batch.tokens.device)
    with torch.no_grad():
        for own, other in zip(twin.parameters(), model.parameters(), strict=True):
            own.copy_(other)
    for norm in twin.norms():
        norm.bound()
    loss = torch.nn.functional.cross_entropy(twin(batch.tokens).flatten(0, 1), batch.following.flatten())
    (loss * model.shape.rows).backward()  # type: ignore[no-untyped-call]
    return _by_name(twin)


def _by_name(model: Decoder) -> dict[str, torch.Tensor]:
    """The gradients, flat, in float64; NaN where none came, which is off by no number."""
    return {
        name: (torch.full_like(p, torch.nan) if p.grad is None else p.grad).detach().double().flatten()
        for name, p in model.named_parameters()
    }


def _off(found: torch.Tensor, right: torch.Tensor) -> float:
    """How far off, as a share of the norm of the right one."""
    difference, size = (found - right).norm(), right.norm()
    return float(difference / size.clamp(min=torch.finfo(torch.float64).tiny))


def _in_float64(op: Op, eps: float) -> Bind:
    def bind(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
        assert gain is not None

        def forward(x: torch.Tensor) -> torch.Tensor:
            centred = x - x.mean(-1, keepdim=True) if op.centres else x
            y = centred * (centred.square().mean(-1, keepdim=True) + eps).rsqrt() * gain
            return y if bias is None else y + bias

        return forward

    return bind
