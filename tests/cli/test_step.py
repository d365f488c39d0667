"""``normbench step`` on a minute model, really timed and really trained: its folder, its reports, its ends."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from normbench.records import StepCell
from normbench.steps.timing import Steps
from normbench.storage import load, load_steps
from normbench.training.trainer import Trainer
from tests.cli.command import Done, normbench, rows
from tests.runs import write_run

MODEL = ("--layers", "1", "--heads", "2", "--batch", "2", "--context", "8")
TIMED = (*MODEL, "--device", "cpu", "--quick", "--max-seconds", "0.3", "--impls", "eager-rmsnorm")
TRAINED = (*MODEL, "--device", "cpu", "--width", "16", "--train", "4", "--seeds", "2")
NAMES = ("eager-rmsnorm", "nn-layernorm")


def step(*words: str | Path) -> Done:
    return normbench("step", *words)


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """Two widths, eager and compiled: their folder, and how the command ended."""
    folder = tmp_path_factory.mktemp("step") / "timed"
    return folder, step(*TIMED, "--widths", "16", "32", "--out", folder)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """Two seeds of two variants."""
    folder = tmp_path_factory.mktemp("step") / "trained"
    return folder, step(*TRAINED, "--out", folder)


def test_a_run_leaves_its_tables_reports_and_the_norms_alone(timed: tuple[Path, Done]) -> None:
    folder, done = timed

    assert done.code == 0, done.err
    names = {path.name for path in folder.iterdir()}
    tables = {"step.csv", "step-comparisons.csv", "step-cells.csv", "step-samples.csv.gz"}
    assert names == {*tables, "step.json", "norm", "verdict.md", "report.html", "plots"}
    run = load_steps(folder)
    assert [(cell.shape.width, cell.compiled) for cell in run.results_by_cell] == [(16, False), (32, False)]
    assert [row["implementation"] for row in rows(folder / "step.csv")] == [*NAMES, *NAMES]
    assert {row["status"] for row in rows(folder / "step.csv")} == {"ok"}
    assert len(run.noise) == 2
    assert load(folder / "norm").is_complete
    assert [cell.rows for cell in load(folder / "norm").results_by_cell] == [16, 16]


def test_results_are_on_stdout_and_progress_on_stderr(timed: tuple[Path, Done]) -> None:
    _folder, done = timed

    assert "swapping nn-layernorm for" in done.out
    assert "÷ baseline" in done.out
    assert "timing steps into" in done.err
    assert "timing steps into" not in done.out


def test_report_makes_everything_again_to_the_letter(timed: tuple[Path, Done], tmp_path: Path) -> None:
    folder, done = timed
    again = normbench("report", folder, "--out", tmp_path / "again")

    assert (again.code, again.out) == (0, done.out)
    for name in ("verdict.md", "report.html"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()
    pictures = sorted(path.name for path in (folder / "plots").iterdir())
    assert sorted(path.name for path in (tmp_path / "again" / "plots").iterdir()) == pictures
    assert {"step.png", "step.svg", "prediction.png", "step-parts.png"} <= set(pictures)


def test_the_command_in_the_folder_asks_for_the_same(timed: tuple[Path, Done], trained: tuple[Path, Done]) -> None:
    for folder, done in (timed, trained):
        assert done.code == 0
        command = json.loads((folder / "step.json").read_text(encoding="utf-8"))["command"]
        plan = load_steps(folder).header.plan
        again = folder.with_name(f"{folder.name}-again")
        words = shlex.split(" ".join(command))
        assert words[:2] == ["normbench", "step"]
        stopped = _stopped_at_once(*words[1:], "--out", again)
        assert stopped.code == 130, stopped.err
        assert load_steps(again).header.plan == plan


def _stopped_at_once(*words: str | Path) -> Done:
    """The command, interrupted when its work begins."""
    with pytest.MonkeyPatch.context() as patch:

        def stop(*_: object, **__: object) -> None:
            os.kill(os.getpid(), signal.SIGINT)

        patch.setattr("normbench.cli.step_work._work", stop)
        return normbench(*words)


def test_json_holds_what_the_tables_hold(timed: tuple[Path, Done]) -> None:
    folder, _done = timed
    done = normbench("report", folder, "--json")
    found: dict[str, Any] = json.loads(done.out)

    assert done.code == 0
    times = [row["step_s"] for row in rows(folder / "step.csv")]
    assert [result["step_s"] for result in found["results"]] == [float(time) for time in times]
    assert found["complete"] is True


def test_training_leaves_a_point_for_each_evaluation(trained: tuple[Path, Done]) -> None:
    folder, done = trained

    assert done.code == 0, done.err
    run = load_steps(folder)
    training = run.header.plan.training
    assert training is not None
    assert run.header.plan.implementations == ("nn-layernorm", "nn-rmsnorm")
    assert len(run.curves) == 4
    assert all(curve.final(training) is not None for curve in run.curves)
    names = {path.name for path in folder.iterdir()}
    assert names == {"step.json", "training.csv", "verdict.md", "report.html", "plots"}
    assert "seed noise" in done.out
    assert {corpus.name for corpus in training.corpora} == {"code", "prose"}


def test_an_interrupted_training_goes_on_to_the_same_figures(trained: tuple[Path, Done], tmp_path: Path) -> None:
    whole, _done = trained
    folder = tmp_path / "stopped"
    calls = 0
    before = Trainer._tell

    def tell(self: Trainer, *arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 9:  # in the second run
            os.kill(os.getpid(), signal.SIGINT)
        before(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "_tell", tell)
        stopped = step(*TRAINED, "--out", folder)
    assert stopped.code == 130
    assert f"normbench step --resume {folder}\n" in stopped.err
    assert (folder / "training.pt").exists()
    assert not load_steps(folder).is_complete
    left = step("--resume", folder, "--dry-run")
    assert "to be trained: nn-rmsnorm, seed 0" in left.out
    assert "3 pieces of work left" in left.out

    done = step("--resume", folder)
    assert done.code == 0, done.err
    assert load_steps(folder).curves == load_steps(whole).curves
    assert not (folder / "training.pt").exists()


def test_an_interrupt_between_models_keeps_the_first_and_resume_measures_the_second(tmp_path: Path) -> None:
    folder = tmp_path / "stopped"
    before: Callable[..., Any] = Steps._run_cell

    def run_cell(self: Steps, cell: StepCell, *arguments: Any) -> Any:
        if cell.shape.width == 32:
            os.kill(os.getpid(), signal.SIGINT)
        return before(self, cell, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Steps, "_run_cell", run_cell)
        stopped = step(*TIMED, "--widths", "16", "32", "--out", folder)
    assert stopped.code == 130, stopped.err
    assert [row["width"] for row in rows(folder / "step.csv")] == ["16", "16"]
    assert "incomplete" in (folder / "verdict.md").read_text(encoding="utf-8")
    first = rows(folder / "step.csv")

    assert "to be measured: width 32" in step("--resume", folder, "--dry-run").out
    done = step("--resume", folder)
    assert done.code == 0, done.err
    assert rows(folder / "step.csv")[:2] == first
    assert [row["width"] for row in rows(folder / "step.csv")] == ["16", "16", "32", "32"]


def test_resuming_what_is_complete_measures_nothing(timed: tuple[Path, Done]) -> None:
    folder, _done = timed
    before = (folder / "step.csv").read_bytes()
    done = step("--resume", folder)

    assert done.code == 0
    assert (folder / "step.csv").read_bytes() == before
    assert "timing steps" not in done.err
    assert step("--resume", folder, "--dry-run").out == "nothing is left to do\n"


def test_a_dry_run_measures_nothing_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = step("--dry-run", "--device", "cpu", "--widths", "256", "512")

    assert done.code == 0
    assert "3,740,160 parameters, 9 norms" in done.out
    assert "time: about" in done.out
    trained = step("--dry-run", "--device", "cpu", "--train", "400")
    assert "400 steps × 6 runs of a model of 3,281,408 parameters" in trained.out
    assert json.loads(step("--dry-run", "--device", "cpu", "--json").out)["models"][0]["parameters"] == 3740160
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--preset", "huge"), "--preset: unknown preset 'huge'"),
        (("--width", "100", "--heads", "8"), "--widths, --heads: 100 can't be shared by 8 heads"),
        (("--layers", "0"), "--layers: 0 is not possible"),
        (("--impls", "copy"), "--impls: unknown implementation 'copy'"),
        (("--baseline", "my-norm"), "--baseline: unknown implementation 'my-norm'"),
        (("--autocast", "fp32"), "'fp32' is no autocast dtype"),
        (("--optimizer", "lion"), "--optimizer: unknown optimizer 'lion'"),
        (("--seeds", "3"), "--seeds: is of --train"),
        (("--text", "x.txt"), "--text: is of --train"),
        (("--train", "5", "--optimizer", "sgd"), "--optimizer: --train uses AdamW"),
        (("--train", "0"), "--train: 0 is not possible"),
        (("--train", "5", "--max-seconds", "3"), "--max-seconds: is of timing"),
        (("--train", "5", "--compile-model"), "--compile-model: --train trains the model as it is written"),
        (("--train", "5", "--widths", "16", "32", *MODEL), "--train takes one model in one format"),
        (("--train", "5", "--text", "absent.txt"), "--text absent.txt"),
        (("--resume", "somewhere", "--widths", "16"), "--resume goes on as the run began"),
        (("--share-device", "--wait"), "leave one of them out"),
        (("--out",), "--out: a value is missing"),
    ],
)
def test_bad_usage_ends_before_anything_runs(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = step(*words, "--device", "cpu") if "--resume" not in words else step(*words)

    assert done.code == 2
    assert said in done.err
    assert done.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_text_of_ones_own_is_trained_on_and_asked_for_again(tmp_path: Path) -> None:
    text = tmp_path / "my words.txt"
    text.write_bytes(b"the quick brown fox jumps over the lazy dog\n" * 2000)
    done = step(*TRAINED, "--text", text, "--out", tmp_path / "run")

    assert done.code == 0, done.err
    training = load_steps(tmp_path / "run").header.plan.training
    assert training is not None
    assert [(corpus.name, corpus.is_file) for corpus in training.corpora] == [("my words.txt", True)]
    assert str(tmp_path) not in (tmp_path / "run" / "step.json").read_text(encoding="utf-8")
    assert step("--resume", tmp_path / "run").code == 0  # nothing is left that would need it
    file = tmp_path / "run" / "training.csv"
    file.write_bytes(file.read_bytes()[:-1])
    quoted = "--text 'my words.txt'"
    assert quoted in (tmp_path / "run" / "verdict.md").read_text(encoding="utf-8")
    assert f"go on with: normbench step --resume {tmp_path / 'run'} {quoted}" in normbench("report", file.parent).err
    other = step("--resume", tmp_path / "run")
    assert other.code == 2
    assert "not here as it was when the run was begun" in other.err
    assert step("--resume", tmp_path / "run", "--text", text).code == 0


def test_other_commands_say_whose_folder_it_is(timed: tuple[Path, Done], tmp_path: Path) -> None:
    folder, _done = timed
    write_run(tmp_path / "sweep")
    sweep = normbench("sweep", "--resume", folder)
    assert (sweep.code, f"normbench step --resume {folder}" in sweep.err) == (2, True)
    both = normbench("report", folder, tmp_path / "sweep")
    assert (both.code, "is the folder of steps" in both.err) == (2, True)
    pictures = normbench("report", folder, "--pictures", "3")
    assert (pictures.code, "leave it out" in pictures.err) == (2, True)
    compare = normbench("compare", folder, folder)
    assert (compare.code, "is the folder of steps" in compare.err) == (2, True)
    absent = step("--resume", tmp_path / "sweep")
    assert absent.code == 3
    assert "normbench step has written" in absent.err


@pytest.mark.parametrize("end", [SystemExit(0), GeneratorExit()], ids=["exit", "generator exit"])
def test_who_ends_the_program_while_a_step_is_timed_does_not_end_it_well(end: BaseException, tmp_path: Path) -> None:
    def leave(_self: Steps, *_: object) -> None:
        raise end

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Steps, "_measure", leave)
        done = step(*TIMED, "--width", "16", "--out", tmp_path / "run")

    assert done.code == 3
    assert "the run was ended by what it called at width 16" in done.err
    assert (tmp_path / "run" / "verdict.md").exists()
