"""A package that is missing: what still works, and what is said by whatever does not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from normbench.requirements import REQUIRED, lacking

ROOT = Path(__file__).parents[1]
DISPENSABLE = {"nvidia-ml-py", "tensorboard", "torch-tb-profiler"}
"""What is asked for and has words of its own where it is missing, or is done without."""
NOT_EVERYWHERE = ("tomlkit", "tensorboard", "torch_tb_profiler", "playwright", "yaml", "liger_kernel")

HIDDEN = """
import os
from functools import partial
from importlib.machinery import PathFinder

def find_spec(find, name, path=None, target=None):
    return None if name.partition(".")[0] in os.environ["HIDDEN"].split(",") else find(name, path, target)

PathFinder.find_spec = partial(find_spec, PathFinder.find_spec)
"""
"""What Python runs before anything else, so that packages that are installed are not found."""


@pytest.fixture(scope="module")
def hiding(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hiding")
    (folder / "sitecustomize.py").write_text(HIDDEN, encoding="utf-8")
    return folder


def without(packages: str, hiding: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run ``python -m ...`` where these packages are not found, from a checkout that is not installed."""
    environment = {**os.environ, "HIDDEN": packages, "PYTHONPATH": f"{hiding}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", *map(str, words)]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_what_is_told_to_be_installed_is_what_the_project_asks_for() -> None:
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    names = {re.split(r"[<>=]", each)[0] for each in asked}

    assert names - DISPENSABLE == REQUIRED


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("typer", ("list",)),
        ("rich", ("list",)),
        ("pydantic", ("report", ".")),
        ("torch", ("sweep", "--widths", "64", "--dry-run")),
        ("psutil", ("sweep", "--widths", "64", "--dry-run")),
        ("matplotlib", ("sweep", "--widths", "64", "--rows", "4", "--out", "{tmp}/run")),
        ("tomlkit", ("sweep", "--widths", "64", "--dry-run", "--save-plan", "-")),
    ],
)
def test_a_command_that_needs_a_package_names_it_and_says_how_to_get_it(
    package: str, words: tuple[str, ...], hiding: Path, tmp_path: Path
) -> None:
    done = without(package, hiding, "normbench", *(word.format(tmp=tmp_path) for word in words))

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines()[-2:] == [
        f"error: {package}: not installed, and this needs it",
        f"hint: pip install {package}",
    ]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("package", ["typer", "rich", "pydantic", "scipy"])
def test_so_does_the_acceptance_of_a_gpu(package: str, hiding: Path) -> None:
    done = without(package, hiding, "normbench.gpu_acceptance")

    assert (done.returncode, done.stdout) == (3, "")
    assert f"pip install {package}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [("list",), ("explain", "1", "2"), ("sweep", "--widths", "64", "--dry-run")])
def test_what_needs_none_of_those_that_are_not_everywhere_works_without_them(
    words: tuple[str, ...], hiding: Path
) -> None:
    done = without(",".join(NOT_EVERYWHERE), hiding, "normbench", *words)

    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_tests_of_a_gpu_are_collected_without_what_is_not_everywhere(hiding: Path) -> None:
    words = ("-m", "gpu", "--collect-only", "-p", "no:cacheprovider", "tests")
    done = without(",".join(NOT_EVERYWHERE), hiding, "pytest", *words)

    assert done.returncode == 0, done.stdout
    assert "tests/gpu/test_device_time.py" in done.stdout


def test_an_import_that_no_package_would_mend_is_a_fault() -> None:
    assert lacking(ModuleNotFoundError("no", name="torch._inductor.gone")) is None
    assert lacking(ModuleNotFoundError("no", name="normbench.gone")) is None
    assert lacking(ModuleNotFoundError("no", name="_lzma")) is None
    assert lacking(ModuleNotFoundError("no")) is None


def test_of_a_package_that_only_another_one_needs_pip_tells_which() -> None:
    told = lacking(ModuleNotFoundError("no", name="contourpy"))

    assert told is not None
    assert told.message == "contourpy: not installed, and this needs it"
    assert told.hint == "pip check says which package needs it"
