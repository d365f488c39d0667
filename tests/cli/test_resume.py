from __future__ import annotations

import csv
import gzip
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from normbench.errors import StorageError
from normbench.storage import SAMPLES, RunFolder, load, read_header
from tests.cli.command import NAMES, Done, normbench, rows, statuses, sweep
from tests.sweeping import contents

WIDTHS = (64, 128, 256)
EVERYTHING = [(width, name, "ok") for width in WIDTHS for name in NAMES]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is complete, without plots."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("normbench.reporters.plots.draw", lambda _run, _most=None: iter(()))
        path = tmp_path_factory.mktemp("finished") / "run"
        assert sweep("--widths", *map(str, WIDTHS), "--out", path).code == 0
        return path


@pytest.fixture(autouse=True)
def run(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to spoil."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("normbench.reporters.plots.draw", lambda _run, _most=None: iter(()))
    return Path(shutil.copytree(finished, tmp_path / "run"))


def resume(*words: str) -> Done:
    return normbench("sweep", "--resume", "run", *words)


def progress(done: Done) -> list[str]:
    """The cells that were measured."""
    return [line.split(": ")[0] for line in done.err.splitlines() if line.startswith("[")]


def cut(path: Path, lines: int, then: int = 0) -> None:
    """Keep so many lines, and of the one that follows so many characters."""
    text = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(text[:lines]) + text[lines][:then], encoding="utf-8")


def change(path: Path, part: str, **values: object) -> None:
    data = json.loads((path / "run.json").read_text(encoding="utf-8"))
    data[part].update(values)
    (path / "run.json").write_text(json.dumps(data), encoding="utf-8")


def test_a_cell_without_its_results_is_measured_and_no_other(run: Path) -> None:
    before = rows(run / "results.csv")
    cut(run / "results.csv", 1 + 2 * len(NAMES))
    done = resume()

    assert done.code == 0
    assert progress(done) == ["[1/1] 32×256 fp32 forward warm"]
    assert statuses(run) == EVERYTHING
    assert rows(run / "results.csv")[: 2 * len(NAMES)] == before[: 2 * len(NAMES)]
    assert rows(run / "results.csv")[-1]["time_s"] != before[-1]["time_s"]


def test_a_line_cut_in_the_middle_costs_its_cell_and_is_never_read(run: Path) -> None:
    """N30."""
    cut(run / "results.csv", 2 + len(NAMES), then=90)
    done = resume()

    assert progress(done) == ["[1/2] 32×128 fp32 forward warm", "[2/2] 32×256 fp32 forward warm"]
    assert statuses(run) == EVERYTHING
    assert len(rows(run / "comparisons.csv")) == len(WIDTHS)
    assert load(run).is_complete


def test_a_run_killed_before_its_first_cell_is_measured_from_the_start(run: Path) -> None:
    for name in ("results.csv", "comparisons.csv"):
        cut(run / name, 1)
    (run / "samples.csv.gz").unlink()
    (run / "samples.csv").write_text(f"{','.join(SAMPLES)}\nnorm,forward,32,64,fp32,fp3", encoding="utf-8")

    assert len(progress(resume())) == 3
    assert statuses(run) == EVERYTHING


def test_the_samples_hold_every_measured_cell_once(run: Path) -> None:
    cut(run / "results.csv", 1 + len(NAMES))
    resume()

    samples = pd.read_csv(run / "samples.csv.gz", keep_default_na=False)
    place = ["width", "implementation", "process", "placement", "round"]
    assert not samples.duplicated(place).any()
    assert samples.groupby("width").size().to_dict().keys() == set(WIDTHS)
    counts = {(row["width"], row["implementation"]): int(row["samples"]) for row in rows(run / "results.csv")}
    counts[str(WIDTHS[0]), "nn-layernorm again"] = counts[str(WIDTHS[0]), "nn-layernorm"]  # the A/A test
    assert samples.groupby(["width", "implementation"]).size().to_dict() == {
        (int(width), name): count for (width, name), count in counts.items()
    }


def test_a_complete_run_is_reported_again_and_nothing_is_measured(run: Path) -> None:
    before = contents(run)
    done = resume()

    assert (done.code, progress(done)) == (0, [])
    assert contents(run) == before


def test_a_dry_run_of_a_resumption_names_what_is_missing_and_changes_nothing(run: Path) -> None:
    cut(run / "results.csv", 1 + 2 * len(NAMES), then=40)
    before = contents(run)
    done = resume("--dry-run")

    assert done.code == 0
    assert done.out.splitlines()[0].startswith("32×256 fp32 forward warm: ")
    assert done.out.splitlines()[1].startswith("1 cells × 3 implementations on ")
    assert contents(run) == before


@pytest.mark.parametrize(
    ("part", "name", "value", "said"),
    [
        ("environment", "torch", "2.0.1", "torch was 2.0.1, is 2."),
        ("environment", "python", "3.9.0", "python was 3.9.0, is 3."),
        ("environment", "packages", [["numpy", "1.0"]], "numpy was 1.0, is "),
        ("device", "threads", 99, "threads was 99, is "),
        ("device", "name", "Old CPU", "device was Old CPU, is "),
    ],
)
def test_a_run_of_another_machine_or_other_software_is_refused_naming_the_difference(
    run: Path, part: str, name: str, value: object, said: str
) -> None:
    change(run, part, **{name: value})
    before = contents(run)
    done = resume()

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: --resume: not as the run began: {said}")
    assert done.err.endswith("hint: start a new run, or --force, which the run will say of itself\n")
    assert contents(run) == before


def test_all_differences_are_named_at_once(run: Path) -> None:
    change(run, "environment", torch="2.0.1", python="3.9.0")
    change(run, "device", threads=99)

    first, _hint = resume().err.splitlines()
    assert [part.split(" was ")[0].split(": ")[-1] for part in first.split("; ")] == ["threads", "python", "torch"]


def test_what_is_forced_is_written_down_before_anything_is_measured_and_shown(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut(run / "results.csv", 1 + 2 * len(NAMES))
    change(run, "environment", torch="2.0.1")
    began = read_header(run)
    monkeypatch.setattr(RunFolder, "write", broken)
    assert resume("--force").code == 3
    (resumption,) = read_header(run).resumed
    assert (resumption.cells, resumption.plan) == (2, ())
    assert resumption.differences == (f"torch was 2.0.1, is {torch_version()}",)

    monkeypatch.undo()
    monkeypatch.chdir(run.parent)
    monkeypatch.setattr("normbench.reporters.plots.draw", lambda _run, _most=None: iter(()))
    done = resume("--json")
    where = "after its first 2 cells, ran on something else than the run began with (--force)"
    said = f"{where}: {resumption.differences[0]}"
    assert (done.code, len(progress(done))) == (0, 1)
    assert read_header(run) == replace(began, resumed=(resumption,))
    assert json.loads(done.out)["resumed"] == [
        {**vars(resumption), "differences": [*resumption.differences], "plan": []}
    ]
    assert said in normbench("report", run).out
    assert said in (run / "verdict.md").read_text(encoding="utf-8").replace("\\", "")
    assert said in re.sub("</?span[^>]*>", "", (run / "report.html").read_text(encoding="utf-8"))


def broken(_folder: RunFolder, _records: object) -> None:
    raise StorageError("the disk is full")


def torch_version() -> str:
    import torch

    return torch.__version__


def test_what_was_forced_once_needs_no_force_again_and_is_written_down_once(run: Path) -> None:
    cut(run / "results.csv", 1 + len(NAMES))
    change(run, "environment", torch="2.0.1")
    assert resume("--force").code == 0
    forced = read_header(run)
    assert len(forced.resumed) == 1

    cut(run / "results.csv", 1 + 2 * len(NAMES))
    assert resume().code == resume("--force").code == 0
    assert read_header(run) == forced


def test_a_run_that_is_gone_on_with_as_it_began_after_something_else_says_that_too(run: Path) -> None:
    cut(run / "results.csv", 1 + 2 * len(NAMES))
    elsewhere = {"created_utc": "2026-01-02T03:04:05Z", "cells": 1, "differences": ["torch was 1, is 2"], "plan": []}
    data = json.loads((run / "run.json").read_text(encoding="utf-8"))
    (run / "run.json").write_text(json.dumps(data | {"resumed": [elsewhere]}), encoding="utf-8")

    assert resume().code == 0
    first, second = read_header(run).resumed
    assert (first.cells, second.cells, second.differences) == (1, 2, ())
    assert "The cell measured from 2026-01-02T03:04:05Z on, after its first cell, " in normbench("report", run).out


def test_nothing_is_written_down_where_nothing_differs(run: Path) -> None:
    cut(run / "results.csv", 1 + len(NAMES))
    before = (run / "run.json").read_bytes()

    assert resume("--force").code == 0
    assert (run / "run.json").read_bytes() == before


def test_a_device_of_another_kind_is_refused_even_by_force(run: Path) -> None:
    change(run, "device", kind="cuda")
    before = contents(run)
    done = resume("--force")

    assert done.code == 2
    assert "kind was cuda, is cpu" in done.err
    assert done.err.endswith("hint: start a new run: this one's times are of a cuda\n")
    assert contents(run) == before


def test_an_implementation_that_is_not_here_is_refused_naming_it(run: Path) -> None:
    data = json.loads((run / "run.json").read_text(encoding="utf-8").replace("eager-rmsnorm", "lost-rmsnorm"))
    (run / "run.json").write_text(json.dumps(data), encoding="utf-8")
    for name in ("results.csv", "comparisons.csv", "swaps.csv"):
        text = (run / name).read_text(encoding="utf-8").replace("eager-rmsnorm", "lost-rmsnorm")
        (run / name).write_text(text, encoding="utf-8")
    done = resume("--force")

    assert done.code == 2
    assert done.err.startswith("error: --resume: the run has implementations that are not here: lost-rmsnorm\n")


def test_options_that_say_what_the_run_has_are_accepted(run: Path) -> None:
    cut(run / "results.csv", 1 + 2 * len(NAMES))
    before = (run / "run.json").read_bytes()
    done = sweep("--widths", *map(str, WIDTHS), "--seed", "0", "--resume", "run")

    assert (done.code, len(progress(done))) == (0, 1)
    assert (run / "run.json").read_bytes() == before
    assert statuses(run) == EVERYTHING


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        (
            ["--widths", "64", "512", "--seed", "1"],
            "--widths: the run has 64 128 256, asked for 64 512; --seed: the run has 0, asked for 1",
            "leave these options out, or start a new run: --widths has to keep 128 256; "
            "--seed can't change within a run",
        ),
        (
            ["--quick"],
            "--widths: the run has 64 128 256, asked for 256 1024; --max-seconds: the run has 0.05, asked for 3",
            "leave these options out, or start a new run: --widths has to keep 64 128",
        ),
        (
            ["--target", "2%"],
            "--target: the run has 0.01, asked for 0.02",
            "leave these options out, or --force, which the run will say of itself",
        ),
    ],
)
def test_another_plan_is_refused_naming_each_difference(run: Path, words: list[str], said: str, hint: str) -> None:
    before = contents(run)
    done = resume(*words)

    assert (done.code, done.out) == (2, "")
    assert done.err == f"error: --resume: another plan: {said}\nhint: {hint}\n"
    assert contents(run) == before


def test_more_widths_and_another_precision_are_measured_by_force_and_written_down(run: Path) -> None:
    before = rows(run / "results.csv")
    words = ("--widths", "512", "256", "128", "64", "--max-seconds", "0.1", "--force")
    planned = resume(*words, "--dry-run")
    assert planned.out.splitlines()[0].startswith("32×512 fp32 forward warm: ")
    assert read_header(run).resumed == ()

    done = resume(*words)
    header = read_header(run)
    (resumption,) = header.resumed
    changes = ("--widths was 64 128 256, is 64 128 256 512", "--max-seconds was 0.05, is 0.1")

    assert (done.code, progress(done)) == (0, ["[1/1] 32×512 fp32 forward warm"])
    assert f"going on, and writing it down: {'; '.join(changes)}\n" in done.err
    assert (header.plan.widths, header.plan.precision.max_seconds) == ((64, 128, 256, 512), 0.1)
    assert (resumption.cells, resumption.differences, resumption.plan) == (3, (), changes)
    assert header.command[header.command.index("--widths") + 1 :][:4] == ("64", "128", "256", "512")
    assert rows(run / "results.csv")[: len(before)] == before
    assert statuses(run) == [*EVERYTHING, *((512, name, "ok") for name in NAMES)]
    assert changes[0] in (run / "verdict.md").read_text(encoding="utf-8").replace("\\", "")
    assert {row["width"] for row in samples(run)} == {"64", "128", "256", "512"}

    assert resume("--widths", "64:512:x2").code == 0
    assert read_header(run) == header


def samples(run: Path) -> list[dict[str, str]]:
    with gzip.open(run / "samples.csv.gz", "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_what_would_spoil_what_is_measured_is_refused_even_by_force(run: Path) -> None:
    before = contents(run)
    done = resume("--widths", "64", "128", "256", "512", "--eps", "1e-5", "--force")

    assert done.code == 2
    assert done.err.endswith("hint: leave these options out, or start a new run: --eps can't change within a run\n")
    assert contents(run) == before


def test_a_resumption_is_written_into_the_run_alone(run: Path) -> None:
    done = resume("--out", "other")

    assert (done.code, done.err) == (2, "error: --resume writes into the run's own folder\nhint: leave --out out\n")
    assert run.exists()


def test_a_folder_that_is_no_run_is_refused_naming_it() -> None:
    done = normbench("sweep", "--resume", "nowhere")

    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: nowhere/run.json: can't be read: ")
