"""Small models with one norm or another, and what a step cell's check says of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from normbench.correctness import Finding
from normbench.decoder import Decoder
from normbench.device import torch_dtype
from normbench.implementations import Bind, Forward, Implementation, Setting
from normbench.records import DType, ModelShape, Op, StepCell
from normbench.steps.checks import check_norms
from normbench.steps.variants import Batch, Variant
from tests.helpers import CPU, EPS

Wrap = Callable[[Forward, int], Forward]
"""A bound forward and the number of its norm, from 0, to the forward that takes its place."""


def make_shape(**changes: Any) -> ModelShape:
    """Two layers, so five norms, of width 32 over 45 tokens."""
    sizes: dict[str, Any] = {"width": 32, "layers": 2, "heads": 2, "context": 15, "batch": 3, "vocabulary": 64}
    return ModelShape(**{**sizes, **changes})


def make_step_cell(**changes: Any) -> StepCell:
    """That model in float32, eager."""
    return StepCell(**{"shape": make_shape(), "dtype": DType.FP32, **changes})


def make_model(implementation: Implementation, cell: StepCell, seed: int = 0) -> Decoder:
    """Its model, bound, as a step cell enters it."""
    model = Decoder(
        cell.shape, implementation.op, implementation.build(Setting(cell=cell.norm_cell, eps=EPS)), seed=seed
    )
    model.to(torch_dtype(cell.dtype))
    for norm in model.norms():
        norm.bound()
    return model


def make_variant(implementation: Implementation, cell: StepCell | None = None, seed: int = 0) -> Variant:
    """Its model on a batch, to be checked or timed."""
    cell = cell or make_step_cell()
    return Variant(implementation.name, cell, make_model(implementation, cell, seed), Batch.draw(cell, seed, CPU))


def checked(implementation: Implementation, cell: StepCell | None = None, seed: int = 0) -> Finding:
    """What is found of it inside the model."""
    cell = cell or make_step_cell()
    return check_norms(make_variant(implementation, cell, seed), implementation, cell, EPS)


def wrapped(implementation: Implementation, wrap: Wrap) -> Implementation:
    """The same with something done to each norm's forward; norms are bound in the order of the model."""

    def build(setting: Setting) -> Bind:
        bind, numbers = implementation.build(setting), iter(range(10**6))

        def numbered(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
            return wrap(bind(gain, bias), next(numbers))

        return numbered

    return replace(implementation, name=f"wrapped-{implementation.name}", build=build)


def bound_by(op: Op, make: Callable[[torch.Tensor, torch.Tensor | None, float], Forward]) -> Implementation:
    """An implementation from a function of gain, bias and eps."""

    def build(setting: Setting) -> Bind:
        def bind(gain: torch.Tensor | None, bias: torch.Tensor | None) -> Forward:
            assert gain is not None
            return make(gain, bias, setting.eps)

        return bind

    return Implementation(name=f"own-{op}", op=op, provider="own", summary="a test's own", build=build)
