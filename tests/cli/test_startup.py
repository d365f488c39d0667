from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from normbench import __version__
from normbench.cli import app
from tests.cli.command import normbench
from tests.repositories import FAST, Repository

HEAVY = ("jinja2", "matplotlib", "numpy", "pandas", "psutil", "rich.table", "scipy", "torch", "normbench.storage")
"""What takes long to import. Not pydantic, which Typer 0.29 imports itself: ours comes with ``normbench.storage``."""
COMMANDS = [str(command.name) for command in app.registered_commands]

WHAT_IS_IMPORTED = f"""
import json, sys
from normbench.cli import main
code = 0
try:
    main()
except SystemExit as end:
    code = end.code
print(json.dumps([code, [name for name in {HEAVY!r} if name in sys.modules]]), file=sys.stderr)
"""


def end_and_imports(folder: Path, *words: str) -> list[object]:
    """The exit code, and which heavy packages the command imported."""
    command = [sys.executable, "-c", WHAT_IS_IMPORTED, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    found = json.loads(done.stderr.splitlines()[-1])
    assert isinstance(found, list)
    return found


def examples(name: str) -> list[str]:
    """The examples in a command's help."""
    _, _, after = normbench(name, "--help").out.partition("Examples:\n")
    return [line.strip() for line in after.splitlines() if line.strip()]


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_imports_nothing_heavy(tmp_path: Path, words: list[str]) -> None:
    assert end_and_imports(tmp_path, *words) == [0, []]


@pytest.mark.parametrize(
    "words",
    [
        ["bogus"],
        ["sweep", "--bogus"],
        ["sweep", "--widths", "0"],
        ["sweep", "--widths"],
        ["sweep", "--impls", "nn-layernrom"],
        ["sweep", "--impls", "norms.py"],
        ["sweep", "--impls", "norms.py:rms"],
        ["sweep", "--impls", "x-rmsnorm=json:dmups"],
        ["check", "--impls", "no.such.module:rms"],
        ["step", "--impls", "mine=torch.nn:Linear"],
        ["sweep", "--dtype", "fp23"],
        ["sweep", "--out", "."],
        ["sweep", "--resume", "run", "--out", "other"],
        ["sweep", "--force"],
        ["sweep", "--plan", "none.toml"],
        ["sweep", "--save-plan", "."],
        ["profile", "--save-plan", "-"],
        ["check", "--bogus"],
        ["check", "--properties", "zero-maen"],
        ["check", "--allow", "nn-rmsnorm:beauty"],
        ["check", "--impls", "copy"],
        ["check", "--json", "--markdown"],
        ["check", "--out", "."],
        ["report"],
        ["compare", "before"],
        ["compare", "before", "after", "--fail-on", "faster"],
        ["compare", "before", "after", "--fail-on", "slower:0%"],
        ["compare", "before", "after", "--format", "html"],
        ["compare", "before", "after", "--format", "table", "--json"],
        ["explain", "one"],
        ["explain", "1", "--eps", "-1"],
        ["explain", "1", "2", "--gain", "1", "2", "3"],
        ["explain", "1", "--html", "no/where.html"],
    ],
)
def test_a_usage_error_imports_nothing_heavy_and_leaves_nothing(tmp_path: Path, words: list[str]) -> None:
    assert end_and_imports(tmp_path, *words) == [2, []]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples_of_itself(name: str) -> None:
    done = normbench(name, "--help")

    assert (done.code, done.err) == (0, "")
    assert examples(name)
    assert all(example.startswith(f"normbench {name}") for example in examples(name))


@pytest.mark.parametrize("example", [e for e in examples("sweep") if "--resume" not in e and "plan " not in e])
def test_the_examples_of_a_sweep_are_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    repository = Repository(tmp_path)
    repository.commit(FAST)
    repository.commit("class FusedRMSNorm: ...\n", "my_norms.py")
    before = sorted(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    done = normbench(*example.split()[1:], "--dry-run")

    assert (done.code, done.err) == (0, "")
    assert sorted(tmp_path.iterdir()) == before


def test_the_examples_of_plan_files_follow_from_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = [example for name in ("sweep", "profile") for example in examples(name) if "plan " in example]
    done = [normbench(*example.split()[1:], "--dry-run") for example in shown]

    assert [(each.code, each.err) for each in done] == [
        (0, "plan written: widths.toml\n"),
        (0, "plan: widths.toml without dtypes\n"),
        (0, "plan written: profile.toml\n"),
        (0, "plan: profile.toml without dtypes\n"),
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"widths.toml", "profile.toml"}


@pytest.mark.parametrize(
    "option", ["--eps", "--placements", "--target", "--seed", "--baseline", "--max-seconds", "--param-dtype", "--out"]
)
def test_the_help_of_the_sweep_says_the_default_of_an_option(option: str) -> None:
    text = " ".join(normbench("sweep", "--help").out.split())

    assert re.search(rf"{option} (?:(?! --)[^[])*\[[^]]+\]", text)


def test_without_a_command_the_help_is_shown() -> None:
    done = normbench()

    assert all(name in done.out + done.err for name in COMMANDS)
    assert done.code == 2


def test_the_version_is_said() -> None:
    assert normbench("--version").out == f"normbench {__version__}\n"


@pytest.mark.parametrize(
    "command", [[sys.executable, "-m", "normbench"], [Path(sys.executable).with_name("normbench")]]
)
def test_the_installed_command_and_the_module_are_the_same(command: list[str]) -> None:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, done.stdout, done.stderr) == (0, f"normbench {__version__}\n", "")
