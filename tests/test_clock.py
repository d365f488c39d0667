from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from normbench.clock import Task, WallClock
from normbench.records import Cache, Spent
from tests.fakes import Output, Timer, fake_task

PREPARE_S, CALL_S, PENDING_S, FLUSH_S = 16.0, 0.25, 0.125, 4.0


class Bench:
    """A wall clock on fake time whose tasks write down what happens, in order.

    A call takes ``CALL_S`` and leaves ``PENDING_S`` of work behind that only a synchronisation waits for.
    """

    def __init__(self) -> None:
        self.log: list[str] = []
        self.timer = Timer()
        self._pending = 0.0
        self.clock = WallClock(flush=self._spends("flush", FLUSH_S), synchronize=self._synchronize, now=self._now)

    def task(self, *, repeatable: bool = True) -> Task:
        return Task(name="it", prepare=self._prepare, repeatable=repeatable, context=self._context)

    def seconds(self, calls: int, cache: Cache, *, repeatable: bool = True) -> float:
        return self.clock.time(self.task(repeatable=repeatable), calls=calls, cache=cache).seconds

    def _now(self) -> float:
        self.log.append("now")
        return self.timer()

    def _spends(self, name: str, seconds: float) -> Callable[[], None]:
        def spend() -> None:
            self.log.append(name)
            self.timer.advance(seconds)

        return spend

    def _prepare(self) -> Callable[[], object]:
        self._spends("prepare", PREPARE_S)()
        return self._call

    def _call(self) -> Output:
        self._spends("call", CALL_S)()
        self._pending += PENDING_S
        return Output(self.log)

    def _synchronize(self) -> None:
        self._spends("synchronize", self._pending)()
        self._pending = 0.0

    @contextmanager
    def _context(self) -> Iterator[None]:
        self.log.append("enter")
        yield
        self.log.append("exit")


UNTIMED = ["prepare", "call", "drop"]


def test_a_warm_batch_makes_one_untimed_call_then_times_its_calls_after_one_preparation() -> None:
    bench = Bench()
    assert bench.seconds(3, Cache.WARM) == 3 * CALL_S + 3 * PENDING_S
    timed = ["call", "drop", "call", "drop", "call"]
    assert bench.log == [
        "now", "enter", *UNTIMED, "now",
        "prepare", "synchronize", "now", *timed, "synchronize", "now", "drop", "exit",
    ]  # fmt: skip


def test_what_the_untimed_call_left_pending_is_not_in_a_warm_sample() -> None:
    assert Bench().seconds(1, Cache.WARM) == CALL_S + PENDING_S


def test_each_call_of_a_backward_has_its_own_fresh_forward_outside_the_clock() -> None:
    bench = Bench()
    assert bench.seconds(2, Cache.WARM, repeatable=False) == 2 * (CALL_S + PENDING_S)
    single = ["now", "prepare", "now", "synchronize", "now", "call", "synchronize", "now", "drop"]
    assert bench.log == ["now", "enter", *UNTIMED, "now", *single, *single, "exit"]


@pytest.mark.parametrize("repeatable", [True, False])
def test_a_cold_sample_empties_the_cache_before_each_call_after_its_preparation(repeatable: bool) -> None:
    bench = Bench()
    assert bench.seconds(2, Cache.COLD, repeatable=repeatable) == 2 * (CALL_S + PENDING_S)
    single = ["now", "prepare", "now", "flush", "synchronize", "now", "call", "synchronize", "now", "drop"]
    assert bench.log == ["now", "enter", "now", *single, *single, "exit"]


PAIR_S = CALL_S + PENDING_S


@pytest.mark.parametrize(
    ("cache", "repeatable", "spent"),
    [
        (Cache.WARM, True, Spent(timed_s=2 * PAIR_S, warming_s=PREPARE_S + CALL_S)),
        (
            Cache.WARM,
            False,
            Spent(
                timed_s=2 * PAIR_S,
                warming_s=PREPARE_S + CALL_S,
                preparing_s=2 * PREPARE_S,
                flushing_s=PENDING_S,  # what the untimed call left behind
            ),
        ),
        (Cache.COLD, True, Spent(timed_s=2 * PAIR_S, preparing_s=2 * PREPARE_S, flushing_s=2 * FLUSH_S)),
    ],
)
def test_a_sample_says_what_taking_it_cost_each_apart(cache: Cache, repeatable: bool, spent: Spent) -> None:
    bench = Bench()
    assert bench.clock.time(bench.task(repeatable=repeatable), calls=2, cache=cache).spent == spent


@pytest.mark.parametrize("cache", Cache)
@pytest.mark.parametrize("repeatable", [True, False])
def test_two_results_never_live_at_once_and_none_dies_inside_the_clock_after_the_last_call(
    cache: Cache, repeatable: bool
) -> None:
    bench = Bench()
    bench.seconds(4, cache, repeatable=repeatable)
    alive = 0
    for event in bench.log:
        alive += (event == "call") - (event == "drop")
        assert alive in (0, 1)
    assert alive == 0
    assert bench.log[-3:] == ["now", "drop", "exit"]


def test_a_wall_clock_needs_no_device_to_wait_for_and_names_itself() -> None:
    timer = Timer()
    clock = WallClock(flush=lambda: None, now=timer)
    timed = clock.time(fake_task("it", lambda: timer.advance(0.5)), calls=4, cache=Cache.WARM)
    assert (timed.seconds, timed.clock) == (2.0, "wall")


def test_the_context_is_left_when_a_call_raises() -> None:
    bench = Bench()

    def fail() -> None:
        raise RuntimeError("no")

    task = Task(name="it", prepare=lambda: fail, repeatable=True, context=bench.task().context)
    with pytest.raises(RuntimeError, match="no"):
        bench.clock.time(task, calls=1, cache=Cache.COLD)
    assert bench.log == ["now", "enter", "now", "now", "now", "flush", "synchronize", "now"]


def test_a_tasks_single_run_prepares_and_calls_in_its_context() -> None:
    bench = Bench()
    result = bench.task().run()
    assert isinstance(result, Output)
    assert bench.log == ["enter", "prepare", "call", "exit"]
