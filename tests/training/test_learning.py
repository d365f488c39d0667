from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from statistics import fmean

import pytest
import torch

from normbench.records import TrainingPlan
from normbench.steps.variants import Learner
from normbench.training.batches import Batches
from normbench.training.learning import DivergedError, Learning, learning_rate
from tests.minute import CELL, LAYERNORM, SHAPE, make_entry, make_texts, make_training

pytestmark = pytest.mark.usefixtures("one_thread")


def make(plan: TrainingPlan | None = None, seed: int = 1) -> Learning:
    batches = Batches(texts=make_texts(), shape=SHAPE, seed=0, device=torch.device("cpu"))
    learner = Learner(CELL, make_entry(seed=seed).model(LAYERNORM))
    return Learning(plan=plan or make_training(), learner=learner, batches=batches, seed=seed)


def test_the_rate_grows_evenly_to_its_highest_then_falls_along_a_cosine_to_a_tenth() -> None:
    plan = make_training(steps=400, warm_up=40, learning_rate=6e-4)
    rates = [learning_rate(plan, step) for step in range(1, 401)]

    assert [rates[0], rates[19], rates[39]] == pytest.approx([6e-4 / 40, 3e-4, 6e-4])
    assert rates[219] == pytest.approx((6e-4 + 6e-5) / 2)
    assert rates[399] == pytest.approx(6e-5)
    assert all(before > after for before, after in pairwise(rates[39:]))


def test_a_run_no_longer_than_its_warm_up_only_warms_up() -> None:
    plan = make_training(steps=2, warm_up=4, learning_rate=4.0, evaluate_every=1)

    assert [learning_rate(plan, step) for step in (1, 2)] == [1.0, 2.0]


def test_every_step_has_the_rate_and_the_clip_of_the_plan() -> None:
    learning = make(make_training(learning_rate=0.5, warm_up=2, clip=0.25))
    learning.advance()

    assert learning.learner.optimizer.param_groups[0]["lr"] == 0.25
    assert learning.learner.clip == 0.25


def test_bits_are_nats_divided_by_the_logarithm_of_2_and_a_model_begins_near_8() -> None:
    learning = make()
    learning.evaluate()
    (point,) = learning.points
    with torch.no_grad():
        by_hand = [
            fmean(float(learning.learner.loss(batch)) / math.log(2) for batch in batches)
            for batches in learning.batches.held_out(4)
        ]

    assert point.by_corpus == pytest.approx(by_hand)
    assert point.bits_per_byte == pytest.approx(sum(by_hand) / 2)
    assert point.bits_per_byte == pytest.approx(8, abs=0.2)
    assert (point.step, point.train_bits_per_byte) == (0, None)


def test_the_train_figure_is_the_mean_of_the_steps_since_the_last_point() -> None:
    learning, twin = make(), make()
    losses = []
    for step in range(1, 5):
        losses.append(twin.learner.loss(twin.batches.drawn(1, step)).item() / math.log(2))
        twin.advance()
        learning.advance()
        if step % 2 == 0:
            learning.evaluate()

    assert [p.train_bits_per_byte for p in learning.points] == [fmean(losses[:2]), fmean(losses[2:])]
    assert [p.step for p in learning.points] == [2, 4]


def test_an_evaluation_changes_nothing_in_the_run() -> None:
    evaluated, other = make(), make()
    for _step in range(3):
        evaluated.evaluate()
        evaluated.advance()
        other.advance()

    pairs = zip(evaluated.learner.model.parameters(), other.learner.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_a_model_learns_a_text_that_repeats_itself() -> None:
    learning = make(make_training(steps=400, learning_rate=1e-2, warm_up=10))
    for _step in range(400):
        learning.advance()
    learning.evaluate()

    assert learning.points[-1].bits_per_byte < 3
    assert max(learning.points[-1].by_corpus) < 3


@pytest.mark.parametrize("loss", [math.nan, math.inf])
@pytest.mark.parametrize("act", [Learning.advance, Learning.evaluate])
def test_a_loss_that_is_not_finite_is_said_with_its_step(
    loss: float, act: Callable[[Learning], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    learning = make()
    learning.advance()
    for name in ("loss", "eager_loss"):
        monkeypatch.setattr(learning.learner, name, lambda _batch: torch.tensor(loss, requires_grad=True))
    step = 2 if act is Learning.advance else 1

    with pytest.raises(DivergedError, match=f"^diverged at step {step}$"):
        act(learning)


def test_a_restored_run_goes_on_bit_for_bit_from_its_state() -> None:
    whole = make()
    whole.evaluate()
    whole.advance()
    whole.advance()
    whole.evaluate()
    state = deepcopy(whole.state())  # as it is on disk: the run's own tensors go on changing
    other = make()
    parameters = [id(p) for p in other.learner.model.parameters()]
    other.restore(state)
    for learning in (whole, other):
        learning.advance()
        learning.advance()
        learning.evaluate()

    assert other.points == whole.points
    assert [point.step for point in other.points] == [0, 2, 4]
    assert [id(p) for p in other.learner.model.parameters()] == parameters


@pytest.mark.parametrize(
    "change",
    [
        {"step": 1},
        {"step": -2},
        {"points": []},
        {"points": [{"step": "x"}]},
        {"model": {}},
        {"optimizer": {"state": {}, "param_groups": []}},
    ],
    ids=str,
)
def test_what_is_no_state_of_the_run_is_not_restored(change: dict[str, object]) -> None:
    whole = make()
    whole.evaluate()
    state = {**deepcopy(whole.state()), **change}

    with pytest.raises(Exception):  # noqa: B017, PT011 - of whatever kind
        make().restore(state)
