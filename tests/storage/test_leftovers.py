from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from normbench.storage import leftovers


@pytest.fixture(scope="module")
def dead() -> int:
    """The number of a process that is no more."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_written_has_a_name_beside_its_own_that_no_other_process_takes(tmp_path: Path) -> None:
    name = leftovers.name_for(tmp_path / "run.json")

    assert name == tmp_path / f".run.json.{os.getpid()}.part"


def test_what_dead_processes_and_an_earlier_self_left_is_removed_and_nothing_else(tmp_path: Path, dead: int) -> None:
    others = [f".c.{os.getppid()}.part", ".d.part", "e.part", "f"]
    for name in (f".a.{dead}.part", f".b.csv.{os.getpid()}.part", *others):
        (tmp_path / name).touch()
    (tmp_path / f".folder.{dead}.part" / "in").mkdir(parents=True)
    leftovers.remove(tmp_path)

    assert names(tmp_path) == sorted(others)


def test_only_what_is_of_a_name_is_removed_where_one_is_given(tmp_path: Path, dead: int) -> None:
    for name in ("run", "run-2", "other.run"):
        (tmp_path / f".{name}.{dead}.part").mkdir()
    leftovers.remove(tmp_path, of="run")

    assert names(tmp_path) == sorted([f".run-2.{dead}.part", f".other.run.{dead}.part"])


def test_what_lies_deeper_is_removed_where_that_is_asked_for(tmp_path: Path, dead: int) -> None:
    for place in (tmp_path, tmp_path / "traces" / "nn"):
        place.mkdir(parents=True, exist_ok=True)
        (place / f".x.{dead}.part").touch()
    leftovers.remove_below(tmp_path)

    assert [path.name for path in tmp_path.rglob("*")] == ["traces", "nn"]


def test_a_link_is_removed_and_not_what_it_points_to(tmp_path: Path, dead: int) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    (tmp_path / f".x.{dead}.part").symlink_to(tmp_path / "precious")
    leftovers.remove(tmp_path)

    assert names(tmp_path) == ["precious"]
    assert names(tmp_path / "precious") == ["file"]


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    leftovers.remove(tmp_path / "nowhere")
    leftovers.remove_below(tmp_path / "nowhere")

    assert names(tmp_path) == []
