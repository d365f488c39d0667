from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from normbench.gpu_acceptance import limits
from normbench.gpu_acceptance.criteria import CRITERIA
from normbench.gpu_acceptance.evidence import Evidence
from normbench.gpu_acceptance.lines import Line, Outcome, judged
from normbench.gpu_acceptance.packing import Left
from normbench.gpu_acceptance.running import Ending
from normbench.gpu_acceptance.tested import Ended, Test, Tests
from normbench.records import Flag, Status
from tests import runs
from tests.gpu_acceptance.good import LARGE, SMALL, TESTS, changed, diagnosis, evidence, passed, profile, sweep, told
from tests.step_runs import empty_run, failed_run

PARTS, GPU_TESTS, SPAN, DO_BENCH = (
    "parts of this command",
    "tests marked gpu",
    "device time against",
    "nn-layernorm in",
)
FLOOR, COLD, NOISE, BYTES = "floor in the largest", "floor in cold", "A/A noise", "op bytes of"
TIME, STATUS, ENDED, CHEATS = "time of eager", "cases with a final", "how cases ended", "wrong and cheating"
MEMORY, STAND_IN, COUNTED, LEFT = "out of memory", "what the stand-in", "bytes by hardware", "what this leaves"
ALL = (
    *(PARTS, GPU_TESTS, SPAN, DO_BENCH, FLOOR, COLD, NOISE, BYTES),
    *(TIME, STATUS, ENDED, CHEATS, MEMORY, STAND_IN, COUNTED, LEFT),
)
OF_TESTS = {GPU_TESTS, SPAN, DO_BENCH, CHEATS, MEMORY, STAND_IN}
WITHOUT_GPU = {PARTS, BYTES, STATUS, ENDED, LEFT}

FAILED = {"ended": Ended.FAILED, "reason": "it was not"}


def by_name(found: Evidence) -> dict[str, Line]:
    lines = judged(CRITERIA, found)
    return {name: line for name, line in zip(ALL, lines, strict=True) if line.what.startswith(name)}


def those(lines: dict[str, Line], outcome: Outcome) -> set[str]:
    return {name for name, line in lines.items() if line.outcome is outcome}


def test_on_a_gpu_as_it_should_be_every_line_holds() -> None:
    lines = by_name(evidence())
    assert set(lines) == set(ALL)
    assert {name: line.figure for name, line in lines.items() if line.outcome is not Outcome.HOLDS} == {}


@pytest.mark.parametrize(
    ("changes", "fails", "figure"),
    [
        ({"endings": (Ending(name="step", code=3, why="no memory"),)}, {PARTS}, "0 of 1; step: no memory"),
        ({"tests": told(other=passed("test_steps"))}, set(), ""),
        (
            {"tests": changed("test_device_time", **FAILED)},
            {GPU_TESTS, SPAN},
            "1.1 % at most (copy 16384x4096 bf16 forward) (test_it: it was not)",
        ),
        (
            {"tests": changed("test_do_bench", **FAILED, figures={})},
            {GPU_TESTS, DO_BENCH},
            "no figure: test_it: it was not",
        ),
        ({"tests": changed("test_cheats", **FAILED)}, {GPU_TESTS, CHEATS}, "0 of 1 (test_it: it was not)"),
        ({"tests": changed("test_out_of_memory", **FAILED)}, {GPU_TESTS, MEMORY}, "0 of 1 (test_it: it was not)"),
        (
            {"tests": changed("test_stand_in", **FAILED)},
            {GPU_TESTS, STAND_IN},
            "0 of 1 (test_it: it was not); 1,000,000 cycles: 0.6 ms",
        ),
        (
            {"sweeps": {"large": sweep(of_peak=0.74)}},
            {FLOOR},
            "74 % of 4800 GB/s (3550 GB/s at 32768×4096 bf16 forward",
        ),
        ({"sweeps": {"large": sweep(of_peak=1.06)}}, {COLD}, "106 % at most, at 32768×4096 bf16 forward"),
        ({"diagnosis": diagnosis(0.001, 0.0051)}, {NOISE}, "0.51 % at most of 2 (32768×4096 bf16 forward"),
        (
            {"profiles": {"profile": profile(chain_bytes=40), "c": profile(counters=True)}},
            {BYTES},
            "20.00× x's, 10.00×",
        ),
        ({"sweeps": {"large": sweep(eager_rmsnorm=8e-4)}}, {TIME}, "time 6.02×, bytes 9.00×: 33 % off (at"),
        ({"sweeps": {"large": sweep(eager_rmsnorm=Status.NOT_RUN), "also": sweep()}}, {STATUS}, "of "),
        (
            {"sweeps": {"large": sweep(nn_rmsnorm=Status.INCORRECT), "also": sweep()}},
            {ENDED},
            "nn-rmsnorm at 32768×4096",
        ),
        ({"steps": {"step": empty_run()}}, {STATUS}, " cases"),
        ({"unread": {"sweep-bf16": "cut off"}}, {STATUS}, "sweep-bf16: cut off"),
        ({"left": Left(files=7, bytes=2**20)}, {LEFT}, "1.00 MiB in 9 files"),
        ({"left": Left(files=6, bytes=limits.MOST_BYTES + 1)}, {LEFT}, "30.0 MiB in 8 files"),
    ],
    ids=lambda value: "+".join(sorted(value)) if isinstance(value, set) else "",
)
def test_a_line_fails_with_its_figure_where_that_is_beyond_its_limit_and_no_other_does(
    changes: dict[str, Any], fails: set[str], figure: str
) -> None:
    lines = by_name(evidence(**changes))
    assert those(lines, Outcome.FAILS) == fails
    assert those(lines, Outcome.NOT_SHOWN) <= {ENDED}, "of what is missing it is not known how it would have ended"
    assert not fails or any(figure in lines[name].figure for name in fails), [lines[name].figure for name in fails]


def test_a_case_that_is_unsupported_is_no_failure_and_one_that_failed_is_named_with_its_reason() -> None:
    assert (
        those(by_name(evidence(sweeps={"l": sweep(copy=Status.UNSUPPORTED), "m": sweep()})), Outcome.FAILS) == set()
    )
    line = by_name(evidence(steps={"step": failed_run()}))[ENDED]
    assert line.outcome is Outcome.FAILS
    assert " is failed: " in line.figure or " is incorrect: " in line.figure


@pytest.mark.parametrize(
    ("changes", "hidden"),
    [
        (
            {"tests": None, "unread": {"tests": "not run: pytest not installed"}},
            {GPU_TESTS, SPAN, DO_BENCH, CHEATS, MEMORY, STAND_IN},
        ),
        ({"tests": told(test_do_bench=None)}, {DO_BENCH, GPU_TESTS}),
        ({"tests": changed("test_do_bench", ended=Ended.SKIPPED, reason="Triton is not installed")}, {DO_BENCH}),
        ({"tests": changed("test_do_bench", figures={})}, {DO_BENCH}),
        ({"diagnosis": None}, {NOISE}),
        ({"diagnosis": diagnosis()}, {NOISE}),
        ({"sweeps": {}}, {FLOOR, COLD}),
        ({"profiles": {}}, {BYTES, TIME, COUNTED}),
        ({"profiles": {"profile": profile()}}, {COUNTED}),
        ({"left": None}, {LEFT}),
        ({"endings": ()}, {PARTS}),
        ({"endings": (Ending(name="step", why="not begun: the time was over", is_cut=True),)}, {PARTS}),
    ],
)
def test_what_nothing_can_be_judged_by_is_not_shown_and_says_why(changes: dict[str, Any], hidden: set[str]) -> None:
    lines = by_name(evidence(**changes))
    assert those(lines, Outcome.NOT_SHOWN) == hidden
    assert those(lines, Outcome.FAILS) == set()
    assert all(lines[name].figure for name in hidden)


def test_where_nothing_was_found_nothing_holds() -> None:
    assert those(by_name(Evidence(on_gpu=True)), Outcome.HOLDS) == set()
    assert those(by_name(Evidence(on_gpu=False)), Outcome.HOLDS) == set()


def test_without_a_gpu_every_line_about_one_says_so_whatever_was_found() -> None:
    lines = by_name(evidence(on_gpu=False, tests=changed("test_cheats", **FAILED)))
    assert those(lines, Outcome.NO_GPU) == set(ALL) - WITHOUT_GPU
    assert {line.figure for name, line in lines.items() if name not in WITHOUT_GPU | {GPU_TESTS}} == {""}
    assert lines[GPU_TESTS].figure == "rehearsed on a stand-in: 4 passed, 1 failed (test_it: it was not)"


def test_the_largest_figure_of_several_tests_is_the_one_that_is_shown() -> None:
    more = passed("test_device_time", off_by="0.025", where="eager-rmsnorm")
    assert by_name(evidence(tests=told(more=more)))[SPAN].figure == "2.5 % at most (eager-rmsnorm)"


def test_what_is_skipped_is_told_with_its_reasons() -> None:
    skipped = {
        f"s{at}": Test(
            module="test_packages", name=f"test_{at}", ended=Ended.SKIPPED, reason=f"package {at} is not installed"
        )
        for at in range(5)
    }
    figure = by_name(evidence(tests=told(**skipped)))[GPU_TESTS].figure
    assert figure.startswith(f"{len(TESTS)} passed, 0 failed, 5 skipped (package 0 is not installed; ")
    assert figure.endswith("; and 2 more)")


def test_a_cell_that_the_cache_holds_in_part_is_told_and_not_judged_by_the_peak() -> None:
    """What it writes may lie in the cache when it has ended."""
    small = sweep(replace(LARGE, rows=(4096,)), of_peak=1.6)
    line = by_name(evidence(sweeps={"small": small, "large": sweep()}))[COLD]
    assert line.outcome is Outcome.HOLDS
    assert line.figure.startswith("85 % at most, at 32768×4096 bf16 forward")
    assert "; 160 % at 4096×4096 bf16 forward" in line.figure
    assert line.figure.endswith(", which the cache holds in part")


def test_counters_that_may_not_be_read_say_why_and_fail_nothing() -> None:
    counting = profile(counters=True)
    profiles = tuple(replace(one, counted=None, counted_reason="ERR_NVGPUCTRPERM") for one in counting.profiles)
    refused = replace(counting, profiles=profiles)
    line = by_name(evidence(profiles={"profile": profile(), "profile-counted": refused}))[COUNTED]
    assert (line.outcome, line.figure) == (Outcome.NOT_PERMITTED, "ERR_NVGPUCTRPERM")


def test_counted_bytes_are_a_multiple_of_the_op_bytes() -> None:
    assert by_name(evidence())[COUNTED].figure == "eager-rmsnorm 0.750×, nn-rmsnorm 0.750×"


def reached(module: str, count: int) -> Tests:
    """There are so many tests in a module, of which one was reached, and passed."""
    return replace(told(), collected={**told().collected, module: count})


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("test_device_time", SPAN),
        ("test_do_bench", DO_BENCH),
        ("test_cheats", CHEATS),
        ("test_out_of_memory", MEMORY),
        ("test_stand_in", STAND_IN),
    ],
)
def test_tests_that_were_not_all_reached_show_nothing_and_a_failed_one_still_fails(module: str, line: str) -> None:
    cut = by_name(evidence(tests=reached(module, 7)))
    assert those(cut, Outcome.NOT_SHOWN) == {line, GPU_TESTS}
    assert cut[line].figure.endswith("; only 1 of 7 tests were reached")

    failed = replace(changed(module, **FAILED), collected={module: 7})
    assert {line, GPU_TESTS} <= those(by_name(evidence(tests=failed)), Outcome.FAILS)


def test_where_nobody_told_how_many_tests_there_are_nothing_is_shown_by_them() -> None:
    lines = by_name(evidence(tests=Tests(tests=told().tests)))
    assert those(lines, Outcome.NOT_SHOWN) == OF_TESTS


@pytest.mark.parametrize("figure", ["nan", "inf", "0.031", "-nan"])
def test_a_figure_beyond_its_limit_fails_whatever_its_test_said_of_it(figure: str) -> None:
    more = passed("test_device_time", off_by=figure, where="nn-rmsnorm")
    line = by_name(evidence(tests=told(more=more)))[SPAN]
    assert line.outcome is Outcome.FAILS
    assert "(nn-rmsnorm)" in line.figure


def test_a_figure_that_can_not_be_read_costs_its_own_line() -> None:
    lines = by_name(evidence(tests=changed("test_do_bench", figures={"off_by": "fast"})))
    assert those(lines, Outcome.FAILS) == {DO_BENCH}
    assert lines[DO_BENCH].figure.startswith("it could not be judged: ValueError")


def test_times_that_are_not_the_devices_alone_are_not_judged() -> None:
    shared = {"large": runs.flagged(sweep(), Flag.SHARED_DEVICE), "small": sweep(SMALL)}
    profiles = {name: runs.flagged(run, Flag.QUEUE_NOT_HELD) for name, run in evidence().profiles.items()}
    lines = by_name(evidence(sweeps=shared, profiles=profiles))
    assert lines[TIME].outcome is Outcome.NOT_SHOWN
    assert "32768×4096" not in lines[FLOOR].figure


def test_sweeps_of_another_device_are_no_evidence() -> None:
    other = replace(sweep(), header=replace(sweep().header, device=runs.make_device()))
    for sweeps in ({"a": other}, {"a": sweep(), "b": other}):
        lines = by_name(evidence(sweeps=sweeps))
        assert {FLOOR, COLD} <= those(lines, Outcome.NOT_SHOWN)


def test_without_the_size_of_the_cache_no_cell_is_known_to_be_beyond_it() -> None:
    header = replace(sweep().header, device=replace(sweep().header.device, cache_bytes=None))
    line = by_name(evidence(sweeps={"a": replace(sweep(), header=header)}))[COLD]
    assert (line.outcome, line.figure) == (Outcome.NOT_SHOWN, "the device does not tell the size of its cache")


def test_what_the_time_was_over_for_is_not_shown_and_fails_nothing() -> None:
    over = Ending(name="sweep-cut", code=130, why="its 90 s were over: it kept what it had", is_cut=True)
    sweeps = {"sweep-cut": sweep(nn_rmsnorm=Status.NOT_RUN), "sweep-bf16-large": sweep()}
    lines = by_name(evidence(endings=(over,), sweeps=sweeps))
    assert those(lines, Outcome.NOT_SHOWN) == {PARTS, STATUS, ENDED}
    assert those(lines, Outcome.FAILS) == set()


def test_where_nothing_ran_but_what_is_unsupported_nothing_is_shown() -> None:
    none = dict.fromkeys(("copy", "nn_layernorm", "nn_rmsnorm", "eager_rmsnorm"), Status.UNSUPPORTED)
    lines = by_name(evidence(sweeps={"a": sweep(**none)}, profiles={}, steps={}))
    assert lines[ENDED].outcome is Outcome.NOT_SHOWN
