from __future__ import annotations

import errno
from pathlib import Path
from typing import NoReturn

import pytest

from normbench.errors import StorageError, UsageError
from normbench.storage import make_folder, write_bytes, write_text
from normbench.storage.files import read_at_most


def test_a_text_file_is_utf8_and_keeps_its_line_ends(tmp_path: Path) -> None:
    write_text(tmp_path / "some.md", "µ\nb\r\nc")

    assert (tmp_path / "some.md").read_bytes() == b"\xc2\xb5\nb\r\nc"
    assert [path.name for path in tmp_path.iterdir()] == ["some.md"]


def test_a_text_file_that_cannot_be_written_whole_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "some.md"
    write_text(path, "before")

    def full(_descriptor: int) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match=r"some\.md: can't be written: No space left on device"):
        write_text(path, "after")
    assert path.read_text(encoding="utf-8") == "before"


def test_bytes_get_the_folder_that_they_need(tmp_path: Path) -> None:
    write_bytes(tmp_path / "plots" / "time.png", b"\x89")

    assert (tmp_path / "plots" / "time.png").read_bytes() == b"\x89"


def test_bytes_that_cannot_be_written_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "plots").write_text("a file", encoding="utf-8")

    with pytest.raises(StorageError, match=r"plots/time\.png: can't be written: "):
        write_bytes(tmp_path / "plots" / "time.png", b"")


def test_a_new_folder_is_made_with_those_around_it(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")

    assert (tmp_path / "a" / "b").is_dir()


def test_a_folder_that_exists_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exists, and no run is ever overwritten") as refused:
        make_folder(tmp_path, hint="do that")
    assert refused.value.hint == "do that"


def test_a_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(UsageError, match="can't be written: "):
        make_folder(tmp_path / "file" / "new")


def test_what_is_left_of_a_killed_process_is_no_obstacle_and_a_failure_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".some.md.part").write_text("half", encoding="utf-8")
    write_text(tmp_path / "some.md", "whole")
    assert [(path.name, path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()] == [("some.md", "whole")]

    def full(_descriptor: int) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError):
        write_text(tmp_path / "some.md", "after")
    assert [path.name for path in tmp_path.iterdir()] == ["some.md"]


def test_a_file_is_read_up_to_its_limit_and_no_further(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")

    assert read_at_most(tmp_path / "x", 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_at_most(tmp_path / "x", 4)
