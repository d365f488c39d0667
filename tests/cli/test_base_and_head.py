"""Base against head of real repositories: who is the baseline, what each imports, what can't lie in one process."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Done, normbench, rows, statuses
from tests.cli.test_interrupts import SMALL, measuring, sweeping
from tests.cli.timed import ENOUGH, USUAL_S, tell
from tests.repositories import FAST, FILE, SLOW, WRONG, Repository

WORDS = ("sweep", *ENOUGH, "--widths", "64")
PAIR = (f"base={FILE}:rmsnorm@HEAD~1", f"head={FILE}:rmsnorm")


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with a commit, which is the current folder; and nothing is drawn."""
    made = Repository(tmp_path / "repo")
    made.commit("reports/\nout*\nrun\n", ".gitignore")
    made.commit(FAST)
    monkeypatch.chdir(made.folder)
    monkeypatch.setattr("normbench.reporters.plots.draw", lambda _run, _most=None: iter(()))
    tell(monkeypatch, {"head": 2 * USUAL_S, "head-rmsnorm": 2 * USUAL_S})
    return made


def sweep(*impls: str, out: str = "run", **options: str) -> Done:
    """A tiny sweep of these implementations."""
    more = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    return normbench(*WORDS, "--impls", *impls, "--out", out, *more)


def header(out: str = "run") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(out, "run.json").read_text(encoding="utf-8"))
    return found


def names(out: str = "run") -> dict[str, str]:
    return {name: status for _width, name, status in statuses(Path(out))}


def reasons(out: str = "run") -> dict[str, str]:
    return {row["implementation"]: row["reason"] for row in rows(Path(out, "results.csv"))}


# --- the baseline


def test_head_is_measured_against_base_and_torch_stays_away(repository: Repository) -> None:
    repository.commit(SLOW)

    done = sweep(*PAIR)

    assert done.code == 0, done.err
    assert names() == {"copy": "ok", "base": "ok", "head": "ok"}
    assert header()["plan"]["baseline"] == "base"
    assert "head is slower than base in 1 of 1 cell (fp32 forward at width 64: 0.50 times as fast)" in done.out
    base, head = (repository.git("rev-parse", "--short=10", each) for each in ("HEAD~1", "HEAD"))
    assert f"base is {FILE}:4 at commit {base}; head is {FILE}:4 at commit {head}." in done.out


def test_what_is_named_comes_along(repository: Repository) -> None:
    repository.commit(SLOW)

    assert sweep(*PAIR, "nn-rmsnorm").code == 0
    assert set(names()) == {"copy", "nn-rmsnorm", "base", "head"}


def test_whoever_names_a_baseline_has_it(repository: Repository) -> None:
    repository.commit(SLOW)

    assert sweep(*PAIR, baseline="nn-rmsnorm").code == 0
    assert header()["plan"]["baseline"] == "nn-rmsnorm"


def test_a_name_may_end_in_the_formula(repository: Repository) -> None:
    repository.commit(SLOW)

    done = sweep(f"base-rmsnorm={FILE}:rmsnorm@HEAD~1", f"head-rmsnorm={FILE}:rmsnorm")

    assert done.code == 0, done.err
    assert header()["plan"]["baseline"] == "base-rmsnorm"
    assert "head-rmsnorm is slower than base-rmsnorm" in done.out


def test_head_alone_is_measured_against_the_usual_baseline() -> None:
    assert sweep(PAIR[1]).code == 0
    assert header()["plan"]["baseline"] == "nn-layernorm"


def test_two_formulas_are_refused_unless_a_baseline_is_named() -> None:
    two = (f"base-rmsnorm={FILE}:rmsnorm", f"head-layernorm={FILE}:rmsnorm")
    done = sweep(*two)

    assert done.code == 2
    assert "base-rmsnorm computes rmsnorm and head-layernorm layernorm" in done.err
    assert "--baseline NAME" in done.err
    assert not Path("run").exists()
    assert sweep(*two, baseline="base-rmsnorm").code == 0


def test_two_bases_are_refused() -> None:
    done = sweep(f"base={FILE}:rmsnorm", f"base-rmsnorm={FILE}:rmsnorm")

    assert done.code == 2
    assert "base and base-rmsnorm are all base" in done.err


def test_the_same_code_twice_is_measured_and_said_to_be_an_a_a_test() -> None:
    done = sweep(f"base={FILE}:rmsnorm@HEAD", f"head={FILE}:rmsnorm")

    assert done.code == 0
    assert names()["head"] == "ok"
    assert "base and head are the same code" in done.out


# --- what each imports


def packaged(repository: Repository, imported: str, factor: int) -> None:
    """A package whose norm is multiplied by what a neighbour says: it is right where that is 1."""
    repository.write("", "mypackage/__init__.py")
    repository.write("", "mypackage/ops/__init__.py")
    repository.write(f"FACTOR = {factor}\n", "mypackage/ops/settings.py")
    repository.commit(f"{imported}\n{FAST.replace('* weight', '* weight * FACTOR')}", "mypackage/ops/rms.py")


PACKAGED = ("base=mypackage/ops/rms.py:rmsnorm@HEAD~1", "head=mypackage/ops/rms.py:rmsnorm")


@pytest.mark.parametrize("factors", [(1, 2), (2, 1), (1, 1)])
@pytest.mark.parametrize(
    "imported", ["from .settings import FACTOR", "from mypackage.ops.settings import FACTOR"], ids=["dots", "name"]
)
def test_each_has_the_neighbours_of_its_own_revision(
    repository: Repository, imported: str, factors: tuple[int, int]
) -> None:
    for factor in factors:
        packaged(repository, imported, factor)

    sweep(*PACKAGED)

    base, head = ("ok" if factor == 1 else "incorrect" for factor in factors)
    assert names() == {"copy": "ok", "base": base, "head": head}


def test_what_is_installed_editable_is_neither_of_them(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = Repository(tmp_path / "installed")
    packaged(installed, "from mypackage.ops.settings import FACTOR", 2)
    packaged(repository, "from mypackage.ops.settings import FACTOR", 1)
    packaged(repository, "from mypackage.ops.settings import FACTOR", 1)
    monkeypatch.syspath_prepend(installed.folder)
    monkeypatch.delitem(sys.modules, "mypackage", raising=False)

    assert sweep(*PACKAGED).code == 0
    assert names() == {"copy": "ok", "base": "ok", "head": "ok"}


OPERATOR = """
import torch


@torch.library.custom_op("{name}::rmsnorm", mutates_args=())
def _op(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rmsnorm(x, weight, eps):
    return _op(x, weight, eps)
"""


def test_two_of_one_operator_are_not_timed_and_the_reason_says_what_to_do(repository: Repository) -> None:
    repository.commit(OPERATOR.format(name="kernels_a"))
    repository.commit(OPERATOR.format(name="kernels_a") + "# a change\n")

    done = sweep(*PAIR, fail_on="slower:5%")

    assert (names()["base"], names()["head"]) == ("failed", "failed")
    for name in ("base", "head"):
        assert "the operator kernels_a::rmsnorm is registered twice by what is compared" in reasons()[name]
        assert "give it another name in one of them" in reasons()[name]
    assert done.code == 3
    assert "Gate: not judged" in done.out


def test_a_fault_in_base_names_no_folder_of_this_machine(repository: Repository, tmp_path: Path) -> None:
    repository.commit("def rmsnorm(x, weight, eps:\n    return x\n")
    repository.commit(FAST)

    assert sweep(*PAIR).code in (0, 3)
    assert names() == {"copy": "ok", "base": "failed", "head": "ok"}
    assert "SyntaxError" in reasons()["base"]
    texts = [path.read_text(encoding="utf-8") for path in Path("run").glob("*.*") if path.suffix != ".gz"]
    assert not any("normbench-tree-" in text or str(tmp_path) in text for text in texts)


def test_the_repository_is_left_as_it_was(repository: Repository) -> None:
    repository.commit(SLOW)
    repository.write(WRONG)
    repository.git("stash")
    repository.write(SLOW + "# edited\n")
    before = repository.state

    assert sweep(*PAIR).code == 0
    assert repository.state == before


# --- going on


def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of base and head that was interrupted after its first cell."""
    from tests.cli.test_sweep import stop_after

    with monkeypatch.context() as patched:
        stop_after(patched, 1)
        assert normbench(*WORDS, "--widths", "128", "--impls", *PAIR, "--out", "run").code == 130


def test_a_run_goes_on_with_its_own_commits_although_the_branch_has_moved(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = repository.git("rev-parse", "HEAD")
    repository.commit(SLOW)
    stopped(monkeypatch)
    repository.git("branch", "--quiet", "--move", "main", "elsewhere")
    repository.git("checkout", "--quiet", "--detach")

    assert normbench("sweep", "--resume", "run").code == 0
    repository.git("commit", "--quiet", "--allow-empty", "--message", "x")
    done = normbench("sweep", "--resume", "run", "--force")

    assert done.code == 0, done.err
    assert {status for _width, _name, status in statuses(Path("run"))} == {"ok"}
    [base] = [each for each in header()["implementations"] if each["name"] == "base"]
    assert base["source"]["commit"] == first


def test_the_command_that_a_run_names_goes_on_with_it(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit(SLOW)
    stopped(monkeypatch)

    done = normbench(*header()["command"][1:], "--no-isolate", "--resume", "run")

    assert done.code == 0, done.err


def test_an_edited_head_is_refused_in_words_and_forced_with_a_note(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.commit(SLOW)[:10]
    stopped(monkeypatch)
    repository.write(SLOW + "# edited\n")

    done = normbench("sweep", "--resume", "run")

    assert done.code == 2
    assert f"head was rmsnorm, {FILE}:4 at commit {commit}, SHA-256 " in done.err
    assert f", is rmsnorm, {FILE}:4 at commit {commit}, with uncommitted changes, SHA-256 " in done.err
    assert "base was" not in done.err
    assert normbench("sweep", "--resume", "run", "--force").code == 0
    assert "head was rmsnorm" in Path("run", "verdict.md").read_text(encoding="utf-8")


# --- however it ends


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_sweep_removes_what_was_checked_out(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: signal.Signals
) -> None:
    repository.commit(SLOW)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    before = repository.git("worktree", "list")
    (repository.folder / ".gitignore").write_text("run\nmeasuring\ntelling.py\n.gitignore\n", encoding="utf-8")

    with sweeping(repository.folder, "--widths", "64", *SMALL, "--impls", *PAIR) as process:
        measuring(repository.folder)
        assert len(list(temporary.glob("normbench-tree-*"))) == 1
        process.send_signal(sent)
        assert process.wait(timeout=120) == 130

    assert list(temporary.glob("normbench-tree-*")) == []
    assert repository.git("worktree", "list") == before
    assert (repository.folder / "run" / "verdict.md").exists()
