from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from normbench.storage import SAMPLES, load
from tests.cli.command import NAMES, Done, normbench, rows, statuses, sweep

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
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    done = resume()

    assert (done.code, progress(done)) == (0, [])
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_a_dry_run_of_a_resumption_names_what_is_missing_and_changes_nothing(run: Path) -> None:
    cut(run / "results.csv", 1 + 2 * len(NAMES), then=40)
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    done = resume("--dry-run")

    assert done.code == 0
    assert done.out.splitlines()[0].startswith("32×256 fp32 forward warm: ")
    assert done.out.splitlines()[1].startswith("1 cells × 3 implementations on ")
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


@pytest.mark.parametrize(
    ("part", "name", "value", "said"),
    [
        ("environment", "torch", "2.0.1", "the environment has changed: torch was 2.0.1, is 2."),
        ("environment", "python", "3.9.0", "the environment has changed: python was 3.9.0, is 3."),
        ("device", "threads", 99, "the device has changed: threads was 99, is "),
        ("device", "name", "Old CPU", "the device has changed: name was Old CPU, is "),
    ],
)
def test_a_run_of_another_machine_or_other_software_is_refused_naming_the_difference(
    run: Path, part: str, name: str, value: object, said: str
) -> None:
    change(run, part, **{name: value})
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    done = resume()

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: --resume: {said}")
    assert done.err.endswith("hint: start a new run\n")
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_a_folder_that_is_no_run_is_refused_naming_it() -> None:
    done = normbench("sweep", "--resume", "nowhere")

    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: nowhere/run.json: can't be read: ")
