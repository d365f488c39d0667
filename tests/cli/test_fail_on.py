"""``sweep --fail-on``: the exit code, what stands in the folder, and what a later report says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Done, normbench
from tests.cli.timed import ENOUGH, USUAL_S, tell
from tests.repositories import FAST, FILE, WRONG, Repository

PAIR = (f"base={FILE}:rmsnorm@HEAD~1", f"head={FILE}:rmsnorm")


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository whose folder is the current one; and nothing is drawn."""
    made = Repository(tmp_path / "repo")
    made.commit(FAST)
    monkeypatch.chdir(made.folder)
    monkeypatch.setattr("normbench.reporters.plots.draw", lambda _run, _most=None: iter(()))
    tell(monkeypatch)
    return made


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, repository: Repository) -> Repository:
    """The same with another commit, whose head takes twice as long."""
    repository.commit(FAST)
    tell(monkeypatch, {"head": 2 * USUAL_S})
    return repository


def sweep(*words: str, widths: str = "64") -> Done:
    return normbench("sweep", *ENOUGH, "--widths", widths, "--out", "run", *words)


def against(*words: str) -> Done:
    return sweep("--impls", *PAIR, *words)


def verdict() -> str:
    return Path("run", "verdict.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("slow")
def test_a_slower_head_ends_with_1_and_every_report_says_why() -> None:
    done = against("--fail-on", "slower:5%")

    assert done.code == 1
    assert (
        "error: --fail-on: head is slower than base by an estimate of more than 5 % in 1 of 1 comparison" in done.err
    )
    assert "times base's speed" in done.err
    assert "Gate: failed: head is slower than base" in done.out
    assert "- Gate: failed: head is slower than base" in verdict()
    assert "Gate: failed: head is slower than base" in Path("run", "report.html").read_text(encoding="utf-8")


def test_the_same_code_passes(repository: Repository) -> None:
    repository.commit(FAST)

    done = against("--fail-on", "slower:5%")

    assert done.code == 0, done.err
    assert "Gate: passed: head not shown to be slower than base by an estimate of more than 5 %" in verdict()


@pytest.mark.usefixtures("slow")
def test_without_it_a_slower_head_ends_with_0() -> None:
    assert against().code == 0
    assert "Gate" not in verdict()


def test_a_wrong_head_ends_with_1(repository: Repository) -> None:
    repository.commit(WRONG)

    done = against("--fail-on", "slower")

    assert done.code == 1
    assert "the first that broke is head at 32×64 fp32 forward: incorrect: " in done.err


def test_a_wrong_base_ends_with_3(repository: Repository) -> None:
    repository.commit(WRONG)
    repository.commit(FAST)

    done = against("--fail-on", "slower:5%")

    assert done.code == 3
    assert "1 case could not be judged" in done.err
    assert "not judged: the baseline has no time here" in done.out


@pytest.mark.usefixtures("slow")
def test_an_interrupted_run_ends_as_an_interrupt_does(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.cli.test_sweep import stop_after

    stop_after(monkeypatch, 1)

    done = sweep("--widths", "128", "--impls", *PAIR, "--fail-on", "slower:5%")

    assert done.code == 130
    assert "Gate: failed" in verdict()


def test_an_incomplete_run_that_passes_so_far_ends_with_3(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.cli.test_sweep import stop_after

    repository.commit(FAST)
    with monkeypatch.context() as patched:
        stop_after(patched, 1)
        sweep("--widths", "128", "--impls", *PAIR, "--fail-on", "slower:5%")

    assert "Gate: not judged" in normbench("report", "run").out
    done = normbench("sweep", "--resume", "run")
    assert done.code == 0, done.err
    assert "Gate: passed" in done.out


def test_where_nothing_is_brought_the_candidates_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    tell(monkeypatch, {"eager-rmsnorm": 2 * USUAL_S})
    done = sweep("--impls", "eager-rmsnorm", "--fail-on", "slower:5%")

    assert done.code == 1
    assert "eager-rmsnorm is slower than nn-layernorm" in done.err


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("faster", "--fail-on: 'faster' is not known"),
        ("slower:", "--fail-on slower: '' is not a fraction"),
        ("slower:0", "--fail-on slower: '0' is not a fraction"),
        ("slower:100%", "--fail-on slower: '100%' is not a fraction"),
    ],
)
def test_what_is_no_threshold_is_refused_before_anything_runs(value: str, said: str) -> None:
    done = sweep("--fail-on", value)

    assert done.code == 2
    assert said in done.err
    assert not Path("run").exists()


@pytest.mark.usefixtures("slow")
def test_the_threshold_stands_in_the_run_and_in_its_command() -> None:
    against("--fail-on", "slower")

    found = json.loads(Path("run", "run.json").read_text(encoding="utf-8"))
    assert found["plan"]["fail_on"] == 0.02
    assert found["command"][found["command"].index("--fail-on") + 1] == "slower:0.02"


@pytest.mark.usefixtures("slow")
def test_a_report_made_later_says_the_same_and_ends_with_0() -> None:
    against("--fail-on", "slower:5%")
    before = verdict()
    Path("run", "verdict.md").unlink()

    done = normbench("report", "run")

    assert done.code == 0
    assert verdict() == before
    assert "Gate: failed" in done.out


@pytest.mark.usefixtures("slow")
def test_programs_read_what_the_gate_found() -> None:
    done = against("--fail-on", "slower:5%", "--json")

    found = json.loads(done.out)["gate"]
    assert done.code == 1
    assert (found["threshold"], found["baseline"], found["implementations"]) == (0.05, "base", ["head"])
    assert found["slower"][0]["speedup_high"] < 1 / 1.05
    assert json.loads(normbench("report", "run", "--json").out)["gate"] == found


@pytest.mark.usefixtures("slow")
def test_without_its_samples_a_folder_says_that_the_gate_cannot_be_judged() -> None:
    against("--fail-on", "slower:5%")
    Path("run", "samples.csv.gz").unlink()

    done = normbench("report", "run")

    assert done.code == 0
    assert "Gate: not judged: intervals are taken from the samples, which are not there" in done.out


def test_a_complete_run_is_judged_by_another_threshold_without_measuring(slow: Repository) -> None:
    assert against().code == 0
    samples = Path("run", "samples.csv.gz").read_bytes()

    done = normbench("sweep", "--resume", "run", "--fail-on", "slower:5%")

    assert done.code == 1
    assert Path("run", "samples.csv.gz").read_bytes() == samples
    found = json.loads(Path("run", "run.json").read_text(encoding="utf-8"))
    assert found["plan"]["fail_on"] == 0.05
    assert found["resumed"] == []
    assert any("@" + slow.git("rev-parse", "HEAD~1") in word for word in found["command"])
