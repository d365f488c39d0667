from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch
from zipfile import ZipFile

import pytest

from normbench.errors import StorageError
from normbench.gpu_acceptance import command, packages, parts, schedule
from normbench.gpu_acceptance.lines import Outcome
from normbench.gpu_acceptance.parts import Kind, Part
from normbench.gpu_acceptance.running import Ending
from normbench.storage import load
from tests.cli.command import TINY

SWEEP = Part(kind=Kind.SWEEP, name="sweep-tiny", options=("--widths", "64", *TINY[2:]), most_s=120)
"""One cell, in one process of its own."""


def run(*words: str | Path) -> int:
    """The command in this process: its exit code."""
    with (
        patch.object(sys, "argv", ["gpu_acceptance", *map(str, words)]),
        patch.multiple(sys, stdout=sys.stdout, stderr=sys.stderr),
        pytest.raises(SystemExit) as end,
    ):
        command.main()
    code = end.value.code
    assert isinstance(code, int)
    return code


def test_on_a_cpu_it_runs_to_its_end_packs_what_was_measured_and_proves_nothing_of_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(parts, "REHEARSED", (SWEEP,))
    out = tmp_path / "out"
    assert run("--device", "cpu", "--out", out) == 3
    said = capsys.readouterr()
    assert said.out.splitlines()[-1].startswith("No GPU, and nothing about one is shown here: ")
    assert "error: No GPU" in said.err
    assert sorted(path.name for path in out.iterdir()) == ["log.txt", "summary.json", "summary.md", "sweep.zip"]
    lines = json.loads((out / "summary.json").read_text(encoding="utf-8"))["lines"]
    found = {line["what"]: (line["outcome"], line["figure"]) for line in lines}
    assert found["parts of this command"] == ("holds", "1 of 1")
    assert found["cases with a final status"][0] == "holds"
    assert found["A/A noise floor"] == ("no GPU", "")
    with ZipFile(out / "sweep.zip") as archive:
        archive.extractall(tmp_path / "again")
    assert load(tmp_path / "again" / SWEEP.name).is_complete


def test_a_line_that_fails_ends_it_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(parts, "REHEARSED", (SWEEP,))
    monkeypatch.setattr(
        schedule, "in_turn", lambda *_args, **_options: (Ending(name=SWEEP.name, code=3, why="error: no memory"),)
    )
    assert run("--device", "cpu", "--out", tmp_path / "out", "--json") == 1
    said = capsys.readouterr()
    lines = json.loads(said.out)["lines"]
    assert lines[0]["outcome"] == Outcome.FAILS
    assert lines[0]["figure"] == "0 of 1; sweep-tiny: error: no memory"


def test_an_interrupt_is_told_by_its_exit_code_after_everything_was_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = Ending(name=SWEEP.name, code=130, why="interrupted", is_interrupted=True)
    monkeypatch.setattr(schedule, "in_turn", lambda *_args, **_options: (interrupted,))
    assert run("--device", "cpu", "--out", tmp_path / "out", "--quiet") == 130
    assert (tmp_path / "out" / "summary.md").exists()


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--device", "cpu", "--out", tmp_path) == 2
    assert "exists, and no run is ever overwritten" in capsys.readouterr().err


def test_a_device_that_is_not_there_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--device", "cuda:7", "--out", tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert "error: --device cuda:7: there is no such device here" in said
    assert "hint: available: cpu" in said
    assert not (tmp_path / "out").exists()


def test_what_has_to_be_installed_is_said_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packages, "lacking", lambda: ["pydantic", "scipy"])
    assert run() == 3
    said = capsys.readouterr().err
    assert "error: not installed: pydantic, scipy" in said
    assert "hint: pip install pydantic scipy" in said


def test_there_is_no_time_of_zero_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--minutes", "0") == 2
    assert "--minutes" in capsys.readouterr().err


def test_as_a_program_it_needs_a_minute_at_least(tmp_path: Path) -> None:
    words = ("-m", "normbench.gpu_acceptance", "--device", "cpu", "--out", "out", "--minutes", "0.1")
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: --minutes: at least 1")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_takes_nothing_from_who_reads_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_args: object) -> None:
        raise StorageError("summary.md: No space left on device")

    monkeypatch.setattr(schedule, "in_turn", lambda *_args, **_options: (Ending(name=SWEEP.name, code=0),))
    monkeypatch.setattr(command, "_write", refuse)
    assert run("--device", "cpu", "--out", tmp_path / "out") == 3
    said = capsys.readouterr()
    assert "Acceptance" in said.out
    assert "No space left" in said.err
