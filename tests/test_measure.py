from __future__ import annotations

import itertools
import weakref
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from normbench import stats
from normbench.clock import Task
from normbench.measure import Progress
from normbench.records import Flag, Reading, Sample
from normbench.rounds import Batching, Pace
from tests.fakes import NAMES, TRUE_S, FakeClock, Timer, fake_task, measure

PILOT_CALLS = 3


def alternating(first: float, second: float) -> tuple[Callable[[], list[Task]], FakeClock]:
    """A candidate whose buffers lie well and badly in turn, so that its interval is never a point."""
    luck = itertools.cycle((first, second))
    now = [first]

    def place() -> list[Task]:
        now[0] = next(luck)
        return [fake_task(name) for name in NAMES]

    return place, FakeClock(lambda name: now[0] if name == "cand" else TRUE_S[name])


def rounds_of(samples: Sequence[Sample]) -> dict[tuple[int, int], list[str]]:
    """Per placement and round the names in the order in which they were timed."""
    found: dict[tuple[int, int], list[str]] = {}
    for sample in samples:
        assert sample.position == len(found.setdefault((sample.placement, sample.round), []))
        found[sample.placement, sample.round].append(sample.implementation)
    return found


def test_known_times_give_exactly_their_ratio() -> None:
    samples = measure().samples
    ratio = stats.ratio_estimate(stats.of_implementation(samples, "base"), stats.of_implementation(samples, "cand"))
    assert ratio is not None
    assert (ratio.low, ratio.value, ratio.high) == (0.5, 0.5, 0.5)


def test_every_round_times_every_task_once_in_an_order_of_its_own() -> None:
    orders = rounds_of(measure().samples)
    assert all(sorted(order) == sorted(NAMES) for order in orders.values())
    assert {tuple(order) for order in orders.values()} == set(itertools.permutations(NAMES))


def test_the_orders_are_the_same_for_the_same_seed_and_others_for_another() -> None:
    assert rounds_of(measure(seed=1).samples) == rounds_of(measure(seed=1).samples)
    assert rounds_of(measure(seed=1).samples) != rounds_of(measure(seed=2).samples)


def test_the_pilots_times_are_no_samples() -> None:
    asked: Counter[str] = Counter()

    def cost(name: str) -> float:
        asked[name] += 1
        return 100.0 if asked[name] <= PILOT_CALLS else 1.0

    samples = measure(cost).samples
    assert {sample.seconds for sample in samples} == {1.0}
    assert sum(asked.values()) == len(samples) + PILOT_CALLS * len(NAMES)


@pytest.mark.parametrize(("seconds", "calls"), [(1.0, 1), (150e-6, 1), (10e-6, 20), (1e-6, 64), (1e-9, 64)])
def test_a_sample_holds_the_calls_that_last_200_microseconds_up_to_64(seconds: float, calls: int) -> None:
    assert Batching().calls(seconds) == calls
    samples = measure(dict.fromkeys(NAMES, seconds), placements=5).samples
    assert {(s.calls, s.seconds) for s in samples} == {(calls, calls * seconds)}


@pytest.mark.parametrize(
    ("spread", "placements"),
    [(0.0, 10), (0.007, 20), (0.011, 40), (0.5, 40)],
    ids=["no noise", "settled at 20", "settled at 40", "never settled"],
)
def test_measuring_stops_at_10_20_or_40_placements_when_the_interval_is_narrow(
    spread: float, placements: int
) -> None:
    place, clock = alternating(2.0 * (1 - spread), 2.0 * (1 + spread))
    told: list[Progress] = []
    samples = measure(clock, place, on_progress=told.append).samples
    assert {s.placement for s in samples} == set(range(placements))
    assert [p.placements for p in told] == list(range(1, placements + 1))
    assert [p.settled for p in told] == [False] * (placements - 1) + [spread < 0.5]


def test_measuring_stops_at_the_budget_when_a_placement_is_complete() -> None:
    place, clock = alternating(1.5, 2.5)  # rounds of 3 s and 4 s, after a pilot of 9 s
    told: list[Progress] = []
    samples = measure(clock, place, max_seconds=100.0, on_progress=told.append).samples
    assert [p.seconds for p in told] == [12.0, 20.0, 29.0, 37.0, 46.0, 54.0, 63.0, 71.0, 80.0, 88.0, 97.0, 105.0]
    assert [p.rounds for p in told] == [1, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2]
    assert all(len(order) == len(NAMES) for order in rounds_of(samples).values())


@pytest.mark.parametrize(
    ("max_seconds", "rounds"),
    [(1e6, 51), (12 * 40 * 3.5, 12), (40 * 3.5, 4), (20 * 3.5, 2), (1.0, 1)],
    ids=["at most", "the last look fits", "the first look fits", "fewer than 9", "at least"],
)
def test_an_expensive_round_costs_rounds_rather_than_placements(max_seconds: float, rounds: int) -> None:
    assert sum(TRUE_S.values()) == 3.5
    told: list[Progress] = []
    measure(max_seconds=max_seconds, on_progress=told.append)
    assert {p.rounds for p in told[1:] or told} == {rounds}, "the first has the pilot in its time"
    assert told[-1].placements >= 5 or told[-1].seconds >= 3 * max_seconds


@pytest.mark.parametrize(
    ("rounds", "seconds", "enough"),
    [
        (8, 2.0, False),
        (9, 2.0, True),
        (9, 0.9, False),
        (9, 0.91, True),
        (51, 0.5, True),
        (1, 2.1, True),
        (1, 2.0, False),
    ],
)
def test_a_placement_is_complete_after_9_rounds_and_its_share_of_the_time(
    rounds: int, seconds: float, enough: bool
) -> None:
    assert Pace(share_s=1.0, most_s=4.0).is_enough(rounds, seconds) is enough


def test_processes_take_turns_and_each_times_in_an_order_of_its_own() -> None:
    samples = measure(processes=5).samples
    assert list(dict.fromkeys((s.placement, s.process) for s in samples)) == list(
        itertools.product(range(2), range(5))
    )
    of_process = [rounds_of([s for s in samples if s.process == process]) for process in range(5)]
    assert all(one != other for one, other in itertools.pairwise(of_process))


def test_each_placements_tasks_live_until_the_next_ones_are_made() -> None:
    log: list[str] = []
    number = itertools.count()

    def place() -> list[Task]:
        placement = next(number)
        tasks = [fake_task(name) for name in NAMES]
        weakref.finalize(tasks[0], log.append, f"gone {placement}")
        log.append(f"made {placement}")
        return tasks

    measure(place=place, placements=5)
    following = [word for n in range(1, 5) for word in (f"made {n}", f"gone {n - 1}")]
    assert log == ["made 0", *following, "gone 4"]


def test_the_second_clock_times_every_task_once_a_placement_and_does_not_move_the_ratio() -> None:
    wall = FakeClock({"base": 3.0, "floor": 3.0, "cand": 3.0}, name="wall")
    samples = measure(wall=wall, placements=5).samples
    walls = [s for s in samples if s.clock == "wall"]
    assert Counter((s.placement, s.implementation) for s in walls) == Counter(itertools.product(range(5), NAMES))
    assert {s.seconds for s in walls} == {3.0}
    assert {s.round for s in walls} == {1 + max(s.round for s in samples if s.clock == "fake")}
    assert {s.placement for s in samples} == set(range(5)), "settled by the first clock's times"


def test_the_second_clocks_noise_does_not_keep_measuring_from_settling() -> None:
    noise = itertools.cycle((1.0, 9.0, 1.0, 1.0))
    samples = measure(wall=FakeClock(lambda _: next(noise), name="wall"), max_seconds=90.0).samples
    assert {s.round for s in samples} == {0, 1, 2}, "one or two rounds, and one of the second clock"
    assert {s.placement for s in samples} == set(range(10))


def test_the_device_is_read_once_a_round_and_every_sample_of_the_round_says_what_it_said() -> None:
    count = itertools.count()
    samples = measure(reading=lambda: Reading(sm_clock_hz=float(next(count)))).samples
    said: dict[tuple[int, int], set[Reading | None]] = {}
    for sample in samples:
        said.setdefault((sample.placement, sample.round), set()).add(sample.reading)
    assert list(said.values()) == [{Reading(sm_clock_hz=float(n))} for n in range(10 * 51)]


def test_a_clock_that_slows_to_85_percent_half_way_leaves_the_ratio_at_1() -> None:
    """N24: one after the other, the second of two equal tasks would come out 17.6 % slower."""
    timer = Timer()
    half_s = 10 * 51 * 2 * 200e-6 / 2
    clock = FakeClock(lambda _: 10e-6 if timer() < half_s else 10e-6 / 0.85, timer)
    names = ("base", "cand")
    samples = measure(clock, names=names, max_seconds=10.0).samples
    base, cand = (stats.of_implementation(samples, name) for name in names)
    assert {s.seconds_per_call for s in samples} == {10e-6, 10e-6 / 0.85}
    ratio = stats.ratio_estimate(cand, base)
    assert ratio is not None
    assert [ratio.low, ratio.value, ratio.high] == pytest.approx([1.0, 1.0, 1.0], abs=1e-9)
    assert Flag.DRIFTED in stats.sample_flags(cand, 10)
