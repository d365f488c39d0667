"""The documents say what the code does: every column with its description, every flag and reason, every command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from normbench import __all__ as offered
from normbench.cli import app
from normbench.cli.keys import keys_of
from normbench.records import ROUNDING, Property, Reason, Status
from normbench.reporters.meanings import FLAGS, REASONS
from normbench.storage import (
    CELLS,
    CHECKS,
    COMPARISONS,
    KERNELS,
    RESULTS,
    SAMPLES,
    STEP_CELLS,
    STEP_COMPARISONS,
    STEP_SAMPLES,
    STEPS,
    TRAFFIC,
    TRAINING,
)
from tests.cli.command import normbench

ROOT = Path(__file__).resolve().parent.parent
CHECKS_PAGE = ROOT / "docs" / "checks.md"
AGAINST = ROOT / "docs" / "base-and-head.md"
RUN_FOLDER = ROOT / "docs" / "run-folder.md"
PAGES = ("measurement", "step", "plan-file", "library")
COMMANDS = [str(command.name) for command in app.registered_commands]


def table(heading: str, key: str) -> dict[str, str]:
    """The first table below a heading whose first column is headed ``key``: code to meaning, in order."""
    text = RUN_FOLDER.read_text(encoding="utf-8")
    section = re.split(rf"^## {re.escape(heading)}$", text, flags=re.MULTILINE)[1].partition("\n## ")[0]
    rows = section.partition(f"| {key} | meaning |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()
    return dict(re.fullmatch(r"\| `(\w+)` \| (.*) \|", row).groups() for row in rows)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("file", "columns"),
    [
        ("results.csv", RESULTS),
        ("comparisons.csv", COMPARISONS),
        ("cells.csv", CELLS),
        ("samples.csv", SAMPLES),
        ("traffic.csv", TRAFFIC),
        ("kernels.csv", KERNELS),
        ("check.csv", CHECKS),
        ("step.csv", STEPS),
        ("step-comparisons.csv", STEP_COMPARISONS),
        ("step-cells.csv", STEP_CELLS),
        ("step-samples.csv", STEP_SAMPLES),
        ("training.csv", TRAINING),
    ],
)
def test_every_column_is_described_in_its_order_and_as_the_code_describes_it(
    file: str, columns: dict[str, str]
) -> None:
    assert list(table(file, "column").items()) == list(columns.items())


def test_every_flag_is_described_as_reports_describe_it() -> None:
    assert table("results.csv", "flag") == {str(flag): meaning for flag, meaning in FLAGS.items()}


def test_every_reason_is_described_as_reports_describe_it() -> None:
    assert table("comparisons.csv", "reason") == {str(reason): meaning for reason, meaning in REASONS.items()}
    assert set(REASONS) == set(Reason)


def test_every_property_is_described_in_its_order_and_as_reports_describe_it() -> None:
    text = CHECKS_PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (.*) \| (.*) \|$", text, re.MULTILINE)

    assert rows == [(str(asked), asked.asks, asked.allows) for asked in Property]
    assert f'"Rounding", where the table says it, is {ROUNDING}.' in text


def test_the_number_of_properties_that_the_readme_says_is_theirs() -> None:
    (number,) = re.findall(r"(\d+) properties", (ROOT / "README.md").read_text(encoding="utf-8"))

    assert int(number) == len(Property)


def test_every_status_is_named() -> None:
    text = RUN_FOLDER.read_text(encoding="utf-8")

    assert [status for status in Status if f"`{status}`" not in text] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readme_names_every_command(name: str) -> None:
    assert f"normbench {name}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_option_that_the_documents_name_exists() -> None:
    known = set(re.findall(r"--[a-z][a-z-]+", " ".join(normbench(name, "--help").out for name in COMMANDS)))
    known |= set(re.findall(r"--[a-z][a-z-]+", normbench("--help").out))
    for path in (RUN_FOLDER, CHECKS_PAGE, AGAINST, *(ROOT / "docs" / f"{name}.md" for name in PAGES)):
        named = set(re.findall(r"(?<!-)--[a-z][a-z-]+", path.read_text(encoding="utf-8")))
        assert named - known == set(), path.name


def example(page: str, marker: str) -> str:
    """The fenced block after a marker comment in a page."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    found = re.search(rf"<!-- {marker} -->\n```\w+\n(.*?)```", text, re.DOTALL)
    assert found, f"{page}.md has no {marker}"
    return found[1]


def test_the_plan_file_that_is_shown_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.toml").write_text(example("plan-file", "plan-file"), encoding="utf-8")
    done = normbench("sweep", "--plan", "sweep.toml", "--device", "cpu", "--dry-run")

    assert (done.code, done.err) == (0, "plan: sweep.toml\n")
    assert "4096×8192 bf16 forward-backward" in done.out


def test_the_page_of_plan_files_names_what_belongs_on_the_command_line() -> None:
    text = (ROOT / "docs" / "plan-file.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"\*\*The command line alone\*\*(.*?)\n- ", text, re.DOTALL)
    apart = {
        name
        for command in (get_command(app).commands[name] for name in ("sweep", "profile"))  # type: ignore[attr-defined]
        for name in keys_of(command).apart
    }

    assert set(re.findall(r"`--([a-z-]+)`", listed)) == apart - {"help"}


def test_the_program_that_is_shown_runs_as_a_script(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(example("library", "library"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    assert re.search(r"^nn-rmsnorm \d", done.stdout, re.MULTILINE)
    assert (tmp_path / "my-run" / "verdict.md").read_text(encoding="utf-8") in done.stdout


def test_the_page_of_the_library_names_every_function_that_it_offers() -> None:
    text = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    functions = [name for name in offered if name.islower()]

    assert functions
    assert [name for name in functions if f"`{name}(" not in text] == []
