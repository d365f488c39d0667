"""Which file a value comes from: the command line goes before a plan file, that before pyproject.toml."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from normbench.cli.plan import plan_for
from normbench.records import DType, Plan
from tests.cli.command import TINY, Done, normbench


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def asked(*words: str, command: str = "sweep") -> tuple[Plan, Done]:
    """The plan that a command makes on a CPU, and what it says."""
    found: list[Plan] = []

    def note(*args: object) -> Plan:
        found.append(plan_for(*args))  # type: ignore[arg-type]
        return found[-1]

    with patch("normbench.cli.beginning.plan_for", note):
        done = normbench(command, "--device", "cpu", "--dry-run", *words)
    assert done.code == 0, done.err
    return found[-1], done


def plan_file(text: str, name: str = "sweep.toml") -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def pyproject(text: str) -> None:
    plan_file(f"[tool.normbench]\n{text}", "pyproject.toml")


def refused(*words: str, command: str = "sweep") -> str:
    done = normbench(command, *words, "--dry-run", "--device", "cpu")
    assert (done.code, done.out) == (2, "")
    return done.err


def test_the_command_line_goes_before_the_file_that_before_pyproject_and_that_before_defaults() -> None:
    pyproject("widths = [16]\nrows = 8\nseed = 1")
    file = plan_file('rows = 16\nseed = 2\ndtype = "bf16"')
    plan, done = asked("--plan", file, "--seed", "3")

    assert (plan.widths, plan.rows, plan.seed, plan.dtypes) == ((16,), (16,), 3, (DType.BF16,))
    assert plan.eps == Plan.eps
    assert done.err == "plan: sweep.toml without seed; pyproject.toml [tool.normbench]: widths\n"


def test_a_list_of_the_command_line_takes_the_place_of_the_files_and_does_not_add_to_it() -> None:
    assert asked("--plan", plan_file("widths = [16, 32]"), "--width", "64")[0].widths == (64,)


def test_a_quiet_command_says_nothing_of_where_values_come_from() -> None:
    assert asked("--plan", plan_file("widths = 16"), "--quiet")[1].err == ""


def test_without_files_nothing_is_said() -> None:
    assert asked()[1].err == ""


@pytest.mark.parametrize("name", ["profile", "counters", "quick"])
def test_a_flag_that_a_file_turns_on_is_turned_off_on_the_command_line(name: str) -> None:
    file = plan_file(f"{name} = true\nwidths = 16")
    on, off = asked("--plan", file)[0], asked("--plan", file, f"--no-{name}")[0]

    assert on != off
    assert off == asked("--widths", "16")[0]


def test_graphs_are_turned_off_on_the_command_line() -> None:
    file = plan_file("graphs = true")

    assert "sweep.toml: graphs: a CPU has no CUDA graphs" in refused("--plan", file)
    assert asked("--plan", file, "--no-graphs")[0].graphs is False


def test_what_contradicts_the_command_line_gives_way() -> None:
    one = plan_file("no-isolate = true", "one.toml")
    several = plan_file("processes = 6\ncase-timeout = 9", "several.toml")
    counters = plan_file("counters = true", "counters.toml")

    assert asked("--plan", one)[0].isolate is False
    assert asked("--plan", one, "--isolate")[0].isolate is True
    assert asked("--plan", one, "--processes", "5")[0].precision.processes == 5
    assert asked("--plan", one, "--case-timeout", "5")[0].case_timeout_s == 5
    assert asked("--plan", several)[0].precision.processes == 6
    assert asked("--plan", several, "--no-isolate")[0].isolate is False
    assert asked("--plan", counters)[0].counters is True
    assert asked("--plan", counters, "--no-profile")[0].counters is False
    assert asked("--plan", plan_file("profile = false"), "--counters")[0].counters is True


def test_what_contradicts_itself_in_one_file_is_refused() -> None:
    file = plan_file("no-isolate = true\ncase-timeout = 5")

    assert "error: sweep.toml: no-isolate: one process alone can't be ended" in refused("--plan", file)
    assert "--counters: they are of a profile, and --no-profile" in refused("--counters", "--no-profile")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('widths = "abc"', "error: sweep.toml: widths: 'abc' is not a size\nhint: allowed: whole numbers from 1"),
        ('dtype = "fp61"', "error: sweep.toml: dtype: unknown dtype 'fp61'\nhint: did you mean fp16?"),
        (
            'impls = ["nn-layernrom"]',
            "error: sweep.toml: impls: unknown implementation 'nn-layernrom'\nhint: ",
        ),
        ("eps = -1", "error: sweep.toml: eps: -1 is not a number above 0"),
        ("placements = 1", "error: sweep.toml: placements: 1 is too few"),
        ("target = 2", "error: sweep.toml: target: '2' is not a fraction"),
    ],
)
def test_a_value_that_the_command_line_would_refuse_is_refused_by_file_and_key(text: str, said: str) -> None:
    assert said in refused("--plan", plan_file(text))


def test_the_device_of_a_file_is_refused_by_file_and_key() -> None:
    done = normbench("sweep", "--plan", plan_file('device = "tpu"'), "--dry-run")

    assert (done.code, "error: sweep.toml: device tpu: there is no such device here" in done.err) == (2, True)


def test_an_error_about_the_command_line_names_the_option_also_beside_a_file() -> None:
    assert "error: --widths: 'abc' is not a size" in refused("--plan", plan_file("widths = 4"), "--widths", "abc")


def test_pyproject_is_named_in_errors_about_it() -> None:
    pyproject('widths = "abc"')
    assert "error: pyproject.toml [tool.normbench]: widths: 'abc' is not a size" in refused()
    pyproject("widhts = 4")
    assert "error: pyproject.toml [tool.normbench]: unknown key 'widhts'\nhint: did you mean widths?" in refused()


def test_profile_takes_the_keys_that_it_has_and_passes_over_those_of_sweep_in_pyproject_alone() -> None:
    pyproject("widths = 32\nprocesses = 5\nquick = true")
    plan, done = asked(command="profile")

    assert (plan.widths, plan.precision.processes, plan.rows) == ((32,), 1, (2048,))
    assert done.err == "plan: pyproject.toml [tool.normbench]: widths\n"
    said = refused("--plan", plan_file("processes = 5"), command="profile")
    assert "error: sweep.toml: processes: a key of sweep alone, which profile does not have" in said


@pytest.mark.parametrize("text", ["", "[tool]\nx = 1", "tool = 5", "[project]\nname = 'x'", "[broken", "x = \xff"])
def test_a_pyproject_without_the_table_is_nobodys_business(text: str) -> None:
    Path("pyproject.toml").write_bytes(text.encode("latin-1"))

    assert asked()[1].err == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.normbench]\nwidths = [", "error: pyproject.toml: no TOML: Invalid value, line 2: widths = ["),
        ("[tool]\nnormbench = 5", "error: pyproject.toml: tool.normbench is no table"),
        ("[[tool.normbench]]\nseed = 1", "error: pyproject.toml: tool.normbench is no table"),
    ],
)
def test_a_pyproject_of_which_it_cannot_be_told_what_it_asks_for_is_refused(text: str, said: str) -> None:
    Path("pyproject.toml").write_text(text, encoding="utf-8")

    assert said in refused()


@pytest.mark.parametrize(
    "words", [["--help"], ["sweep", "--help"], ["sweep", "--plan", "none.toml", "--help"], ["list"]]
)
def test_what_measures_nothing_reads_no_file(words: list[str]) -> None:
    pyproject("widhts = [")

    assert normbench(*words).code == 0


def test_a_pyproject_that_is_a_folder_is_passed_over() -> None:
    Path("pyproject.toml").mkdir()

    assert asked()[1].err == ""


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("none.toml", "error: none.toml: can't be read: No such file or directory"),
        (".", "error: .: can't be read: Is a directory"),
        ("/dev/zero", "error: /dev/zero: larger than 1048576 bytes"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_usage_error(file: str, said: str) -> None:
    assert said in refused("--plan", file)


def test_resuming_takes_nothing_from_files() -> None:
    assert normbench("sweep", *TINY, "--widths", "16", "--impls", "nn-rmsnorm", "--out", "run").code == 0
    pyproject("widths = [64]\nseed = 7")
    again = normbench("sweep", "--resume", "run")

    assert (again.code, again.err.count("plan:")) == (0, 0)
    both = normbench("sweep", "--resume", "run", "--plan", plan_file("widths = 64"))
    assert (both.code, "error: --plan and --resume: " in both.err) == (2, True)


def test_resuming_with_a_flag_turned_off_that_the_run_has_is_another_plan() -> None:
    words = ("--widths", "16", "--impls", "nn-rmsnorm", "--out", "run", "--profile")
    assert normbench("sweep", *TINY, *words).code == 0
    done = normbench("sweep", "--resume", "run", "--no-profile")

    assert (done.code, "--profile: the run has it, asked for none" in done.err) == (2, True)
    assert normbench("sweep", "--resume", "run", "--profile").code == 0


@pytest.mark.parametrize("shell", ["zsh", "bash"])
def test_completing_a_plans_name_leaves_file_names_to_the_shell_and_reads_none(shell: str) -> None:
    pyproject("widhts = [")
    words = "normbench sweep --plan "
    environment = os.environ | {
        "_NORMBENCH_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": words,
        "COMP_WORDS": words,
        "COMP_CWORD": "3",
    }
    program = [sys.executable, "-c", "import sys; sys.argv[0] = 'normbench'; from normbench.cli import app; app()"]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False, timeout=60)

    assert (done.stdout.strip(), done.stderr) == ("_files" if shell == "zsh" else "", "")
