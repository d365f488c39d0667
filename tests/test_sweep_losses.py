"""What a sweep makes of benches that are lost, by benches that are lost as told."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from normbench.bench import BenchError, BenchLost, Job, Pending, Prepared
from normbench.compilation import Graph
from normbench.entrants import Admission
from normbench.errors import NormbenchError
from normbench.failures import Failure
from normbench.profiling.case import Profiled
from normbench.records import Accuracy, Case, CellRecords, DType, Op, Plan, Spent, Status
from normbench.rounds import Pace, Placed
from normbench.sweeping import Sweep
from tests.fakes import THREE, FakeDevice, Watcher, fake_sweep, plan_of, quickly, row
from tests.helpers import make_sample, own

CRASH = Failure(status=Status.FAILED, reason="its process was ended by SIGSEGV (segmentation fault)")
NAMES = tuple(implementation.name for implementation in THREE)
_, BASELINE, CANDIDATE = NAMES


@dataclass
class Bench:
    """Says that all is well and takes a millisecond a call, except for what it is told to raise, one a cell begun."""

    preparing: list[Exception | None] = field(default_factory=list)
    measuring: list[Exception | None] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    finished: int = 0

    def prepare(self, job: Job) -> Pending[Prepared]:
        self.jobs.append(job)
        error = self.preparing.pop(0) if self.preparing else None
        accuracy = Accuracy(max_abs_error=0.0, max_rel_error=0.0, out_dtype=DType.FP32)
        admission = Admission(accuracy=accuracy, compile_s=None, flags=())
        names = [name for name in (*NAMES, job.twin) if name and name not in job.without]

        def answer() -> Prepared:
            if error:
                raise error
            return Prepared(admissions=dict.fromkeys(names, admission), compiling_s=0.0)

        return answer

    def measure(self, placement: int, _pace: Pace, names: Collection[str]) -> Placed:
        error = self.measuring.pop(0) if self.measuring else None
        if error:
            raise error
        samples = tuple(make_sample(_seconds(name, placement), name, placement=placement) for name in names)
        return Placed(samples=samples, failures={}, spent=Spent())

    def audit(self, _names: Collection[str]) -> Mapping[str, Failure]:
        return {}

    def profile(self, _names: Collection[str]) -> tuple[Profiled, ...]:
        raise NotImplementedError

    def finish(self) -> None:
        self.finished += 1

    def compile(self, _cases: Sequence[tuple[Case, Path]]) -> Pending[list[Graph | None]]:
        raise NotImplementedError


def _seconds(name: str, placement: int) -> float:
    """About a millisecond; ratios differ from placement to placement, so that they are never known well."""
    return 1e-3 * (1 + 0.1 * ((placement * len(name)) % 5))


def run(bench: Bench, **options: Any) -> list[CellRecords]:
    plan: Plan = plan_of(THREE, **options)
    sweep = Sweep(plan=plan, implementations=THREE, device=FakeDevice(), benches=[bench], observer=Watcher())
    return list(sweep.run())


def statuses(records: CellRecords) -> list[Status]:
    return [row(records, name).status for name in NAMES]


@pytest.mark.parametrize("when", ["preparing", "measuring"])
def test_the_cell_is_measured_again_without_the_culprit(when: str) -> None:
    bench = Bench(**{when: [BenchLost(CANDIDATE, CRASH)]})
    (records,) = run(bench)
    assert statuses(records) == [Status.OK, Status.OK, Status.FAILED]
    assert row(records, CANDIDATE).reason == CRASH.reason
    assert [job.without for job in bench.jobs] == [frozenset(), {CANDIDATE}]
    assert bench.finished == 2, "also after the attempt that was lost"


def test_samples_of_an_attempt_that_was_lost_are_not_among_the_cells() -> None:
    (records,) = run(Bench(measuring=[None, None, BenchLost(CANDIDATE, CRASH)]))
    counts = [sum(s.implementation == name for s in records.samples) for name in NAMES]
    assert counts[0] == counts[1] >= 5
    assert counts[2] == 0


def test_the_second_one_of_an_a_a_test_is_the_baseline() -> None:
    (records,) = run(Bench(measuring=[BenchLost(f"{BASELINE} again", CRASH)]))
    assert statuses(records) == [Status.OK, Status.FAILED, Status.OK]


def test_a_loss_that_is_nobodys_is_tried_once_more() -> None:
    (records,) = run(Bench(preparing=[BenchLost(None, CRASH)]))
    assert statuses(records) == [Status.OK] * 3


@pytest.mark.parametrize("culprit", ["of another plan", None])
def test_who_is_blamed_and_does_not_take_part_is_nobody(culprit: str | None) -> None:
    bench = Bench(preparing=[BenchLost(culprit, CRASH)] * 9)
    (records,) = run(bench)
    assert statuses(records) == [Status.FAILED] * 3
    assert len(bench.jobs) == 2, "and nothing goes on for ever"


def test_a_second_loss_that_is_nobodys_is_everyones_who_is_still_there() -> None:
    told = Failure(status=Status.TIMED_OUT, reason="too slow")
    bench = Bench(preparing=[BenchLost(CANDIDATE, told), BenchLost(None, CRASH), BenchLost(None, CRASH)])
    first, second = run(bench, widths=(64, 32))
    assert statuses(first) == [Status.FAILED, Status.FAILED, Status.TIMED_OUT]
    assert statuses(second) == [Status.OK] * 3, "the next cell is another matter"


def test_values_that_cannot_be_had_are_the_whole_cells_failure() -> None:
    why = Failure(status=Status.OUT_OF_MEMORY, reason="can't allocate memory")
    first, second = run(Bench(preparing=[BenchError(why)]), widths=(64, 32))
    assert statuses(first) == [Status.OUT_OF_MEMORY] * 3
    assert statuses(second) == [Status.OK] * 3


def test_larger_sizes_of_who_was_out_of_memory_are_skipped_and_say_so() -> None:
    why = Failure(status=Status.OUT_OF_MEMORY, reason="killed by the system")
    bench = Bench(preparing=[BenchLost(CANDIDATE, why)])
    first, second, third = run(bench, widths=(64, 128, 32))
    assert [statuses(records)[2] for records in (first, second, third)] == [
        Status.OUT_OF_MEMORY,
        Status.OUT_OF_MEMORY,
        Status.OK,
    ]
    assert row(second, CANDIDATE).reason == "not attempted: out_of_memory at 12×64 already"
    assert statuses(second)[:2] == [Status.OK, Status.OK]


def test_a_bench_that_cannot_be_had_any_more_ends_the_sweep() -> None:
    with pytest.raises(NormbenchError, match="can't be started"):
        run(Bench(preparing=[BenchLost(CANDIDATE, CRASH), NormbenchError("can't be started")]))


def test_a_device_that_no_longer_answers_ends_the_sweep_and_says_what_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(_self: FakeDevice) -> int:
        raise RuntimeError("CUDA error: device unavailable\nmore")

    monkeypatch.setattr(FakeDevice, "free_bytes", gone)
    with pytest.raises(
        NormbenchError, match="does not answer any more: RuntimeError: CUDA error: device unavail"
    ) as e:
        run(Bench())
    assert e.value.exit_code == 3
    assert "--resume" in (e.value.hint or "")


class Asked:
    """An interruption that is asked for after so many placements."""

    def __init__(self, after: int) -> None:
        self._left = after

    @property
    def is_asked_for(self) -> bool:
        self._left -= 1
        return self._left < 0

    def may_wait(self) -> Any:
        return nullcontext()


@pytest.mark.parametrize(("after", "status"), [(2, Status.NOT_RUN), (6, Status.OK)])
def test_an_interrupted_cell_is_the_last_one_and_has_times_where_it_had_enough_placements(
    after: int, status: Status
) -> None:
    sweep = Sweep(
        plan=plan_of(THREE, widths=(64, 32), precision=quickly(target=1e-9)),
        implementations=THREE,
        device=FakeDevice(),
        benches=[Bench()],
        observer=Watcher(),
        interruption=Asked(after),
    )
    (records,) = sweep.run()
    assert statuses(records) == [status] * 3
    assert {sample.placement for sample in records.samples} == set(range(after + 1))
    if status is Status.NOT_RUN:
        assert row(records, BASELINE).reason == "interrupted after 3 of at least 5 placements"


def test_without_isolation_a_device_that_is_broken_for_good_ends_the_sweep() -> None:
    device = FakeDevice()

    def breaks(*_: Any) -> Any:
        device.broken = True
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    sweep = fake_sweep((*THREE, own(Op.RMSNORM, breaks, name="breaker")), device=device)
    with pytest.raises(NormbenchError, match="works no longer in this process") as raised:
        sweep.run()
    assert "--resume" in (raised.value.hint or "")
