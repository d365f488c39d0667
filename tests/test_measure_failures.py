from __future__ import annotations

import gc
import random
import weakref
from collections import Counter
from collections.abc import Callable

import pytest

from normbench import stats
from normbench.clock import Task
from normbench.failures import Failure
from normbench.measure import Progress
from normbench.records import Status
from tests.fakes import NAMES, fake_task, measure


def fails_from(count: int, name: str, error: BaseException, calls: Counter[str]) -> Callable[[], list[Task]]:
    """Tasks that count their calls; the one called ``name`` raises at its ``count``-th and later ones."""

    def make(task: str) -> Task:
        def call() -> None:
            calls[task] += 1
            if task == name and calls[task] >= count:
                raise error

        return fake_task(task, call)

    return lambda: [make(task) for task in NAMES]


@pytest.mark.parametrize("count", [1, 3, 4, 5, 30], ids=["pilot", "its end", "warming", "first", "later"])
def test_a_task_that_raises_is_contained_and_not_called_again(count: int) -> None:
    calls: Counter[str] = Counter()
    measured = measure(place=fails_from(count, "cand", RuntimeError("boom"), calls))
    assert dict(measured.failures) == {"cand": Failure(status=Status.FAILED, reason="RuntimeError: boom")}
    assert calls["cand"] == count
    assert len(stats.of_implementation(measured.samples, "base")) == 10 * 51
    assert len(stats.of_implementation(measured.samples, "floor")) == 10 * 51


def test_an_error_that_is_kept_does_not_keep_its_placements_buffers() -> None:
    buffers: list[weakref.ref[Task]] = []
    tasks_with_failure = fails_from(5, "cand", RuntimeError("boom"), Counter())

    def place() -> list[Task]:
        tasks = tasks_with_failure()
        buffers.extend(weakref.ref(task) for task in tasks)
        return tasks

    measured = measure(place=place, placements=5)
    assert set(measured.failures) == {"cand"}
    assert [ref() for ref in buffers] == [None] * 5 * len(NAMES)


def test_a_failing_baseline_ends_measuring_at_the_first_look() -> None:
    noise = random.Random(0)
    measured = measure(lambda _: noise.lognormvariate(0, 1), fails_from(60, "base", RuntimeError("boom"), Counter()))
    assert set(measured.failures) == {"base"}
    assert {s.placement for s in measured.samples} == set(range(10))


def test_measuring_ends_at_once_when_every_task_has_failed() -> None:
    calls: Counter[str] = Counter()
    told: list[Progress] = []
    measured = measure(
        place=lambda: [fails_from(1, name, RuntimeError(name), calls)()[NAMES.index(name)] for name in NAMES],
        on_progress=told.append,
    )
    assert set(measured.failures) == set(NAMES)
    assert calls == dict.fromkeys(NAMES, 1)
    assert measured.samples == ()
    assert [p.placements for p in told] == [1]


def test_what_one_process_failed_at_no_other_is_asked_for() -> None:
    calls: Counter[str] = Counter()
    measured = measure(place=fails_from(5, "cand", RuntimeError("boom"), calls), processes=5)
    assert set(measured.failures) == {"cand"}
    assert calls["cand"] == 5
    assert {s.process for s in stats.of_implementation(measured.samples, "base")} == set(range(5))


def test_an_interrupt_is_nobodys_failure_and_leaves_garbage_collection_on() -> None:
    with pytest.raises(KeyboardInterrupt):
        measure(place=fails_from(30, "cand", KeyboardInterrupt(), Counter()))
    assert gc.isenabled()


def test_garbage_collection_is_off_while_samples_are_taken_and_on_after() -> None:
    collecting: list[bool] = []

    def cost(_name: str) -> float:
        collecting.append(gc.isenabled())
        return 1.0

    assert gc.isenabled()
    measure(cost)
    pilot = 3 * len(NAMES)
    assert len(collecting) == pilot + 10 * 51 * len(NAMES)
    assert set(collecting[pilot:]) == {False}
    assert gc.isenabled()


def test_garbage_collection_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        measure(placements=2)
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("count", [1, 4, 5, 30], ids=["pilot", "warming", "first", "later"])
def test_what_a_task_does_to_others_is_its_own_failure_and_it_is_not_called_again(count: int) -> None:
    calls: Counter[str] = Counter()
    why = Failure(status=Status.INCORRECT, reason="changed torch's settings: threads 2 → 1")
    asked: list[int] = []
    told: list[Failure] = []

    def watch() -> Failure | None:
        asked.append(calls.total())
        if calls["cand"] < count or told:
            return None
        told.append(why)
        return why

    measured = measure(place=fails_from(10**9, "cand", RuntimeError(), calls), watch=watch)
    assert measured.failures == {"cand": why}
    assert calls["cand"] == (3 if count == 1 else count), "the pilot's three calls are one turn"
    assert len(asked) == len(set(asked)), "asked after each turn, once"
    kept = stats.of_implementation(measured.samples, "cand")
    assert len(kept) == max(0, count - 4), "what was timed is kept"


def test_who_raises_is_said_to_have_raised_whatever_else_it_did() -> None:
    why = Failure(status=Status.INCORRECT, reason="changed something")
    calls: Counter[str] = Counter()
    measured = measure(
        place=fails_from(1, "cand", RuntimeError("boom"), calls), watch=lambda: why if calls["cand"] == 1 else None
    )
    assert measured.failures["cand"].reason == "RuntimeError: boom"
