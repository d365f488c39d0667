from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest

from normbench.records import Corpus, Status, TrainingCurve, TrainingPoint
from normbench.records.training import MOST_SEEDS, MOST_STEPS
from tests.step_runs import make_curve, make_training_plan

UNTIMED = [status for status in Status if status is not Status.OK]


def make_corpus(**changes: Any) -> Corpus:
    return Corpus(**{"name": "code", "train_bytes": 100, "held_out_bytes": 10, "digest": "00" * 32, **changes})


def make_point(step: int = 50, **changes: Any) -> TrainingPoint:
    fields: dict[str, Any] = {"train_bits_per_byte": 2.0, "bits_per_byte": 2.5, "by_corpus": (2.0, 3.0), **changes}
    return TrainingPoint(step=step, **fields)


@pytest.mark.parametrize("changes", [{"train_bytes": 0}, {"held_out_bytes": 0}, {"held_out_bytes": -1}])
def test_a_corpus_has_something_to_train_on_and_something_held_out(changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="'code' has nothing to train on"):
        make_corpus(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": replace(make_training_plan().shape, vocabulary=255)}, "a model of bytes has 256"),
        ({"steps": 0}, "steps: 1 to"),
        ({"steps": MOST_STEPS + 1}, "steps: 1 to"),
        ({"evaluate_every": 0}, "evaluate_every no more"),
        ({"evaluate_every": 401}, "evaluate_every no more"),
        ({"seeds": ()}, "seeds: 1 to"),
        ({"seeds": (1, 1)}, "none twice"),
        ({"seeds": tuple(range(MOST_SEEDS + 1))}, "seeds: 1 to"),
        ({"corpora": ()}, "corpora: at least one"),
        ({"corpora": (make_corpus(), make_corpus(train_bytes=7))}, "corpora: at least one, none twice"),
        ({"held_out_batches": 0}, "held_out_batches and warm_up"),
        ({"warm_up": 0}, "held_out_batches and warm_up"),
        ({"learning_rate": 0.0}, "learning_rate and clip above 0"),
        ({"clip": -1.0}, "learning_rate and clip above 0"),
        ({"learning_rate": nan}, "learning_rate and clip above 0"),
        ({"clip": nan}, "learning_rate and clip above 0"),
        ({"learning_rate": inf}, "learning_rate and clip above 0"),
        ({"clip": inf}, "learning_rate and clip above 0"),
    ],
)
def test_a_training_that_could_not_be_carried_out_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_training_plan(**changes)


@pytest.mark.parametrize(
    "changes",
    [{"steps": 1, "evaluate_every": 1}, {"evaluate_every": 400}, {"seeds": (7,)}, {"warm_up": 1}],
)
def test_a_training_at_its_border_is_accepted(changes: dict[str, Any]) -> None:
    assert make_training_plan(**changes).evaluations()[0] == 0


def test_the_defaults_are_those_that_are_documented() -> None:
    plan = make_training_plan()

    assert (plan.learning_rate, plan.warm_up, plan.clip) == (6e-4, 40, 1.0)
    assert (plan.autocast, plan.compiled) == (None, False)


@pytest.mark.parametrize(
    ("steps", "every", "evaluations"),
    [
        (4, 2, (0, 2, 4)),
        (5, 2, (0, 2, 4, 5)),
        (1, 1, (0, 1)),
        (3, 3, (0, 3)),
        (7, 3, (0, 3, 6, 7)),
    ],
)
def test_a_model_is_evaluated_at_the_beginning_at_the_end_and_each_so_many_steps(
    steps: int, every: int, evaluations: tuple[int, ...]
) -> None:
    assert make_training_plan(steps=steps, evaluate_every=every).evaluations() == evaluations


@pytest.mark.parametrize(
    "changes",
    [
        {"step": -1},
        {"bits_per_byte": nan},
        {"bits_per_byte": inf},
        {"bits_per_byte": -0.1},
        {"train_bits_per_byte": nan},
        {"train_bits_per_byte": -0.1},
        {"by_corpus": (2.0, inf)},
        {"by_corpus": (-0.1, 2.0)},
    ],
)
def test_a_point_holds_bits_per_byte(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not bits per byte"):
        make_point(**changes)


def test_before_the_first_step_nothing_was_trained_on() -> None:
    assert make_point(0, train_bits_per_byte=None).train_bits_per_byte is None


def test_points_come_by_ascending_step() -> None:
    points = (make_point(50), make_point(100))

    assert TrainingCurve(implementation="nn-rmsnorm", seed=0, points=points).points == points
    for wrong in (points[::-1], (points[0], points[0])):
        with pytest.raises(ValueError, match="ascending step, none twice"):
            TrainingCurve(implementation="nn-rmsnorm", seed=0, points=wrong)


@pytest.mark.parametrize("status", UNTIMED)
def test_a_curve_that_ended_early_says_why_and_no_other_does(status: Status) -> None:
    with pytest.raises(ValueError, match="has a reason"):
        TrainingCurve(implementation="nn-rmsnorm", seed=0, points=(), status=status)
    with pytest.raises(ValueError, match="has a reason"):
        TrainingCurve(implementation="nn-rmsnorm", seed=0, points=(), reason="why?")


@pytest.mark.parametrize(
    ("until", "status", "is_final", "final"),
    [
        (None, Status.OK, True, 2.0),
        (350, Status.OK, False, None),
        (-1, Status.OK, False, None),
        (350, Status.NOT_RUN, False, None),
        (350, Status.FAILED, True, None),
        (None, Status.FAILED, True, None),
        (-1, Status.OUT_OF_MEMORY, True, None),
    ],
)
def test_a_curve_is_final_at_its_last_step_or_with_a_status_that_is(
    until: int | None, status: Status, is_final: bool, final: float | None
) -> None:
    plan = make_training_plan()
    reason = None if status is Status.OK else "because"
    curve = make_curve("nn-rmsnorm", 0, 2.0, plan, until, status=status, reason=reason)

    assert curve.is_final(plan) is is_final
    assert curve.final(plan) == final
