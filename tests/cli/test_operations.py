"""One run measures one operation: named, or told by the implementations that are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from normbench.cli.bringing import Impls
from normbench.cli.operations import operation_of
from normbench.implementations import catalog, names_of
from normbench.records import Operation
from normbench.storage import load
from tests.cli.command import TINY, Done, normbench, statuses

ADD_NORM = names_of(Operation.ADD_NORM)


@pytest.fixture(autouse=True)
def nothing_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("normbench.reporters.plots.draw", lambda _run, _most=None: iter(()))


def refused(*words: str) -> str:
    done = normbench(*words)
    assert (done.code, done.out) == (2, "")
    assert list(Path().iterdir()) == []
    return done.err


def adding(*words: str) -> Done:
    return normbench("sweep", *TINY, "--widths", "64", *words)


@pytest.mark.parametrize(
    ("named", "implementations", "baseline", "operation"),
    [
        (None, (), None, None),
        ("norm", (), None, Operation.NORM),
        ("add-norm", (), None, Operation.ADD_NORM),
        (None, ("nn-add-rmsnorm",), None, Operation.ADD_NORM),
        (None, ("add-copy",), None, Operation.ADD_NORM),
        (None, (), "compile-add-rmsnorm", Operation.ADD_NORM),
        (None, ("nn-rmsnorm",), "nn-layernorm", Operation.NORM),
        ("ADD-NORM", ("nn-add-rmsnorm",), "nn-add-layernorm", Operation.ADD_NORM),
    ],
)
def test_the_operation_is_the_one_that_is_named_or_that_all_names_have(
    named: str | None, implementations: tuple[str, ...], baseline: str | None, operation: Operation | None
) -> None:
    assert operation_of(named, Impls(names=implementations), baseline, catalog()) is operation


def test_a_sweep_of_the_operation_is_complete_and_its_floor_and_baseline_come_along() -> None:
    done = adding("--operation", "add-norm", "--impls", "eager-add-rmsnorm", "--out", "run")
    assert done.code == 0, done.err
    names = ("add-copy", "eager-add-rmsnorm", "nn-add-layernorm")
    assert statuses(Path("run")) == [(64, name, "ok") for name in names]
    run = load(Path("run"))
    plan = run.header.plan
    assert (plan.operation, plan.floor, plan.baseline) == (Operation.ADD_NORM, names[0], names[2])
    assert {cell.operation for cell in run.results_by_cell} == {Operation.ADD_NORM}
    ratios = [r.timing.floor_ratio for r in run.results if r.timing is not None]
    assert all(ratio is not None for ratio in ratios)
    at = run.header.command.index("--operation")
    assert run.header.command[at : at + 2] == ("--operation", "add-norm")


def test_the_operation_follows_from_the_implementations() -> None:
    assert adding("--impls", "nn-add-rmsnorm", "--out", "run").code == 0
    assert load(Path("run")).header.plan.operation is Operation.ADD_NORM


def test_a_profile_counts_the_floors_bytes_as_the_formula_has_them() -> None:
    done = normbench(
        *("profile", "--device", "cpu", "--rows", "32", "--widths", "64", "--dtype", "fp32", "--no-isolate"),
        *("--max-seconds", "0.05", "--impls", "nn-add-rmsnorm", "--modes", "forward-backward", "--out", "run"),
    )
    assert done.code == 0, done.err
    run = load(Path("run"))
    profiles = {profile.case.implementation: profile for profile in run.profiles}
    assert set(profiles) == {"add-copy", "nn-add-layernorm", "nn-add-rmsnorm"}
    assert profiles["add-copy"].op_bytes == 8 * 32 * 64 * 4
    memory = profiles["nn-add-layernorm"].memory
    assert memory is not None
    assert memory.saved_bytes == 2 * 32 * 4, "a mean and a root of each row; h is returned, and alive anyway"


def test_operations_can_t_be_mixed_and_the_error_says_whose_each_is() -> None:
    said = refused("sweep", "--impls", "nn-rmsnorm", "nn-add-rmsnorm", "eager-layernorm")
    assert "norm: nn-rmsnorm eager-layernorm; add-norm: nn-add-rmsnorm" in said
    assert "hint: run a sweep for each" in said
    assert "add-norm: nn-add-layernorm" in refused("sweep", "--impls", "nn-rmsnorm", "--baseline", "nn-add-layernorm")


def test_a_name_of_another_operation_than_the_one_asked_for_is_refused_with_those_there_are() -> None:
    said = refused("profile", "--operation", "add-norm", "--impls", "nn-rmsnorm", "eager-rmsnorm")
    assert "--operation add-norm: nn-rmsnorm eager-rmsnorm are of norm\n" in said
    assert ", ".join(ADD_NORM) in said


def test_an_unknown_operation_and_a_floor_as_baseline_are_refused() -> None:
    assert "unknown operation 'addnorm'\nhint: did you mean add-norm?" in refused("sweep", "--operation", "addnorm")
    assert "--baseline: unknown implementation 'add-copy'" in refused("sweep", "--baseline", "add-copy")


@pytest.mark.parametrize("command", ["check", "step"])
@pytest.mark.parametrize("name", ADD_NORM)
def test_commands_for_norms_alone_say_where_a_residual_add_and_norm_is_measured(command: str, name: str) -> None:
    said = refused(command, "--impls", name)
    assert f"error: --impls: {name} is of add-norm, a residual add and norm: norms alone are taken here" in said
    assert f"hint: normbench sweep --impls {name}" in said


def test_the_allowance_of_a_check_and_the_baseline_of_steps_are_of_norms_too() -> None:
    assert "norms alone" in refused("check", "--allow", "nn-add-rmsnorm:zeros")
    assert "norms alone" in refused("step", "--baseline", "nn-add-layernorm")


@pytest.mark.parametrize("words", [("--operation", "add-norm"), ("--impls", "nn-add-rmsnorm")])
def test_a_run_is_not_gone_on_with_by_another_operation(words: tuple[str, ...]) -> None:
    assert adding("--impls", "eager-rmsnorm", "--out", "run").code == 0
    before = Path("run/results.csv").read_bytes()
    done = normbench("sweep", "--resume", "run", "--force", *words)
    assert done.code == 2
    assert "--operation: the run has norm, asked for add-norm" in done.err
    assert "--operation can't change within a run" in done.err
    assert Path("run/results.csv").read_bytes() == before


def test_a_run_of_the_operation_is_gone_on_with_without_naming_it() -> None:
    assert adding("--impls", "nn-add-rmsnorm", "--out", "run").code == 0
    done = normbench("sweep", "--resume", "run", "--widths", "64", "128", "--force")
    assert done.code == 0, done.err
    assert [width for width, _, _ in statuses(Path("run"))] == [64] * 3 + [128] * 3


def test_runs_of_two_operations_are_neither_reported_side_by_side_nor_compared() -> None:
    assert adding("--impls", "nn-add-rmsnorm", "--out", "adds").code == 0
    assert adding("--impls", "eager-rmsnorm", "--out", "norms").code == 0
    merged, compared = normbench("report", "adds", "norms"), normbench("compare", "adds", "norms")
    assert merged.code != 0
    assert "--operation is add-norm against norm" in merged.err
    assert compared.code == 3
    assert "no case has a time in both runs" in compared.err
