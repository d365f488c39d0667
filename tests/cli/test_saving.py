"""A plan that is saved: what is read from it again is the same plan."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normbench.cli.keys import keys_of
from normbench.cli.plan import plan_for
from normbench.cli.plan_file import parsed, settings
from normbench.cli.request import request_for
from normbench.cli.saving import rendered
from normbench.implementations import names_of
from normbench.records import Operation, Plan
from normbench.storage import load
from tests.cli.command import PLAIN, TINY, normbench
from tests.cli.test_plan import CPU, plans
from tests.cli.test_plan import parsed as planned
from tests.cli.test_plan import plan as cpu_plan
from tests.cli.test_plan_file import command

KEYS = keys_of(command("sweep"))
SILENT: Mapping[str, Any] = {key.parameter: [] if key.kind.name == "LIST" else None for key in KEYS.known}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str) -> Plan:
    """The plan that a file of this text asks for on a CPU."""
    found = settings(parsed(text.encode(), "f"), KEYS, "f")
    values = {**SILENT, **{parameter: setting.value for parameter, setting in found.items()}}
    values.pop("device")
    asked = request_for(**values)
    return plan_for(asked, CPU, names_of(asked.operation or Operation.NORM))


@st.composite
def any_plan(draw: st.DrawFn) -> Plan:
    plan = replace(draw(plans()), graphs=draw(st.booleans()))
    if plan.precision.processes == 1 and draw(st.booleans()):
        return replace(plan, isolate=False, case_timeout_s=None)
    return replace(plan, case_timeout_s=draw(st.floats(min_value=1e-300, max_value=1e9)))


@given(any_plan(), st.sampled_from([None, "cpu", "cuda:1"]))
def test_any_plan_is_the_same_when_it_is_read_again(plan: Plan, device: str | None) -> None:
    text = rendered(plan, KEYS, device)

    assert read(text) == plan
    assert tomllib.loads(text).get("device") == device


def test_the_command_reads_what_it_has_saved_as_the_same_plan() -> None:
    words = ("sweep", "--device", "cpu", "--widths", "64:256:x2", "--param-dtype", "same", "bf16", "--seed", "5")
    saved = planned((*words, "--quick", "--save-plan", "a.toml"))

    assert planned(("sweep", "--plan", "a.toml")) == saved
    assert tomllib.loads(Path("a.toml").read_text(encoding="utf-8"))["device"] == "cpu"


def test_a_profile_reads_what_it_has_saved_as_the_same_plan() -> None:
    saved = planned(("profile", "--no-counters", "--width", "64", "--save-plan", "a.toml"))

    assert planned(("profile", "--plan", "a.toml")) == saved
    assert "processes" not in Path("a.toml").read_text(encoding="utf-8")


def test_a_saved_plan_spells_every_key_out_with_what_it_means_and_no_device_that_nobody_named() -> None:
    text = rendered(cpu_plan(), KEYS, None)
    said = tomllib.loads(text)

    assert set(said) == {key.names[0] for key in KEYS.known} - {"device", "total-seconds", "fail-on"}
    assert (said["widths"], said["max-seconds"], said["target"]) == ([256, 1024, 4096], 10, 0.01)
    assert "\n# Widths: numbers and ranges 256:8192:x2.\nwidths = [256, 1024, 4096]\n" in text
    assert text.count("\n# ") >= len(said)


def test_a_name_that_python_reads_as_a_number_stays_a_name() -> None:
    named = replace(cpu_plan(), implementations=(*names_of(Operation.NORM), "1_0", "007"))

    assert tomllib.loads(rendered(named, KEYS, None))["impls"][-2:] == ["1_0", "007"]


def test_a_saved_plan_is_the_run_it_was_saved_beside() -> None:
    done = normbench("sweep", *TINY, *PLAIN, "--widths", "16", "--save-plan", "a.toml", "--out", "run", "--no-quick")

    assert done.code == 0
    assert "plan written: a.toml\n" in done.err
    assert planned(("sweep", "--plan", "a.toml")) == load(Path("run")).header.plan


def test_a_dry_run_saves_and_measures_nothing() -> None:
    done = normbench("sweep", "--device", "cpu", "--save-plan", "a.toml", "--dry-run")

    assert done.code == 0
    assert done.out.endswith("compiling and checking included\n")
    assert [path.name for path in Path().iterdir()] == ["a.toml"]


def test_a_dash_prints_the_plan_and_nothing_else() -> None:
    done = normbench("sweep", "--device", "cpu", "--widths", "64", "--save-plan", "-", "--dry-run")

    assert (done.code, done.err) == (0, "")
    assert read(done.out).widths == (64,)
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--save-plan", "there.toml"], "--save-plan there.toml: exists, and no plan is overwritten"),
        (["--save-plan", "no/where.toml", "--dry-run"], "--save-plan no/where.toml: can't be written: No such file"),
        (["--save-plan", "-"], "--save-plan -: stdout is for the results"),
        (["--save-plan", "a.toml", "--resume", "run"], "--save-plan is of a new run"),
        (["--save-plan", "--dry-run"], "--save-plan: a value is missing"),
    ],
)
def test_a_plan_that_cannot_be_saved_is_refused_before_anything_is_measured(words: list[str], said: str) -> None:
    Path("there.toml").write_text("", encoding="utf-8")
    done = normbench("sweep", "--device", "cpu", *words)

    assert (done.code, done.out) == (2, "")
    assert f"error: {said}" in done.err
    assert [path.name for path in Path().iterdir()] == ["there.toml"]
    assert Path("there.toml").read_bytes() == b""
