"""A minute model and texts that it learns in a moment: for tests of steps and of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from normbench.device import CpuDevice
from normbench.implementations import ALL, Implementation
from normbench.records import DType, ModelShape, StepCell, StepPlan, TrainingPlan
from normbench.steps.entering import Entry
from normbench.steps.variants import Batch
from normbench.training.corpora import Text, blocks
from normbench.training.trainer import Trainer
from tests.helpers import EPS

SHAPE = ModelShape(width=16, layers=1, heads=2, context=8, batch=4, vocabulary=256)
CELL = StepCell(shape=SHAPE, dtype=DType.FP32)
BUILT_IN = {implementation.name: implementation for implementation in ALL}
LAYERNORM, RMSNORM, EAGER = (BUILT_IN[name] for name in ("nn-layernorm", "nn-rmsnorm", "eager-rmsnorm"))


def make_entry(cell: StepCell = CELL, seed: int = 0) -> Entry:
    """What variants in a minute cell have in common."""
    batch = Batch.draw(cell, 0, torch.device("cpu"))
    return Entry(cell=cell, batch=batch, eps=EPS, seed=seed, device=CpuDevice())


def make_texts() -> tuple[Text, Text]:
    """Two texts that repeat themselves."""
    code, prose = b"for x in range(7):\n    y = x\n" * 2000, b"the norm of a row is its length. " * 2000
    return Text.of("code", blocks(code)), Text.of("prose", blocks(prose))


def make_training(texts: Sequence[Text] | None = None, **changes: Any) -> TrainingPlan:
    """Six steps with an evaluation after every second."""
    texts = make_texts() if texts is None else texts
    fields: dict[str, Any] = {
        "shape": SHAPE,
        "dtype": DType.FP32,
        "steps": 6,
        "seeds": (1, 2),
        "evaluate_every": 2,
        "held_out_batches": 4,
        "warm_up": 2,
        "corpora": tuple(text.corpus for text in texts),
    }
    return TrainingPlan(**{**fields, **changes})


def make_trainer(
    *implementations: Implementation, training: TrainingPlan | None = None, seed: int = 0, **changes: Any
) -> Trainer:
    """A trainer of a minute model on the CPU; the first implementation is the baseline."""
    implementations = implementations or (LAYERNORM, RMSNORM)
    plan = StepPlan(
        implementations=tuple(one.name for one in implementations),
        baseline=implementations[0].name,
        training=make_training() if training is None else training,
        seed=seed,
    )
    fields: dict[str, Any] = {"device": CpuDevice(), "texts": make_texts()}
    return Trainer(plan=plan, implementations=implementations, **{**fields, **changes})


def compiled(cell: StepCell = CELL) -> StepCell:
    """The same cell with a compiled model."""
    return replace(cell, compiled=True)
