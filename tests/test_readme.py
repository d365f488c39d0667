"""The README's commands are the ones that CI runs, and what it shows exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from normbench.cli import app
from tests.repositories import FAST, Repository

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def command_after(marker: str) -> str:
    """The fenced block after a marker comment, as ``.ci/run`` finds it."""
    found = re.search(rf"<!-- {marker} -->\n```\w*\n(.*?)```", README, re.DOTALL)
    assert found, f"README.md has no {marker}"
    return found[1]


def shown_sweeps() -> list[str]:
    """Every sweep in a code block, without shell prompts and comments; one between backticks is in a sentence."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return sorted(set(re.findall(r"(?<!`)normbench sweep[^\n#&|]*", "\n".join(blocks))))


def test_the_sweep_command_sets_up_an_environment_of_its_own_and_runs_the_main_job() -> None:
    command = command_after("sweep-command")

    assert "-m venv" in command
    assert "-c constraints.txt" in command
    assert "normbench sweep --quick" in command


def test_the_test_command_sets_up_an_environment_of_its_own_and_runs_the_tests() -> None:
    command = command_after("test-command")

    assert "-m venv .venv-test" in command
    assert "-c constraints.txt" in command
    assert "pytest" in command


def test_ci_takes_the_test_command_from_the_readme() -> None:
    assert "readme_command test-command" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", shown_sweeps())
def test_every_sweep_that_is_shown_is_accepted(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_norms.py").write_text("def fused_rmsnorm(x, weight, bias, eps): ...\n", encoding="utf-8")
    words = shlex.split(command.strip())[1:]
    Repository(tmp_path).commit(FAST)  # the file that the README names as a user's
    if "--resume" in words:
        return  # its folder is an example
    monkeypatch.chdir(tmp_path)
    if "--plan" in words:
        Path(words[words.index("--plan") + 1]).touch()

    result = CliRunner().invoke(app, [*words, "--dry-run", "--device", "cpu"])

    assert result.exit_code == 0, result.output


def test_what_explain_is_shown_to_print_is_what_it_prints() -> None:
    (command, shown) = re.findall(r"^\$ (normbench explain 1 2 3)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)[0]
    result = CliRunner().invoke(app, shlex.split(command)[1:])

    printed = [line.rstrip() for line in result.stdout.splitlines()]
    assert shown.splitlines() == printed[: len(shown.splitlines())]
    assert printed[len(shown.splitlines()) + 1].startswith("What each needs")  # the rest is said to be left out


def test_what_list_is_shown_to_print_is_what_it_prints_but_for_the_last_column() -> None:
    (shown,) = re.findall(r"^\$ normbench list\n(.*?)^\.\.\.$", README, re.DOTALL | re.MULTILINE)
    result = CliRunner().invoke(app, ["list", "--device", "cpu"], env={"COLUMNS": "200"})

    printed = [line for line in result.stdout.splitlines() if line.strip()]
    lines = shown.splitlines()
    assert len(lines) == 16
    assert [line for line, whole in zip(lines, printed, strict=False) if not whole.startswith(line)] == []


def test_what_check_is_shown_to_print_is_what_its_report_prints(tmp_path: Path) -> None:
    (shown,) = re.findall(r"^\$ normbench check\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    (folder,) = re.findall(r"\]\((reports/[\w-]+)/check\.md\)", README)
    result = CliRunner().invoke(app, ["report", str(ROOT / folder), "--out", str(tmp_path / "again"), "--quiet"])
    printed = [line.rstrip() for line in result.stdout.splitlines()]

    lines = [line for line in shown.splitlines() if line != "..."]
    assert len(lines) > 5
    assert [line for line in lines if line not in printed] == []


def test_what_is_said_of_steps_and_training_is_what_their_verdicts_say() -> None:
    section = README.partition("## Inside a training step")[2].partition("\n## ")[0]
    timed, trained = (
        (ROOT / path).read_text(encoding="utf-8")
        for path in re.findall(r"\]\((reports/[\w-]+/verdict\.md)\)", section)
    )
    (ratio,) = re.findall(r"`nn-rmsnorm` ([\d.]+) times, ([\d.]+) to ([\d.]+)", section)
    assert "nn-rmsnorm {} times as long ({} to {})".format(*ratio) in timed
    assert "9 norms take 0.65 % of the step of nn-layernorm" in timed
    (ends,) = re.findall(r"([\d.]+) bits per byte \(±([\d.]+)\) above `nn-layernorm`'s ([\d.]+)", section)
    assert f"| +{ends[0]} ± {ends[1]} | 0.0019 | undecided |" in trained
    assert f"| nn-layernorm | 3 of 3 | {ends[2]}0 |" in trained
    assert "0.0019: undecided" in section


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_every_file_that_is_linked_exists(target: str) -> None:
    assert (ROOT / target).exists()
