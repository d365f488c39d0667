"""Liger's own kernels, on a CPU in Triton's interpreter: the arithmetic and the writes are theirs, no time is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TypeAlias

import pytest

from normbench.implementations import liger
from normbench.records import Mode
from tests.interpreted import ADD_RMSNORM, LAYERNORM, RMSNORM, Found, Trial, trials

# The development environment has it on Linux: in CI a missing one is a fault, no reason to skip.
pytestmark = pytest.mark.skipif(
    find_spec("liger_kernel") is None and os.environ.get("CI") is None,
    reason="needs liger-kernel: pip install -e '.[dev]' on Linux",
)

Findings: TypeAlias = dict[Trial, Found]


@pytest.fixture(scope="module")
def findings() -> Findings:
    done = subprocess.run(
        [sys.executable, "-m", "tests.interpreted"],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {
        Trial(**{**trial, "mode": Mode(trial["mode"])}): Found(reason=found["reason"], flags=tuple(found["flags"]))
        for trial, found in json.loads(done.stdout)
    }


def of(findings: Findings, wanted: Callable[[Trial], bool]) -> Findings:
    found = {trial: found for trial, found in findings.items() if wanted(trial)}
    assert found
    return found


def test_everything_that_is_asked_is_answered(findings: Findings) -> None:
    assert set(findings) == set(trials())


def test_its_kernels_are_right_in_every_mode_format_and_width_with_the_eps_that_they_are_given(
    findings: Findings,
) -> None:
    ordinary = of(findings, lambda trial: trial.width <= liger.WIDEST and not trial.silent)

    assert {trial: found.reason for trial, found in ordinary.items() if found.reason} == {}


@pytest.mark.parametrize("name", [RMSNORM, ADD_RMSNORM])
def test_it_writes_into_dy_and_is_caught_where_it_does_not_say_so(findings: Findings, name: str) -> None:
    silent = of(findings, lambda trial: trial.silent and trial.name == name)

    assert {trial.mode: found.reason for trial, found in silent.items()} == {
        Mode.FORWARD: None,
        Mode.INFERENCE: None,
        Mode.BACKWARD: "incorrect: wrote into dy without declaring it",
        Mode.FORWARD_BACKWARD: "incorrect: wrote into dy without declaring it",
    }


def test_it_is_flagged_where_it_writes_and_nowhere_else(findings: Findings) -> None:
    ordinary = of(findings, lambda trial: trial.width <= liger.WIDEST and not trial.silent)

    for trial, found in ordinary.items():
        assert ("in_place" in found.flags) is (trial.name != LAYERNORM and trial.mode.differentiates), trial


def test_its_layernorm_writes_into_nothing_that_it_is_given(findings: Findings) -> None:
    silent = of(findings, lambda trial: trial.silent and trial.name == LAYERNORM)

    assert {found.reason for found in silent.values()} == {None}
    assert liger.LAYERNORM.mutates is False


def test_rows_of_65536_elements_are_the_widest_that_it_takes(findings: Findings) -> None:
    """That they are right is asked above."""
    beyond = of(findings, lambda trial: trial.width > liger.WIDEST)

    for found in beyond.values():
        assert found.reason is not None
        assert found.reason.startswith("failed: ")
        assert "exceeds the recommended Triton blocksize" in found.reason
