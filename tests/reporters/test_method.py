"""How a run was measured and on what: as it was, not as it was asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from normbench.records import Cache, Precision, Run, Status
from normbench.reporters import method
from tests.runs import ADDING_TIMES, TIMES, make_adding_plan, make_device, make_environment, make_plan, make_run


def text_of(run: Run) -> str:
    return " ".join(method.sentences(run))


def measured(run: Run, *shape: tuple[int, int]) -> Run:
    """The run, of which results have so many placements and processes, in turn."""
    results = [
        replace(r, timing=replace(r.timing, placements=shape[n % len(shape)][0], processes=shape[n % len(shape)][1]))
        if r.timing
        else r
        for n, r in enumerate(run.results)
    ]
    return replace(run, results=tuple(results))


def test_it_says_how_many_placements_there_were_and_how_many_were_asked_for() -> None:
    run = make_run(make_plan(precision=Precision(placements=10)))

    assert "in 2 placements (fresh buffers at new addresses; 10 to 40 are asked for)" in text_of(run)
    assert "in 10 to 40 placements (" in text_of(measured(run, (10, 1), (40, 1)))
    assert "in no placement (" in text_of(make_run(times=dict.fromkeys(TIMES, Status.FAILED)))


def test_in_one_process_it_says_what_the_intervals_do_not_cover() -> None:
    text = text_of(make_run())

    assert "There is no interval below five placements. All in one process: another may find" in text
    assert "fresh processes" not in text


@pytest.mark.parametrize(
    ("shape", "said"), [(((10, 5), (20, 5)), "5 fresh processes"), (((10, 5), (20, 8)), "5 to 8 fresh processes")]
)
def test_over_processes_it_says_over_how_many_as_it_was(shape: tuple[tuple[int, int], ...], said: str) -> None:
    text = text_of(measured(make_run(), *shape))

    assert f"The placements are spread over {said}, since" in text
    assert "There is no interval below five processes." in text
    assert "All in one process" not in text


def test_when_measuring_stops_and_what_the_words_mean_are_the_plans_numbers() -> None:
    plan = make_plan(precision=Precision(target=0.005, margin=0.03, max_seconds=2.5))
    text = text_of(make_run(plan))

    assert "Measuring stops when every speedup is known to ±0.5 %, or after 2.5 s a cell." in text
    assert "the difference exceeds 3 %; same: the interval lies within 3 %." in text


def test_a_cpus_time_is_wall_time_and_a_gpus_is_of_the_device_with_wall_time_beside() -> None:
    cpu, gpu = text_of(make_run()), text_of(make_run(device=make_device(kind="cuda")))

    assert "Time is wall time with the thread count below." in cpu
    assert "wall: seconds of one call" not in cpu
    assert "Time is device time by CUDA events while the stream is held" in gpu
    assert "wall: seconds of one call as an eager loop feels it." in gpu


def test_graphs_are_explained_where_they_were_measured() -> None:
    run = make_run(make_plan(graphs=True), device=make_device(kind="cuda"))

    assert "as an eager loop feels it; graph: of one replay of the captured CUDA graph, back to back." in text_of(run)


def test_each_cache_state_of_the_plan_is_explained_and_no_other() -> None:
    cold, both = (text_of(make_run(make_plan(caches=caches))) for caches in ((Cache.COLD,), tuple(Cache)))

    assert "cold (the last-level cache is overwritten before each call, outside the clock)." in cold
    assert "warm (one untimed call" not in cold
    assert "warm (one untimed call of the same kind just before)" in both


def test_eps_seed_floor_and_compile_mode_are_the_plans() -> None:
    text = text_of(make_run(make_plan(eps=1e-5, seed=7)))

    assert "eps 1e-05 for all, biased variance, gain and bias seeded (seed 7), torch.compile mode default." in text
    assert "copy is the floor: it moves the bytes" in text


def test_what_the_run_was_made_on_is_listed_without_what_is_absent() -> None:
    device = make_device(
        kind="cuda", name="Some GPU", capability=(9, 0), cache_bytes=50 * 2**20, peak_bytes_per_s=3.35e12
    )
    software = make_environment(cuda="13.0", packages=(("liger", "1.0"),))
    rows = dict(method.environment(make_run(device=device, environment=software).header))

    assert rows["device"] == "Some GPU"
    assert (rows["compute capability"], rows["last-level cache"]) == ("9.0", "50.0 MiB")
    assert rows["bandwidth by its properties"] == "3350 GB/s"
    assert (rows["CUDA"], rows["liger"], rows["when (UTC)"]) == ("13.0", "1.0", "2026-01-02T03:04:05Z")
    assert not {"threads", "driver", "Triton"} & set(rows)


def test_of_a_residual_add_and_norm_it_says_what_is_computed_and_who_does_the_two_apart() -> None:
    text = text_of(make_run(make_adding_plan(), ADDING_TIMES))

    assert "computes h = x + residual and y, the norm of h, and returns both" in text
    assert "eager-add-rmsnorm and nn-add-layernorm add in a kernel of their own, before the norm" in text
    assert "add-copy is the floor: it moves the bytes that any residual add and norm must move" in text
    assert "residual" not in text_of(make_run())
    assert "copy is the floor: it moves the bytes that any norm must move" in text_of(make_run())


def test_where_nobody_does_the_two_apart_nothing_is_held_against_them() -> None:
    names = ("add-copy", "mine-add-rmsnorm", "compile-add-rmsnorm")
    plan = make_adding_plan(implementations=names, baseline="mine-add-rmsnorm")

    assert "kernel of their own" not in text_of(make_run(plan, dict.fromkeys(names, 1e-6)))
