from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from normbench.gpu_acceptance.tested import Ended, read_tests

MODULE = """
import pytest

def test_passes(record_property):
    record_property("off_by", 0.0125)
    record_property("where", "64x64 bf16 forward")

def test_fails(record_property):
    record_property("figure", "a spin: 3 s")
    raise ValueError("too long\\nand more")

def test_is_skipped():
    pytest.importorskip("no_such_kernels", reason="no-such-kernels is not installed")

@pytest.fixture
def broken():
    raise OSError("gone")

def test_meets_an_error(broken):
    pass
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pytest itself says of a file with a test of each kind, in a folder."""
    folder = tmp_path_factory.mktemp("tests")
    (folder / "gpu").mkdir()
    (folder / "gpu" / "test_kinds.py").write_text(MODULE, encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=found.xml", "gpu"]
    subprocess.run(words, cwd=folder, check=False, capture_output=True)
    return folder / "found.xml"


def test_every_test_is_read_with_how_it_ended_and_why(report: Path) -> None:
    ends = {test.name: (test.ended, test.reason) for test in read_tests(report).of("test_kinds")}
    assert ends == {
        "test_passes": (Ended.PASSED, ""),
        "test_fails": (Ended.FAILED, "ValueError: too long"),
        "test_is_skipped": (Ended.SKIPPED, "no-such-kernels is not installed"),
        "test_meets_an_error": (Ended.FAILED, 'failed on setup with "OSError: gone"'),
    }


def test_the_figures_that_a_test_recorded_are_read_whether_or_not_it_passed(report: Path) -> None:
    figures = {test.name: dict(test.figures) for test in read_tests(report).tests if test.figures}
    assert figures == {
        "test_passes": {"off_by": "0.0125", "where": "64x64 bf16 forward"},
        "test_fails": {"figure": "a spin: 3 s"},
    }


def test_a_report_that_is_cut_is_no_report(report: Path, tmp_path: Path) -> None:
    cut = tmp_path / "tests.xml"
    cut.write_text(report.read_text(encoding="utf-8")[:-30], encoding="utf-8")
    with pytest.raises(ValueError, match=r"tests\.xml is not whole"):
        read_tests(cut)


def test_how_many_tests_there_were_to_be_is_read_by_module(tmp_path: Path) -> None:
    path = tmp_path / "tests.xml"
    path.write_text(
        '<testsuites><testsuite><properties><property name="collected test_cheats" value="151"/></properties>'
        '<testcase classname="tests.gpu.test_cheats.TestAll" name="test_one"><skipped message="why"/>'
        '<failure message="OSError: /home/someone/a.py"/></testcase></testsuite></testsuites>',
        encoding="utf-8",
    )
    found = read_tests(path)
    assert found.collected == {"test_cheats": 151}
    (test,) = found.of("test_cheats")
    assert test.ended is Ended.FAILED
    assert "someone" not in test.reason
