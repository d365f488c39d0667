from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from normbench import compilation
from normbench.device import CpuDevice
from normbench.errors import StorageError, UsageError
from normbench.implementations import Implementation
from normbench.implementations.base import binding
from normbench.records import DType, Op, Status, TrainingCurve
from normbench.training.checkpoints import Checkpoint
from normbench.training.corpora import Text, blocks
from normbench.training.pace import TrainingProgress
from normbench.training.trainer import Trainer
from tests.helpers import COMPILED_EAGERLY, own
from tests.minute import EAGER, LAYERNORM, RMSNORM, make_texts, make_trainer, make_training

pytestmark = pytest.mark.usefixtures("one_thread")

ORDER = [(1, "nn-layernorm"), (1, "nn-rmsnorm"), (2, "nn-layernorm"), (2, "nn-rmsnorm")]
Forward = Callable[[torch.Tensor, torch.Tensor | None, torch.Tensor | None, float], torch.Tensor]


def rms(x: torch.Tensor, gain: torch.Tensor | None, _bias: torch.Tensor | None, eps: float) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), gain, eps)


def finals(curves: list[TrainingCurve], trainer: Trainer) -> list[TrainingCurve]:
    return [curve for curve in curves if curve.is_final(trainer.training)]


class Stop:
    """Asks to stop once so many steps have been made; ``told`` counts them."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.made = 0
        self.waiting = 0

    def told(self, progress: TrainingProgress) -> None:
        assert self.waiting or progress.step == 0, "steps are made where an interrupt may wait"
        self.made = progress.made

    @property
    def is_asked_for(self) -> bool:
        return self.made >= self.after

    @contextmanager
    def may_wait(self) -> Iterator[None]:
        self.waiting += 1
        yield
        self.waiting -= 1


def test_every_implementation_is_trained_from_every_seed_seeds_outermost() -> None:
    trainer = make_trainer()
    curves = list(trainer.run())

    assert [(curve.seed, curve.implementation) for curve in finals(curves, trainer)] == ORDER
    assert [len(curve.points) for curve in curves] == [1, 2, 3, 4] * 4
    assert [point.step for point in curves[3].points] == [0, 2, 4, 6]
    assert {curve.status for curve in curves} == {Status.OK}


def test_each_curve_is_the_one_before_with_a_point_more() -> None:
    curves = list(make_trainer().run())

    assert all(curves[i].points == curves[i + 1].points[:-1] for i in range(15) if i % 4 != 3)


def test_what_is_done_is_not_done_again() -> None:
    trainer = make_trainer()
    whole, rest = list(trainer.run()), list(trainer.run(done={ORDER[0], ORDER[2]}))

    assert rest == [curve for curve in whole if curve.implementation == "nn-rmsnorm"]
    assert list(trainer.run(done=ORDER)) == []


def test_the_same_norm_under_another_name_gives_the_same_curve_to_the_last_bit() -> None:
    trainer = make_trainer(RMSNORM, replace(RMSNORM, name="own-twin"))
    one, twin, *_others = finals(list(trainer.run()), trainer)

    assert one.points == twin.points


def test_seeds_and_the_seed_of_the_plan_give_other_weights_and_other_curves() -> None:
    points = {
        finals(list(trainer.run()), trainer)[index].points
        for trainer in (make_trainer(LAYERNORM), make_trainer(LAYERNORM, seed=1))
        for index in (0, 1)
    }

    assert len(points) == 4
    assert len({first.bits_per_byte for first, *_others in points}) == 4


def test_a_model_learns_with_either_norm() -> None:
    training = make_training(steps=400, learning_rate=1e-2, evaluate_every=400, seeds=(1,))
    trainer = make_trainer(training=training)
    for curve in finals(list(trainer.run()), trainer):
        assert curve.points[0].bits_per_byte > 7.5
        assert curve.points[-1].bits_per_byte < 4


def test_norms_that_are_wrong_are_not_trained_and_the_others_are() -> None:
    wrong = own(Op.RMSNORM, lambda x, gain, bias, eps: rms(x, gain, bias, eps) * 1.01, name="own-wrong")
    trainer = make_trainer(LAYERNORM, wrong, RMSNORM, training=make_training(seeds=(1,)))
    base, refused, other = finals(list(trainer.run()), trainer)

    assert (refused.status, refused.points) == (Status.INCORRECT, ())
    assert refused.reason is not None
    assert refused.reason.startswith("norm 1 of 3: ")
    assert base.final(trainer.training) is not None
    assert other.final(trainer.training) is not None


def fails_at(call: int, error: BaseException) -> Implementation:
    """A right norm whose forward raises at a call, counted over all norms of a model."""

    def build(setting: Any) -> Any:
        calls = 0

        def forward(x: torch.Tensor, gain: Any, bias: Any, eps: float) -> torch.Tensor:
            nonlocal calls
            calls += 1
            if calls == call:
                raise error
            return rms(x, gain, bias, eps)

        return binding(forward, setting.eps)

    return replace(own(Op.RMSNORM, rms, name="own-fragile"), build=build)


@pytest.mark.parametrize("error", [ValueError("no more"), SystemExit("no more"), GeneratorExit("no more")])
@pytest.mark.parametrize(("call", "points"), [(1, 0), (5, 0), (22, 1)])
def test_whatever_a_norm_raises_ends_its_own_run_alone(error: BaseException, call: int, points: int) -> None:
    trainer = make_trainer(LAYERNORM, fails_at(call, error), RMSNORM, training=make_training(seeds=(1,)))
    _base, failed, other = finals(list(trainer.run()), trainer)

    assert (failed.status, failed.reason) == (Status.FAILED, f"{type(error).__name__}: no more")
    assert len(failed.points) == points
    assert other.final(trainer.training) is not None


def test_want_of_memory_is_its_own_status() -> None:
    trainer = make_trainer(fails_at(22, MemoryError("none")), training=make_training(seeds=(1,)))

    assert list(trainer.run())[-1].status is Status.OUT_OF_MEMORY


def test_an_interrupt_inside_a_norm_is_not_its_failure() -> None:
    trainer = make_trainer(fails_at(22, KeyboardInterrupt()), training=make_training(seeds=(1,)))
    curves = []
    with pytest.raises(KeyboardInterrupt):
        curves.extend(trainer.run())


def test_a_failure_of_whoever_is_told_is_not_the_norms() -> None:
    def told(progress: TrainingProgress) -> None:
        if progress.step == 1:
            raise UsageError("nobody listens")

    with pytest.raises(UsageError, match="nobody listens"):
        list(make_trainer(told=told).run())


def test_what_diverges_ends_with_the_step_and_keeps_its_points() -> None:
    trainer = make_trainer(training=make_training(learning_rate=1e30, seeds=(1,)))
    last = list(trainer.run())

    for curve in finals(last, trainer):
        assert curve.status is Status.FAILED
        assert curve.reason is not None
        assert curve.reason.startswith("diverged at step ")
        assert curve.points[0].step == 0
        assert all(math.isfinite(point.bits_per_byte) for point in curve.points)


def test_norms_that_go_on_with_the_gain_that_they_saw_first_are_not_trained() -> None:
    class Stale(torch.autograd.Function):
        """A norm that goes on with the gain that it saw first; its gradients are right."""

        @staticmethod
        def forward(context: Any, x: Any, gain: Any, first: Any, eps: Any) -> Any:
            context.save_for_backward(x, gain)
            context.eps = eps
            return rms(x, first, None, eps)

        @staticmethod
        def backward(context: Any, dy: Any) -> Any:  # type: ignore[override]
            x, gain = (tensor.detach().requires_grad_() for tensor in context.saved_tensors)
            with torch.enable_grad():
                dx, dgain = torch.autograd.grad(rms(x, gain, None, context.eps), (x, gain), dy)
            return dx, dgain, None, None

    def build(setting: Any) -> Any:
        def bind(gain: Any, _bias: Any) -> Any:
            first = gain.detach().clone()
            return lambda x: Stale.apply(x, gain, first, setting.eps)

        return bind

    stale = replace(own(Op.RMSNORM, rms, name="own-stale"), build=build)
    (curve,) = make_trainer(stale, training=make_training(seeds=(1,))).run()

    assert (curve.status, curve.points) == (Status.INCORRECT, ())
    assert str(curve.reason).startswith("norm ")


def test_norms_that_go_wrong_while_they_learn_are_found_out() -> None:
    def build(setting: Any) -> Any:
        calls = 0

        def forward(x: torch.Tensor, gain: Any, bias: Any, eps: float) -> torch.Tensor:
            nonlocal calls
            calls += 1
            return rms(x, gain, bias, eps) * (1.0 if calls < 25 else 1.01)

        return binding(forward, setting.eps)

    tired = replace(own(Op.RMSNORM, rms, name="own-tired"), build=build)
    trainer = make_trainer(tired, training=make_training(seeds=(1,)))
    curves = list(trainer.run())

    assert [curve.status for curve in curves] == [Status.OK] * 3 + [Status.INCORRECT]
    assert curves[-1].points == ()
    assert str(curves[-1].reason).startswith("after training, norm ")


def test_what_can_not_run_here_says_so() -> None:
    absent = replace(RMSNORM, name="own-absent", unsupported=lambda _setting, _device: "needs a moon")
    trainer = make_trainer(LAYERNORM, absent, training=make_training(seeds=(1,)))
    refused = list(trainer.run())[-1]

    assert (refused.status, refused.reason, refused.points) == (Status.UNSUPPORTED, "needs a moon", ())


@pytest.mark.parametrize("after", range(13))
def test_a_run_stopped_anywhere_goes_on_to_the_same_points(after: int, tmp_path: Path) -> None:
    training = make_training(seeds=(1,))
    whole = finals(list(make_trainer(training=training).run()), make_trainer(training=training))
    stop = Stop(after)
    kept: dict[tuple[int, str], TrainingCurve] = {}
    path = tmp_path / "state"
    trainer = make_trainer(training=training, checkpoint=path, interruption=stop, told=stop.told)
    for curve in trainer.run():
        kept[curve.seed, curve.implementation] = curve
    assert stop.made == after
    done = {key for key, curve in kept.items() if curve.is_final(training)}
    before = {key: curve for key, curve in kept.items() if key not in done}
    first = True
    for curve in make_trainer(training=training, checkpoint=path).run(done):
        if first and before:
            assert [curve] == list(before.values())
        first = False
        kept[curve.seed, curve.implementation] = curve

    assert list(kept.values()) == whole
    assert not path.exists()
    assert bool(before) is (after % 6 > 0)


def test_a_stop_keeps_what_was_evaluated_and_makes_no_step_more(tmp_path: Path) -> None:
    stop = Stop(5)
    trainer = make_trainer(checkpoint=tmp_path / "state", interruption=stop, told=stop.told)
    curves = list(trainer.run())

    assert [point.step for point in curves[-1].points] == [0, 2, 4]
    assert stop.made == 5
    assert (tmp_path / "state").exists()


def test_what_is_resumed_makes_no_step_twice(tmp_path: Path) -> None:
    stop, told = Stop(5), []
    training = make_training(seeds=(1,))
    list(make_trainer(training=training, checkpoint=tmp_path / "s", interruption=stop, told=stop.told).run())
    list(make_trainer(training=training, checkpoint=tmp_path / "s", told=told.append).run())

    assert [progress.step for progress in told[:5]] == [0, 4, 5, 6, 0]
    assert [progress.left for progress in told[:5]] == [12, 8, 7, 6, 6]
    assert told[3].made == 2


def killed(trainer: Trainer, after: int) -> list[TrainingCurve]:
    """The curves of a trainer that ends without a word once it has given so many."""
    found: list[TrainingCurve] = []
    for curve in trainer.run():
        found.append(curve)
        if len(found) == after:
            break
    return found


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_run_killed_between_writing_and_being_read_gives_its_curve_first(after: int, tmp_path: Path) -> None:
    found = killed(make_trainer(checkpoint=tmp_path / "state"), after)
    again = list(make_trainer(checkpoint=tmp_path / "state").run())

    assert again[0] == found[-1]
    assert again[1:] == list(make_trainer().run())[after:]


def test_a_run_killed_at_its_end_is_final_at_once(tmp_path: Path) -> None:
    found = killed(make_trainer(checkpoint=tmp_path / "state"), 4)
    told: list[TrainingProgress] = []
    again = make_trainer(checkpoint=tmp_path / "state", told=told.append).run()

    assert next(again) == found[-1]
    assert next(again).implementation == "nn-rmsnorm"
    assert [(progress.made, progress.step) for progress in told] == [(0, 0), (0, 6), (0, 0)]


CHANGES: dict[str, dict[str, Any]] = {
    "steps": {"steps": 8},
    "rate": {"learning_rate": 1e-3},
    "clip": {"clip": 2.0},
    "batches": {"held_out_batches": 2},
    "dtype": {"dtype": DType.BF16},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_state_of_another_plan_is_passed_over_and_removed(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "state"
    killed(make_trainer(checkpoint=path), 2)
    training = make_training(**change)
    curves = make_trainer(training=training, checkpoint=path).run()

    assert [point.step for point in next(curves).points] == [0]
    assert list(curves)[-1].is_final(training)
    assert not path.exists()


def test_a_state_of_another_seed_of_the_plan_or_another_text_is_passed_over(tmp_path: Path) -> None:
    path, texts = tmp_path / "state", (make_texts()[0], Text.of("prose", blocks(b"other words" * 5000)))
    others = [
        make_trainer(seed=1, checkpoint=path),
        make_trainer(EAGER, checkpoint=path),
        make_trainer(training=make_training(texts), texts=texts, checkpoint=path),
    ]
    for other in others:
        killed(make_trainer(checkpoint=path), 2)
        assert len(next(other.run()).points) == 1


def test_a_state_is_of_use_to_the_same_run_in_a_plan_of_more_seeds(tmp_path: Path) -> None:
    path = tmp_path / "state"
    found = killed(make_trainer(checkpoint=path), 2)
    more = make_trainer(training=make_training(seeds=(1, 2, 3)), checkpoint=path)

    assert next(more.run()) == found[-1]


def test_a_state_that_can_not_be_read_is_passed_over_and_removed(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"no state")
    trainer = make_trainer(checkpoint=tmp_path / "state")

    assert list(trainer.run()) == list(make_trainer().run())
    assert not (tmp_path / "state").exists()


def test_a_state_that_can_not_be_written_ends_the_training_by_name(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="gone"):
        list(make_trainer(checkpoint=tmp_path / "gone" / "state").run())


def test_the_state_of_a_failed_run_is_removed(tmp_path: Path) -> None:
    fragile = fails_at(22, ValueError("no more"))
    list(make_trainer(fragile, training=make_training(seeds=(1,)), checkpoint=tmp_path / "state").run())

    assert not (tmp_path / "state").exists()


def test_progress_counts_runs_and_steps_and_tells_how_long_the_rest_will_take() -> None:
    clock = iter(range(1000))
    told: list[TrainingProgress] = []
    trainer = make_trainer(told=told.append, now=lambda: float(next(clock)))
    list(trainer.run(done={ORDER[0]}))

    assert [progress.step for progress in told] == [0, 1, 2, 3, 4, 5, 6] * 3
    assert [(p.number, p.count, p.seed, p.implementation) for p in told[::7]] == [
        (number, 4, seed, name) for number, (seed, name) in enumerate(ORDER[1:], start=2)
    ]
    assert (told[0].left, told[0].made, told[0].seconds_left) == (18, 0, None)
    assert (told[-1].left, told[-1].made, told[-1].seconds_left) == (0, 18, 0)
    assert told[6].seconds_left == told[6].seconds / 6 * 12 == 7 / 6 * 12


def test_texts_that_are_not_the_plans_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^prose, code: not the texts"):
        make_trainer(texts=make_texts()[::-1])
    with pytest.raises(UsageError, match="too few for a context"):
        make_trainer(training=make_training(shape=replace(make_training().shape, context=30_000)))


@pytest.mark.parametrize("changes", [{"dtype": DType.BF16}, {"autocast": DType.BF16}], ids=str)
def test_models_are_trained_in_the_plans_formats(changes: dict[str, Any]) -> None:
    training = make_training(steps=200, learning_rate=1e-2, evaluate_every=200, seeds=(1,), **changes)
    trainer = make_trainer(training=training)
    ends = [curve.final(training) for curve in finals(list(trainer.run()), trainer)]

    assert all(end is not None and 1 < end < 5 for end in ends)
    exact = make_trainer(training=replace(training, dtype=DType.FP32, autocast=None))
    assert ends != [curve.final(training) for curve in finals(list(exact.run()), exact)]


def test_norms_that_compile_are_evaluated_without_gradients_too() -> None:
    trainer = make_trainer(*COMPILED_EAGERLY, training=make_training(seeds=(1,)))

    assert {curve.status for curve in trainer.run()} == {Status.OK}


@pytest.mark.skipif(compilation.missing_compiler("cpu") is not None, reason="no compiler here")
def test_a_compiled_model_is_trained_by_one_graph_and_learns_the_same() -> None:
    training = make_training(seeds=(1,))
    before = compilation.graph_count()
    trainer = make_trainer(RMSNORM, training=replace(training, compiled=True))
    compiled = list(trainer.run())[-1]
    eager = list(make_trainer(RMSNORM, training=training).run())[-1]

    assert compilation.graph_count() - before == 1
    assert compiled.final(training) == pytest.approx(eager.final(training), rel=1e-4)


def test_a_model_that_does_not_fit_is_not_attempted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CpuDevice, "free_bytes", lambda _device: 1000)
    curves = list(make_trainer(training=make_training(seeds=(1,))).run())

    assert {(curve.status, curve.points) for curve in curves} == {(Status.OUT_OF_MEMORY, ())}
    assert "not attempted" in str(curves[0].reason)


def test_a_state_that_can_not_be_restored_begins_the_run_again(tmp_path: Path) -> None:
    training, path = make_training(seeds=(1,)), tmp_path / "state"
    whole = finals(list(make_trainer(training=training).run()), make_trainer(training=training))
    trainer = make_trainer(training=training, checkpoint=path)
    run = trainer._runs(())[0]
    Checkpoint(path=path).write(trainer._key(run), {"model": {}, "optimizer": {}, "step": 2, "points": []})

    assert finals(list(trainer.run()), trainer) == whole
