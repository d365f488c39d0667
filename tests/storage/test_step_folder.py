"""The folder of a run of steps: whole at once, a cell or an evaluation at a time, loaded wherever it was killed."""

from __future__ import annotations

import csv
import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from normbench.errors import StorageError, UsageError
from normbench.records import (
    Estimate,
    Part,
    Sample,
    Spent,
    Status,
    StepCell,
    StepNoise,
    StepRecords,
    StepRun,
    TrainingCurve,
)
from normbench.storage import STEPS, StepFolder, holds_steps, load_steps, read_step_header
from tests.runs import write_run
from tests.step_runs import (
    CELLS,
    complete_run,
    failed_run,
    make_cell,
    make_step_header,
    make_step_plan,
    make_step_run,
    training_run,
)

_SPENT = Spent(timed_s=2.5, elapsed_s=10.0)


def records_of(run: StepRun, cell: StepCell) -> StepRecords:
    """What one cell of a run left, with two samples."""
    sample = Sample(
        implementation="nn-layernorm",
        process=0,
        placement=0,
        round=0,
        position=0,
        calls=1,
        seconds=0.25,
        clock="wall",
    )
    noise = [test for test in run.noise if test.cell == cell]
    return StepRecords(
        cell=cell,
        results=tuple(result for result in run.results if result.cell == cell),
        comparisons=tuple(comparison for comparison in run.comparisons if comparison.cell == cell),
        samples={Part.STEP: (sample,), Part.FORWARD: (replace(sample, seconds=0.125),)},
        noise=noise[0] if noise else None,
        spent=_SPENT,
    )


def write_steps(path: Path, run: StepRun) -> Path:
    """The folder of a run."""
    folder = StepFolder.create(path, run.header)
    for cell in run.results_by_cell:
        folder.write(records_of(run, cell))
    for curve in run.curves:
        folder.write_curve(curve)
    if run.alone is not None:
        write_run(folder.alone, run.alone.header.plan)
    return path


@pytest.mark.parametrize("make", [complete_run, failed_run, training_run])
def test_a_run_is_loaded_as_it_was_written(make: Callable[[], StepRun], tmp_path: Path) -> None:
    run = make()
    loaded = load_steps(write_steps(tmp_path / "steps", run))

    spent = sum((_SPENT for _cell in run.results_by_cell), Spent())
    assert replace(loaded, alone=None) == replace(run, alone=None, spent=spent)
    if run.alone is not None:
        assert loaded.alone is not None
        assert loaded.alone.header.plan == run.alone.header.plan
        assert loaded.alone.results_by_cell.keys() == run.alone.results_by_cell.keys()
    assert loaded.is_complete


def test_a_new_folder_is_a_run_of_which_nothing_is_there(tmp_path: Path) -> None:
    header = make_step_header()
    StepFolder.create(tmp_path / "steps", header)

    loaded = load_steps(tmp_path / "steps")
    assert loaded == StepRun(header=header)
    assert (loaded.missing, loaded.is_complete, loaded.has_figures) == (header.plan.cells, False, False)
    assert read_step_header(tmp_path / "steps") == header
    assert holds_steps(tmp_path / "steps")


def test_booleans_are_written_as_other_programs_read_them(tmp_path: Path) -> None:
    plan = make_step_plan(cells=(make_cell(compiled=True),))
    write_steps(tmp_path / "steps", make_step_run(plan))
    with (tmp_path / "steps" / "step.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    assert (row["tied"], row["compiled"], row["autocast"]) == ("true", "true", "")
    assert list(row) == list(STEPS)


def test_a_cell_of_which_a_row_is_lost_is_none_and_is_measured_again(tmp_path: Path) -> None:
    run = complete_run()
    file = write_steps(tmp_path / "steps", run) / "step.csv"
    whole = file.read_bytes()
    for cut in (1, 30):
        file.write_bytes(whole[:-cut])
        loaded = load_steps(file.parent)
        assert loaded.missing == CELLS[-1:]
        assert {result.cell for result in loaded.results} == set(CELLS[:-1])
        assert {comparison.cell for comparison in loaded.comparisons} == set(CELLS[:-1])
        assert {test.cell for test in loaded.noise} == set(CELLS[:-1])


@pytest.mark.parametrize("packed", [False, True])
def test_going_on_drops_what_was_not_committed_and_adds_the_rest(tmp_path: Path, *, packed: bool) -> None:
    run = complete_run()
    path = write_steps(tmp_path / "steps", run)
    whole = load_steps(path)
    if packed:
        StepFolder(path, run.header).compress_samples()
    file = path / "step.csv"
    file.write_bytes(file.read_bytes()[:-5])

    folder = StepFolder.reopen(path)
    for name in ("step.csv", "step-comparisons.csv", "step-cells.csv", "step-samples.csv"):
        with (path / name).open(newline="") as text:
            keys = {(row["width"], row["compiled"]) for row in csv.DictReader(text)}
        assert keys == {("256", "false"), ("512", "false"), ("256", "true")}, name
    folder.write(records_of(run, CELLS[-1]))
    assert load_steps(path) == whole


def test_a_cell_that_cannot_be_written_leaves_nothing_of_it(tmp_path: Path) -> None:
    run = complete_run()
    folder = StepFolder.create(tmp_path / "steps", run.header)
    folder.write(records_of(run, CELLS[0]))
    before = {file.name: file.read_bytes() for file in folder.path.glob("*.csv")}
    real, count = os.fsync, 0

    def full(descriptor: int) -> None:
        nonlocal count
        count += 1
        if count == 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    with patch("os.fsync", full), pytest.raises(StorageError, match="can't be written: No space left") as caught:
        folder.write(records_of(run, CELLS[1]))
    assert caught.value.hint == f"make room there, then go on with: normbench step --resume {folder.path}"

    assert {file.name: file.read_bytes() for file in folder.path.glob("*.csv")} == before
    folder.write(records_of(run, CELLS[1]))
    assert len(load_steps(folder.path).results) == 2 * len(run.header.plan.implementations)


def test_evaluations_are_added_as_they_come_and_an_unfinished_run_begins_again(tmp_path: Path) -> None:
    run = training_run()
    training = run.header.plan.training
    assert training is not None
    first, second = run.curves[:2]
    folder = StepFolder.create(tmp_path / "steps", run.header)
    for count in range(1, len(first.points) + 1):
        folder.write_curve(replace(first, points=first.points[:count]))
        assert load_steps(folder.path).curves == (replace(first, points=first.points[:count]),)
    folder.write_curve(replace(second, points=second.points[:2]))

    loaded = load_steps(folder.path)
    assert (second.seed, second.implementation) in loaded.untrained
    assert (first.seed, first.implementation) not in loaded.untrained
    again = StepFolder.reopen(folder.path)
    assert load_steps(folder.path).curves == (first,)
    again.write_curve(second)
    assert load_steps(folder.path).curves == (first, second)


def test_a_training_run_that_ended_early_is_final_with_its_reason(tmp_path: Path) -> None:
    run = training_run()
    curve = replace(
        run.curves[0], points=run.curves[0].points[:2], status=Status.FAILED, reason="diverged at step 60"
    )
    folder = StepFolder.create(tmp_path / "steps", run.header)
    folder.write_curve(replace(curve, status=Status.OK, reason=None))
    folder.write_curve(curve)
    StepFolder.reopen(folder.path)

    loaded = load_steps(folder.path)
    assert loaded.curves == (curve,)
    assert (curve.seed, curve.implementation) not in loaded.untrained


def _replaced(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8", newline="")


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("step.csv", ",ok,", ",brilliant,", r"step\.csv: line 2: status"),
        ("step.csv", "nn-rmsnorm", "my-rmsnorm", "is not in step.json"),
        ("step.csv", "256,4,8,256,8,", "257,4,8,256,8,", "heads|not in the plan"),
        ("step.csv", ",false,adamw,", ",False,adamw,", r"compiled: 'False' is written as 'false'"),
        ("step-comparisons.csv", ",slower,", ",faster,", "is not what the interval says"),
        ("step-comparisons.csv", ",nn-layernorm,", ",nn-rmsnorm,", "the plan's is nn-layernorm"),
        ("step-cells.csv", "nn-layernorm", "my-layernorm", "is not in step.json"),
        ("step-cells.csv", "nn-layernorm", "nn-rmsnorm", "noise_implementation: the plan's baseline is nn-layernorm"),
        ("step.csv", ",3740160,", ",1,", "parameters: '1' is not 3740160"),
        ("step.json", '"baseline": "nn-layernorm"', '"baseline": "none"', "baseline"),
        ("step.json", '"schema": 1', '"schema": 2', "schema is 2"),
    ],
)
def test_a_row_of_another_run_or_against_its_own_figures_is_refused(
    name: str, old: str, new: str, said: str, tmp_path: Path
) -> None:
    path = write_steps(tmp_path / "steps", make_step_run())
    _replaced(path / name, old, new)
    with pytest.raises(StorageError, match=said):
        load_steps(path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0,nn-layernorm,ok,,50,", "0,nn-layernorm,ok,,51,", "step: '51' is not the next evaluation of the plan, 50"),
        ("0,nn-layernorm,ok,,50,", "0,nn-layernorm,ok,,0,", "train_bits_per_byte: there at every step but 0"),
        ("0,nn-layernorm,ok,,50,", "00,nn-layernorm,ok,,50,", "seed: '00' is written as 0"),
        ("0,nn-layernorm,ok,,50,", "0,nn-layernorm,ok,because,50,", "nothing else has one"),
        (
            "0,nn-layernorm,ok,,50,",
            "0,nn-layernorm,ok,,100,",
            "step: '100' is not the next evaluation of the plan, 50",
        ),
        (",8.0,7.9;8.1", ",8.0,7.9;8.2", "is not the mean of the corpora's"),
        (",8.0,7.9;8.1", ",1e308,1e308;1e308", "not bits per byte"),
        ("0,nn-layernorm,ok,,50,", "9,nn-layernorm,ok,,50,", "seed: 9 is not in step.json"),
        ("0,nn-layernorm,ok,,50,", "0,my-layernorm,ok,,50,", "is not in step.json"),
        ("0,nn-layernorm,ok,,50,", "0,nn-layernorm,failed,because,50,", "an evaluation has status ok"),
    ],
)
def test_a_training_row_that_is_none_of_the_plan_is_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    path = write_steps(tmp_path / "steps", training_run())
    _replaced(path / "training.csv", old, new)
    with pytest.raises(StorageError, match=said):
        load_steps(path)


def test_a_row_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = write_steps(tmp_path / "steps", make_step_run())
    for name in ("step.csv", "step-comparisons.csv", "step-cells.csv"):
        file = path / name
        before = file.read_bytes()
        file.write_bytes(before + before.splitlines(keepends=True)[-1])
        with pytest.raises(StorageError, match="stands twice"):
            load_steps(path)
        file.write_bytes(before)


def test_no_folder_is_overwritten(tmp_path: Path) -> None:
    write_steps(tmp_path / "steps", make_step_run())
    with pytest.raises(UsageError, match="exists, and no run is ever overwritten"):
        StepFolder.create(tmp_path / "steps", make_step_header())


def test_noise_without_an_interval_survives(tmp_path: Path) -> None:
    run = make_step_run()
    cell = run.header.plan.cells[0]
    noise = StepNoise(cell=cell, implementation="nn-layernorm", ratio=Estimate(value=1.01))
    folder = StepFolder.create(tmp_path / "steps", run.header)
    folder.write(replace(records_of(run, cell), noise=noise))
    assert load_steps(folder.path).noise == (noise,)


def test_a_curve_of_nothing_is_no_row(tmp_path: Path) -> None:
    run = training_run()
    folder = StepFolder.create(tmp_path / "steps", run.header)
    folder.write_curve(TrainingCurve(implementation="nn-rmsnorm", seed=0, points=()))
    assert load_steps(folder.path).curves == ()


@pytest.mark.parametrize(
    ("old", "new"), [('"name": "Some CPU"', '"name": "Other CPU"'), ('"torch": ', '"torch": "1" , "was": ')]
)
def test_norms_alone_of_another_run_are_refused(old: str, new: str, tmp_path: Path) -> None:
    path = write_steps(tmp_path / "steps", complete_run())
    _replaced(path / "norm" / "run.json", old, new)
    with pytest.raises(StorageError, match=r"run\.json: (is of another run|.*was: this version knows no such field)"):
        load_steps(path)
