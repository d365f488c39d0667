"""``import normbench`` as a program uses it: the same pipeline as the command's, records out, errors of one tree."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import psutil
import pytest

import normbench
from normbench import other_load
from normbench.cli import neighbours
from normbench.records import Run
from tests.cli.command import normbench as command

WORDS: dict[str, Any] = {
    "widths": [16],
    "rows": 8,
    "dtypes": "fp32",
    "modes": ("forward",),
    "impls": ["eager-rmsnorm"],
    "placements": 5,
    "max_seconds": 0.05,
    "device": "cpu",
}
HERE = {**WORDS, "isolate": False}
"""A plan of some milliseconds, measured in this process."""
HEAVY = ("torch", "pandas", "numpy", "matplotlib", "typer", "click", "rich", "pydantic", "tomlkit")


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def plan(**words: object) -> normbench.Plan:
    return normbench.plan(**{**HERE, **words})


def run_python(*command: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    program = [sys.executable, *command]
    return subprocess.run(
        program, input=given, capture_output=True, text=True, check=False, env=environment, timeout=120
    )


def test_the_names_that_it_offers_are_sorted_and_there() -> None:
    assert normbench.__all__ == sorted(set(normbench.__all__))
    assert [name for name in normbench.__all__ if getattr(normbench, name, None) is None] == []
    assert set(normbench.__all__) <= set(dir(normbench))
    with pytest.raises(AttributeError, match="has no attribute 'sweeep'"):
        _ = normbench.sweeep  # type: ignore[attr-defined]


def test_no_module_has_the_name_of_something_that_is_offered() -> None:
    """Importing it would put the module in that place."""
    assert {module.name for module in pkgutil.iter_modules(normbench.__path__)} & set(normbench.__all__) == set()


def classes(hint: object, found: set[type]) -> set[type]:
    """The classes of normbench that a value of this type is made of."""
    for part in get_args(hint):
        classes(part, found)
    if isinstance(hint, type) and hint.__module__.startswith("normbench") and hint not in found:
        found.add(hint)
        if dataclasses.is_dataclass(hint):
            names = vars(importlib.import_module(hint.__module__))
            for field in get_type_hints(hint, names).values():
                classes(field, found)
    return found


def test_every_type_that_a_run_is_made_of_is_offered() -> None:
    reachable = {each.__name__ for each in classes(Run, set())}

    assert "Estimate" in reachable
    assert reachable - set(normbench.__all__) == set()


@pytest.mark.parametrize(
    "code",
    ["import normbench", "import normbench; dir(normbench)", "from normbench import Plan, Run, DType, UsageError"],
)
def test_importing_it_imports_nothing_heavy(code: str) -> None:
    done = run_python("-c", f"{code}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules])")

    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_reading_a_run_takes_no_torch() -> None:
    normbench.sweep(plan(), device="cpu", out="run")
    code = "import sys; sys.modules['torch'] = None\nimport normbench as n\nr = n.load('run')\n"
    done = run_python(
        "-c", f"{code}print(n.verdict_markdown(r) == open('run/verdict.md').read(), n.compare('run', 'run').margin)"
    )

    assert (done.stdout, done.stderr) == ("True 0.02\n", "")


def test_a_plan_of_words_is_the_plan_of_the_command_line() -> None:
    words = ("--widths", "16", "--rows", "8", "--dtype", "fp32", "--modes", "forward", "--impls", "eager-rmsnorm")
    rest = ("--placements", "5", "--max-seconds", "0.05", "--device", "cpu", "--no-isolate")
    assert command("sweep", *words, *rest, "--save-plan", "plan.toml", "--dry-run").code == 0

    assert plan() == normbench.read_plan("plan.toml")
    assert plan(impls=None).implementations == normbench.plan(device="cpu").implementations


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ({"widhts": 4}, "unknown key 'widhts'", "did you mean widths?"),
        ({"widths": "abc"}, "widths: 'abc' is not a size", "allowed: whole numbers"),
        ({"width": 4}, "width: widths is the same key", "leave one"),
        ({"out": "run"}, "out: belongs on the command line", "leave it out"),
        ({"eps": "x"}, "eps: 'x' is not allowed", "allowed: a number"),
        ({"eps": object}, "eps: ", "allowed: a number"),
        ({"graphs": True}, "graphs: a CPU has no CUDA graphs", "leave it out"),
        ({"device": "tpu"}, "device tpu: there is no such device here", "available: "),
    ],
)
def test_words_that_make_no_plan_are_a_usage_error(words: dict[str, object], message: str, hint: str) -> None:
    with pytest.raises(normbench.UsageError) as raised:
        plan(**words)

    assert raised.value.message.startswith(message)
    assert hint in (raised.value.hint or "")


def test_a_plan_that_is_written_is_read_again() -> None:
    wanted = plan(widths=[16, 32], seed=3)
    normbench.write_plan(wanted, "plan.toml")

    assert normbench.read_plan("plan.toml", device="cpu") == wanted
    with pytest.raises(normbench.UsageError, match=r"plan\.toml: exists"):
        normbench.write_plan(wanted, "plan.toml")


def test_a_plan_that_no_file_can_say_is_not_written_as_another() -> None:
    finer = dataclasses.replace(plan().precision, margin=0.5)
    with pytest.raises(normbench.UsageError, match="a plan file can't say what this plan has: precision"):
        normbench.write_plan(dataclasses.replace(plan(), precision=finer), "plan.toml")

    assert list(Path().iterdir()) == []


def test_a_sweep_with_a_folder_leaves_what_the_command_leaves() -> None:
    run = normbench.sweep(plan(), device="cpu", out="run")
    words = ("--plan", "plan.toml", "--device", "cpu", "--quiet")
    normbench.write_plan(plan(), "plan.toml")
    assert command("sweep", *words, "--out", "other").code == 0

    assert normbench.load("run") == run
    assert run.is_complete
    assert {r.case.implementation for r in run.results} == {"copy", "eager-rmsnorm", "nn-layernorm"}
    files = [{str(path.relative_to(folder)) for path in folder.rglob("*")} for folder in (Path("run"), Path("other"))]
    assert files[0] == files[1]
    assert run.header.command == normbench.load("other").header.command


def test_a_sweep_without_a_folder_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    run = normbench.sweep(plan(), device="cpu")

    assert run.has_times
    assert [path for path in tmp_path.rglob("*") if path != temporary] == []


def test_a_sweep_says_nothing_but_what_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    normbench.sweep(plan(), device="cpu", progress=lines.append)
    normbench.sweep(plan(), device="cpu")

    assert capfd.readouterr() == ("", "")
    assert len(lines) == 1
    assert lines[0].startswith("[1/1] 8×16 fp32 forward warm: ")


def test_an_incomplete_run_is_returned() -> None:
    run = normbench.sweep(plan(widths="16:800:16", total_seconds=0.01), device="cpu")

    assert not run.is_complete
    assert run.results[-1].status is normbench.Status.NOT_RUN


def test_what_cannot_be_measured_here_is_refused_before_anything_is_written() -> None:
    with pytest.raises(normbench.UsageError, match="a CPU has no CUDA graphs"):
        normbench.sweep(dataclasses.replace(plan(), graphs=True), device="cpu", out="run")
    Path("there").mkdir()
    with pytest.raises(normbench.UsageError, match="there: exists"):
        normbench.sweep(plan(), device="cpu", out="there")

    assert not Path("run").exists()


def test_a_device_that_another_run_holds_is_not_measured_on() -> None:
    def beside(_line: str) -> None:
        with pytest.raises(normbench.BusyError, match="another normbench sweep runs on cpu"):
            normbench.sweep(plan(), device="cpu")
        tried.append(True)

    tried: list[bool] = []
    normbench.sweep(plan(), device="cpu", progress=beside)
    assert tried


def test_what_makes_results_doubtful_is_a_warning_of_python(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(other_load, "other_cores", lambda _seconds: 99.0)
    with pytest.warns(RuntimeWarning, match="other programs keep 99.0 of"):
        normbench.sweep(plan(), device="cpu")

    assert capfd.readouterr().err == ""
    neighbours.warn("again")
    assert capfd.readouterr().err == "warning: again\n"


@pytest.fixture
def handler() -> Iterator[Any]:
    def own(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, own)
    yield own
    signal.signal(signal.SIGTERM, before)


def test_the_programs_own_signal_handlers_stay(handler: Any) -> None:
    seen: list[object] = []
    normbench.sweep(plan(), device="cpu", progress=lambda _line: seen.append(signal.getsignal(signal.SIGTERM)))

    assert seen == [handler]


def test_an_interrupt_ends_the_workers_and_leaves_a_folder_to_go_on_with() -> None:
    workers: list[psutil.Process] = []

    def interrupt(line: str) -> None:
        if line.startswith("[1/"):
            workers.extend(each for each in psutil.Process().children() if "spawn_main" in " ".join(each.cmdline()))
            raise KeyboardInterrupt

    two = normbench.plan(**{**WORDS, "widths": [16, 32], "processes": 1})
    with pytest.raises(KeyboardInterrupt):
        normbench.sweep(two, device="cpu", out="run", progress=interrupt)

    assert [worker.is_running() for worker in workers] == [False]
    assert [cell.width for cell in normbench.load("run").missing] == [32]
    assert command("sweep", "--resume", "run", "--quiet").code == 0
    assert normbench.load("run").is_complete


def test_it_measures_in_a_thread() -> None:
    found: list[Run] = []
    isolated = normbench.plan(**{**WORDS, "processes": 1})
    thread = threading.Thread(target=lambda: found.append(normbench.sweep(isolated, device="cpu")))
    thread.start()
    thread.join()

    assert found[0].is_complete


def test_a_profile_is_a_sweep_with_profiles() -> None:
    run = normbench.profile(plan(), device="cpu")

    assert {profile.case.implementation for profile in run.profiles} >= {"eager-rmsnorm", "nn-layernorm"}
    assert run.header.plan == dataclasses.replace(plan(), profile=True)


def test_reports_are_written_where_they_are_wanted() -> None:
    run = normbench.sweep(plan(), device="cpu", out="run")
    Path("run/report.html").unlink()
    normbench.write_reports(run, "run")
    assert Path("run/report.html").exists()
    normbench.write_reports(run, "reports/here")

    assert Path("reports/here/verdict.md").read_text(encoding="utf-8") == normbench.verdict_markdown(run)
    assert Path("reports/here/report.html").exists()


BARE = f"""
import json
import normbench

print("once")
run = normbench.sweep(normbench.plan(**{{**{WORDS!r}, "processes": 1}}), device="cpu")
print(json.dumps(sorted(str(result.status) for result in run.results)))
"""


@pytest.mark.parametrize("how", ["script", "stdin", "-c", "module"])
def test_a_script_without_a_guard_measures_and_runs_once(how: str) -> None:
    Path("bare.py").write_text(BARE, encoding="utf-8")
    words = {"script": ["bare.py"], "stdin": ["-"], "-c": ["-c", BARE], "module": ["-m", "bare"]}[how]
    done = run_python(*words, given=BARE if how == "stdin" else None)

    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    assert (first, json.loads(last)) == ("once", ["ok"] * 3)


def test_a_plan_with_a_name_that_there_is_not_is_a_usage_error_before_anything_runs() -> None:
    plan = replace(normbench.plan(widths=[8], device="cpu"), implementations=("copy", "nn-layernorm", "mine"))

    with pytest.raises(normbench.UsageError, match="no implementation 'mine'"):
        normbench.sweep(plan, device="cpu")


def test_code_of_one_s_own_is_measured_like_by_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text("def rmsnorm(x, weight, eps):\n    raise ValueError('not today')\n")
    monkeypatch.chdir(tmp_path)
    plan = normbench.plan(
        widths=8,
        rows=4,
        dtypes="fp32",
        modes="forward",
        impls="mine.py:rmsnorm",
        device="cpu",
        max_seconds=0.1,
        processes=1,
    )
    run = normbench.sweep(plan, device="cpu")
    (mine,) = [result for result in run.results if result.case.implementation == "mine-rmsnorm"]

    assert (mine.status, mine.reason) == (normbench.Status.FAILED, "ValueError: not today")
    normbench.write_plan(plan, "plan.toml")
    assert normbench.read_plan("plan.toml", device="cpu") == plan
