"""The program that runs one case for a counter, in a process of its own, as the counter starts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from normbench.implementations import Located, Setting
from normbench.profiling.one_case import arguments
from normbench.records import Brought, Case
from normbench.sources.locating import located
from tests.helpers import make_cell

SOURCE = """
import torch
import beside


def rms(x, weight, eps):
    print("called", tuple(x.shape), eps, beside.name)
    return torch.nn.functional.rms_norm(x, weight.shape, weight, eps)
"""


def run(name: str, code: Located | None, folder: Path) -> subprocess.CompletedProcess[str]:
    cell = make_cell(width=16, rows=3)
    setting = Setting(cell=cell, eps=0.5)
    words = arguments(Case(cell=cell, implementation=name), code, seed=1, setting=setting)
    command = [sys.executable, "-m", "normbench.profiling.one_case", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def test_a_user_s_own_code_is_found_there_with_what_lies_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    (tmp_path / "norms.py").write_text(SOURCE)
    (tmp_path / "beside.py").write_text("name = 'neighbour'\n")
    with located([Brought(name="mine-rmsnorm", target=f"{tmp_path}/norms.py:rms")]) as (code,):
        done = run("mine-rmsnorm", code, tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout == "called (3, 16) 0.5 neighbour\n" * 4  # three calls to warm up, and the one that is counted


def test_a_built_in_one_needs_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))

    assert run("eager-rmsnorm", None, tmp_path).returncode == 0
    assert "KeyError: 'mine-rmsnorm'" in run("mine-rmsnorm", None, tmp_path).stderr
