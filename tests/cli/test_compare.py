from __future__ import annotations

import json
import subprocess
import sys
from math import exp
from pathlib import Path
from typing import Any

import pytest

from normbench.records import CellRecords, Sample, Status
from normbench.storage import RunFolder
from tests.cli.command import normbench
from tests.helpers import make_sample
from tests.runs import TIMES, Times, make_device, make_environment, make_header, make_plan, make_records

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # importing it is an error
from normbench.cli import main
sys.argv = ["normbench", "compare", *sys.argv[1:]]
main()
"""

A_US = (100, 101, 99, 100, 160)
B_US = (105, 104, 106, 105, 104)

SLOWER: Times = {**TIMES, "nn-rmsnorm": 3e-6}
FASTER: Times = {**TIMES, "nn-rmsnorm": 1e-6}


def samples_of(times: Times, placements: int, rounds: tuple[float, ...]) -> tuple[Sample, ...]:
    """Placements a thousandth apart, of rounds that are these many times the time."""
    return tuple(
        make_sample(time * factor * exp(0.001 * placement), name, placement=placement, round=round_)
        for placement in range(placements)
        for round_, factor in enumerate(rounds)
        for name, time in times.items()
        if not isinstance(time, Status)
    )


def write(
    path: Path, times: Times = TIMES, *, placements: int = 5, rounds: tuple[float, ...] = (1.0, 1.0), **changes: Any
) -> Path:
    """A run folder with enough placements for intervals."""
    plan, count = changes.pop("plan", make_plan()), changes.pop("cells", None)
    folder = RunFolder.create(path, make_header(plan, **changes))
    for cell in list(plan.cells())[:count]:
        records = make_records(cell, times, plan)
        folder.write(
            CellRecords(
                cell=cell,
                results=records.results,
                comparisons=records.comparisons,
                samples=samples_of(times, placements, rounds),
            )
        )
    return path


def compared(*words: str | Path) -> dict[str, Any]:
    """The JSON of a comparison."""
    done = normbench("compare", *words, "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert isinstance(found, dict)
    return found


def change_of(found: dict[str, Any], name: str) -> dict[str, Any]:
    (change,) = [each for each in found["changes"] if each["implementation"] == name]
    assert isinstance(change, dict)
    return change


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_two_runs_are_compared_case_by_case_and_left_as_they_are(tmp_path: Path) -> None:
    base, head = write(tmp_path / "before"), write(tmp_path / "after", FASTER)
    before = contents(base), contents(head)
    done = normbench("compare", base, head)

    assert (done.code, done.err) == (0, "")
    assert "HEAD (after) against BASE (before): of 3 cases 1 faster and 2 same, margin 2 %." in done.out
    assert str(tmp_path) not in done.out
    assert (contents(base), contents(head)) == before


@pytest.mark.parametrize(("base_us", "head_us", "speedup"), [(A_US, B_US, 100 / 105), (B_US, A_US, 1.05)])
def test_one_round_that_was_far_off_decides_nothing(
    tmp_path: Path, base_us: tuple[int, ...], head_us: tuple[int, ...], speedup: float
) -> None:
    """Medians of 100 and 105: A is 1.05 times as fast, though its mean is the larger."""
    times = dict.fromkeys(TIMES, 1e-6)
    base = write(tmp_path / "base", times, rounds=tuple(map(float, base_us)))
    head = write(tmp_path / "head", times, rounds=tuple(map(float, head_us)))
    change = change_of(compared(base, head), "nn-rmsnorm")

    assert change["speedup"] == pytest.approx(speedup)
    assert change["outcome"] == ("faster" if speedup > 1 else "slower")


def test_speedups_of_a_half_and_of_2_have_a_geometric_mean_of_1(tmp_path: Path) -> None:
    head = {**TIMES, "nn-rmsnorm": 4e-6, "eager-rmsnorm": 4e-6}
    found = compared(write(tmp_path / "base"), write(tmp_path / "head", head))

    assert [change_of(found, n)["speedup"] for n in ("nn-rmsnorm", "eager-rmsnorm")] == pytest.approx([0.5, 2.0])
    assert found["geometric_means"][-1] == {"implementation": None, "speedup": pytest.approx(1.0), "cases": 3}


def test_relative_cancels_what_the_machine_did_to_the_whole_run(tmp_path: Path) -> None:
    slow = {name: time * 1.3 for name, time in FASTER.items() if not isinstance(time, Status)}
    base, head = write(tmp_path / "base"), write(tmp_path / "head", slow)
    plain, relative = compared(base, head), compared(base, head, "--relative")

    assert change_of(plain, "nn-rmsnorm")["speedup"] == pytest.approx(2 / 1.3)
    assert change_of(relative, "nn-rmsnorm")["speedup"] == pytest.approx(2.0)
    assert change_of(relative, "eager-rmsnorm")["outcome"] == "same"
    assert plain["floor_speedup"] == pytest.approx(1 / 1.3)
    assert relative["floor_speedup"] == pytest.approx(1.0)


def test_relative_to_unlike_baselines_nothing_can_be_compared(tmp_path: Path) -> None:
    base, head = write(tmp_path / "base"), write(tmp_path / "head", plan=make_plan(baseline="nn-rmsnorm"))
    done = normbench("compare", base, head, "--relative")

    assert (done.code, done.out) == (3, "")
    assert "--relative: the baseline is nn-layernorm in BASE and nn-rmsnorm in HEAD" in done.err
    assert normbench("compare", base, head).code == 0


@pytest.mark.parametrize("gate", [(), ("--fail-on", "slower:60%"), ("--fail-on", "slower:0.6")])
def test_without_a_gate_or_below_its_threshold_slower_is_no_failure(tmp_path: Path, gate: tuple[str, ...]) -> None:
    done = normbench("compare", write(tmp_path / "base"), write(tmp_path / "head", SLOWER), *gate)

    assert (done.code, done.err) == (0, "")
    assert "1 slower" in done.out


@pytest.mark.parametrize("gate", ["slower:5%", "slower:0.05", "slower"])
@pytest.mark.parametrize("style", ["table", "markdown", "json"])
def test_a_decided_regression_ends_with_1_after_everything_is_printed(tmp_path: Path, gate: str, style: str) -> None:
    base, head = write(tmp_path / "base"), write(tmp_path / "head", SLOWER)
    done = normbench("compare", base, head, "--fail-on", gate, "--format", style)

    assert done.code == 1
    assert "nn-rmsnorm" in done.out
    assert done.err.startswith("error: 1 of 3 cases is slower by more than ")
    assert "the worst nn-rmsnorm 32×64 fp32 forward warm at 0.667 [" in done.err


def test_slower_alone_means_the_margin_of_base(tmp_path: Path) -> None:
    base, head = write(tmp_path / "base"), write(tmp_path / "head", {**TIMES, "nn-rmsnorm": 2.07e-6})

    assert normbench("compare", base, head, "--fail-on", "slower").code == 1
    assert normbench("compare", base, head, "--fail-on", "slower:5%").code == 0
    assert compared(base, base, "--fail-on", "slower")["gate"]["threshold"] == 0.02


@pytest.mark.parametrize("status", ["incorrect", "failed", "timed_out", "out_of_memory"])
def test_a_case_that_broke_is_a_regression_only_for_a_gate(tmp_path: Path, status: str) -> None:
    base, head = write(tmp_path / "base"), write(tmp_path / "head", {**TIMES, "nn-rmsnorm": Status(status)})
    gated = normbench("compare", base, head, "--fail-on", "slower:5%")

    assert normbench("compare", base, head).code == 0
    assert gated.code == 1
    assert (
        f"1 case that had a time broke, the first nn-rmsnorm 32×64 fp32 forward warm: {status}: because" in gated.err
    )


def test_a_case_that_is_no_longer_supported_is_named_and_no_regression(tmp_path: Path) -> None:
    base, head = write(tmp_path / "base"), write(tmp_path / "head", {**TIMES, "nn-rmsnorm": Status.UNSUPPORTED})
    done = normbench("compare", base, head, "--fail-on", "slower:5%")

    assert done.code == 0
    assert "nn-rmsnorm: ok in BASE, unsupported in HEAD, fp32 forward at width 64: because" in done.out


@pytest.mark.parametrize("gate", [(), ("--fail-on", "slower:5%")])
def test_where_no_case_has_a_time_in_both_there_is_nothing_to_compare(tmp_path: Path, gate: tuple[str, ...]) -> None:
    base, head = write(tmp_path / "base"), write(tmp_path / "head", plan=make_plan(widths=(128,)))
    done = normbench("compare", base, head, *gate)

    assert done.code == 3
    assert "only in BASE: " in done.out
    assert "only in HEAD: " in done.out
    assert done.err.startswith("error: nothing to compare: no case has a time in both runs")


def test_where_everything_broke_a_gate_says_so(tmp_path: Path) -> None:
    base, head = write(tmp_path / "base"), write(tmp_path / "head", dict.fromkeys(TIMES, Status.FAILED))

    assert normbench("compare", base, head).code == 3
    assert normbench("compare", base, head, "--fail-on", "slower").code == 1


def test_a_gate_that_can_judge_nothing_does_not_pass(tmp_path: Path) -> None:
    base, head = write(tmp_path / "base", placements=4), write(tmp_path / "head", SLOWER)
    done = normbench("compare", base, head, "--fail-on", "slower:5%")

    assert done.code == 3
    assert "--fail-on: no case has an interval in both runs" in done.err
    assert normbench("compare", base, head).code == 0


@pytest.mark.parametrize(
    "value", ["faster", "faster:5%", "slower:", "slower:x", "slower:0%", "slower:100%", "slower5%", ""]
)
def test_a_gate_that_is_not_understood_is_bad_usage_before_anything_is_read(value: str) -> None:
    done = normbench("compare", "nowhere", "nowhere", "--fail-on", value)

    assert (done.code, done.out) == (2, "")
    assert "--fail-on" in done.err
    assert "allowed: " in done.err


@pytest.mark.parametrize("words", [("--format", "html"), ("--format", "markdown", "--json"), ("--format", "")])
def test_a_format_that_is_not_known_is_bad_usage(words: tuple[str, ...]) -> None:
    done = normbench("compare", "nowhere", "nowhere", *words)

    assert (done.code, done.out) == (2, "")
    assert "--format" in done.err


def test_json_may_be_asked_for_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "base")

    assert normbench("compare", path, path, "--json", "--format", "json") == normbench(
        "compare", path, path, "--json"
    )


def test_environments_that_differ_are_a_warning_and_no_failure(tmp_path: Path) -> None:
    base = write(tmp_path / "base")
    head = write(tmp_path / "head", device=make_device(name="Other CPU"), environment=make_environment(torch="3.0"))
    done = normbench("compare", base, head, "--fail-on", "slower")

    assert done.code == 0
    assert "warning: the runs differ in device: Some CPU in BASE, Other CPU in HEAD" in done.out
    assert "warning: the runs differ in torch: 2.13.0 in BASE, 3.0 in HEAD" in done.out


def test_the_same_folder_twice_is_the_same_everywhere(tmp_path: Path) -> None:
    path = write(tmp_path / "base")
    found = compared(path, path, "--fail-on", "slower:1%")

    assert {change["outcome"] for change in found["changes"]} == {"same"}
    assert "BASE and HEAD are the same run: nothing can have changed" in found["notes"]


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("run.json", '{"schema": 4}', "run.json: schema is 4, this version reads 2 and 3"),
        ("samples.csv", "a,b\n", "samples.csv: line 1: these are not the columns of this version"),
        ("results.csv", "", "results.csv: line 1: these are not the columns of this version"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_the_exit_code_is_3(
    tmp_path: Path, side: int, file: str, text: str, said: str
) -> None:
    folders = [write(tmp_path / "base"), write(tmp_path / "head")]
    (folders[side] / file).write_text(text, encoding="utf-8")
    done = normbench("compare", *folders, "--fail-on", "slower")

    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"error: {folders[side]}/{said}")


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    done = normbench("compare", write(tmp_path / "base"), tmp_path)

    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"error: {tmp_path}/run.json: can't be read: ")


def test_an_interrupted_run_is_compared_as_far_as_it_got(tmp_path: Path) -> None:
    plan = make_plan(widths=(64, 128))
    base, head = write(tmp_path / "base", plan=plan), tmp_path / "head"
    folder = RunFolder.create(head, make_header(plan))
    cell = next(plan.cells())
    records = make_records(cell, TIMES, plan)
    folder.write(
        CellRecords(cell=cell, results=records.results, comparisons=(), samples=samples_of(TIMES, 5, (1.0,)))
    )
    with (head / "samples.csv").open("a", encoding="utf-8") as file:
        file.write("norm,forward,32,128,fp32,fp32,,warm,nn-rmsn")
    found = compared(base, head)

    assert {change["width"] for change in found["changes"]} == {64}
    assert {case["width"] for case in found["only_in_base"]} == {128}
    assert "HEAD is incomplete: 1 cell is missing" in found["notes"]


def test_markdown_goes_to_stdout(tmp_path: Path) -> None:
    done = normbench("compare", write(tmp_path / "base"), write(tmp_path / "head"), "--format", "markdown")

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("**HEAD (head) against BASE (base): of 3 cases 3 same, margin 2 %.**\n")


def test_the_help_says_what_fails() -> None:
    text = " ".join(normbench("compare", "--help").out.split())

    assert "incorrect, failed, timed_out or out_of_memory in HEAD" in text
    assert "3 where no case has a time in both runs" in text


def test_comparing_needs_no_torch(tmp_path: Path) -> None:
    paths = [str(write(tmp_path / "base")), str(write(tmp_path / "head"))]
    command = [sys.executable, "-c", WITHOUT_TORCH, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_head_that_is_incomplete_does_not_pass_a_gate(tmp_path: Path) -> None:
    base = write(tmp_path / "base", plan=make_plan(widths=(64, 128)))
    head = write(tmp_path / "head", plan=make_plan(widths=(64, 128)), cells=1)
    done = normbench("compare", base, head, "--fail-on", "slower")

    assert done.code == 3
    assert done.err.startswith("error: --fail-on: HEAD is incomplete, 1 cell is missing")
    assert normbench("compare", base, head).code == 0


def test_times_of_unlike_clocks_are_not_compared(tmp_path: Path) -> None:
    base = write(tmp_path / "base")
    head = write(tmp_path / "head", device=make_device(kind="cuda"))
    done = normbench("compare", base, head, "--fail-on", "slower")

    assert (done.code, done.out) == (3, "")
    assert "BASE is of a cpu, HEAD of a cuda" in done.err


@pytest.mark.parametrize("style", ["table", "markdown", "json"])
def test_a_full_disk_is_no_regression(tmp_path: Path, style: str) -> None:
    base, head = write(tmp_path / "base"), write(tmp_path / "head")
    command = [sys.executable, "-m", "normbench", "compare", base, head, "--format", style, "--fail-on", "slower"]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=120)

    assert done.returncode == 3
    assert done.stderr.startswith("error: stdout can't be written")
