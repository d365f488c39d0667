"""The tests of a GPU run on the CPU, so that their code works once there is a GPU; no figure comes of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from normbench.gpu_acceptance.tested import Ended, read_tests
from tests.gpu.rehearsal import NAME

ROOT = Path(__file__).parents[1]
QUICK = (
    "not late and not autocast and not cheat_of_a_residual_add and not all_norms_with_a_fault"
    " and not (cheat_is_caught and backward)"
)
REAL_ALONE = {"test_kernels", "test_packages", "test_profiles"}
"""Files of which nothing can be rehearsed."""


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """What a run of the tests printed, and by file how many passed."""

    code: int
    printed: str
    passed: Mapping[str, int]
    properties: int


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    results = tmp_path_factory.mktemp("rehearsal") / "results.xml"
    words = ("-o", "addopts=", "-p", "no:cacheprovider", "-m", "gpu", "--rehearse", "-k", QUICK, "tests/gpu")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, f"--junitxml={results}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    tests = read_tests(results).tests
    passed = dict.fromkeys({test.module for test in tests}, 0)
    for test in tests:
        passed[test.module] += test.ended is Ended.PASSED
    properties = results.read_text(encoding="utf-8").count("<property ")
    return Rehearsal(code=done.returncode, printed=done.stdout, passed=passed, properties=properties)


def test_the_tests_of_a_gpu_can_be_rehearsed_without_one_but_for_what_only_kernels_show(rehearsal: Rehearsal) -> None:
    files = {path.stem for path in (ROOT / "tests/gpu").glob("test_*.py")}

    assert rehearsal.code == 0, rehearsal.printed
    assert rehearsal.passed.keys() == files
    assert {file for file, count in rehearsal.passed.items() if count == 0} == REAL_ALONE


def test_a_rehearsal_says_that_it_is_one_and_gives_no_figures(rehearsal: Rehearsal) -> None:
    lines = rehearsal.printed.splitlines()

    assert NAME in lines[:8]
    assert NAME in lines[8:]
    assert rehearsal.properties == 0
