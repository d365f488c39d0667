"""Folders with a commit in them: who shares one, and that none is left behind, whatever ends the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from normbench.errors import UsageError
from normbench.records import Brought
from normbench.sources.git import repository_of
from normbench.sources.locating import located
from normbench.sources.trees import checked_out
from tests.repositories import FAST, FILE, SLOW, Repository

_HOLDING = """
import sys, time
from pathlib import Path
from normbench import __main__
from normbench.interruption import take_over
from normbench.sources.git import repository_of
from normbench.sources.trees import checked_out

take_over(__main__._leave)
with checked_out(repository_of(Path("repo/x.py").absolute()), sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary ones, which is this test's own."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(autouse=True)
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repo")
    made.commit(FAST)
    made.commit(SLOW)
    return made


@pytest.fixture
def holder(repository: Repository) -> Iterator[subprocess.Popen[str]]:
    """Another process that has a commit checked out."""
    program = [sys.executable, "-c", _HOLDING, repository.git("rev-parse", "HEAD")]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def asked(name: str, revision: str) -> Brought:
    return Brought(name=name, target=f"repo/{FILE}:rmsnorm", revision=revision)


def test_what_one_revision_gives_shares_a_folder_and_another_revision_has_its_own(
    repository: Repository, temporary: Path
) -> None:
    repository.git("tag", "same", "HEAD~1")

    with located([asked("base", "HEAD~1"), asked("other", "same"), asked("head", "HEAD")]) as found:
        roots = [one.root for one in found]
        assert roots[0] == roots[1] != roots[2]
        assert len(list(temporary.iterdir())) == 2

    assert list(temporary.iterdir()) == []


def test_the_folder_has_the_repositorys_name_so_that_a_package_at_its_root_keeps_its_own(
    repository: Repository,
) -> None:
    repository.commit("", "__init__.py")
    repository.commit("", "kernels/__init__.py")

    with located([asked("base", "HEAD")]) as [found]:
        assert found.module == "repo.kernels.rms"


def test_it_is_gone_after_an_error(temporary: Path) -> None:
    with pytest.raises(RuntimeError), located([asked("base", "HEAD")]):
        raise RuntimeError
    with pytest.raises(UsageError), located([asked("base", "HEAD"), asked("head", "nowhere")]):
        pass

    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_program_at_once_removes_it(
    holder: subprocess.Popen[str], temporary: Path, sent: signal.Signals
) -> None:
    assert len(list(temporary.iterdir())) == 1

    holder.send_signal(sent)

    assert holder.wait(timeout=20) == 130
    assert list(temporary.iterdir()) == []


def test_what_a_killed_run_left_is_removed_by_the_next_one(holder: subprocess.Popen[str], temporary: Path) -> None:
    holder.kill()
    holder.wait(timeout=20)
    [left] = temporary.iterdir()

    with located([asked("base", "HEAD")]):
        assert not left.exists()

    assert list(temporary.iterdir()) == []


@pytest.mark.usefixtures("holder")
def test_what_a_run_uses_that_is_still_there_is_left_alone(temporary: Path) -> None:
    [used] = temporary.iterdir()

    with located([asked("base", "HEAD~1")]):
        assert len(list(temporary.iterdir())) == 2

    assert list(temporary.iterdir()) == [used]
    assert (used / "at" / "repo" / FILE).read_text(encoding="utf-8") == SLOW


def test_folders_of_others_are_left_alone(temporary: Path) -> None:
    (temporary / "normbench-tree-without-a-lock").mkdir()
    (temporary / "elsewhere").mkdir()
    (temporary / "elsewhere" / "lock").touch()
    (temporary / "normbench-tree-link").symlink_to(temporary / "elsewhere")

    with located([asked("base", "HEAD")]):
        pass

    assert len(list(temporary.iterdir())) == 3
    assert (temporary / "elsewhere" / "lock").exists()


def test_where_nothing_can_be_locked_it_works_all_the_same(
    repository: Repository, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr("fcntl.flock", refuse)
    found = repository_of(repository.folder / FILE)

    with checked_out(found, found.commit("HEAD")) as one, checked_out(found, found.commit("HEAD~1")) as other:
        assert (one / FILE).read_text(encoding="utf-8") == SLOW
        assert (other / FILE).read_text(encoding="utf-8") == FAST

    assert list(temporary.iterdir()) == []
