"""The documents say what the code does: every column with its description, every flag and reason, every command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from normbench.cli import app
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
    for path in (RUN_FOLDER, CHECKS_PAGE, ROOT / "docs" / "measurement.md", ROOT / "docs" / "step.md", AGAINST):
        named = set(re.findall(r"(?<!-)--[a-z][a-z-]+", path.read_text(encoding="utf-8")))
        assert named - known == set(), path.name
