from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from normbench.errors import StorageError, UsageError
from normbench.storage import make_folder, write_bytes, write_text
from normbench.storage.files import append, new_folder, read_at_most, unwritable, write_whole


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


def test_a_link_that_leads_nowhere_is_there_too(tmp_path: Path) -> None:
    link = tmp_path / "new"
    link.symlink_to("nowhere")

    with pytest.raises(UsageError, match="exists, and no run is ever overwritten"):
        make_folder(link)
    with pytest.raises(UsageError, match="exists, and no run is ever overwritten"), new_folder(link, "another"):
        raise AssertionError
    assert link.is_symlink()


def test_a_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(UsageError, match="can't be written: "):
        make_folder(tmp_path / "file" / "new")


@pytest.mark.parametrize("end", [KeyboardInterrupt(), ValueError(), OSError(errno.ENOSPC, "full")])
def test_pieces_that_end_early_leave_the_file_as_it_was_and_nothing_beside_it(
    tmp_path: Path, end: BaseException
) -> None:
    path = tmp_path / "plots" / "time.png"
    write_bytes(path, b"before")

    def pieces() -> Iterator[bytes]:
        yield b"after"
        raise end

    with pytest.raises((type(end), StorageError)):
        write_whole(path, pieces())
    assert path.read_bytes() == b"before"
    assert [other.name for other in path.parent.iterdir()] == ["time.png"]


def test_text_without_utf8_is_written_as_its_escape(tmp_path: Path) -> None:
    write_text(tmp_path / "some.md", "a\udcffb")
    append(tmp_path / "some.md", "c\udc80")

    assert (tmp_path / "some.md").read_bytes() == rb"a\udcffbc\udc80"


def test_nothing_is_appended_to_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"some\.csv: can't be written: No such file"):
        append(tmp_path / "some.csv", "a\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "hint"),
    [(errno.ENOSPC, "make room there"), (errno.EDQUOT, "make room there"), (errno.EROFS, "make it writable")],
)
def test_what_cannot_be_written_says_what_to_do(tmp_path: Path, code: int, hint: str) -> None:
    assert unwritable(tmp_path, OSError(code, "why")).hint == hint


def test_a_file_system_that_cannot_write_folders_through_does_not_stop_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def no_folders(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr("os.fsync", no_folders)
    write_text(tmp_path / "some.md", "whole")
    assert (tmp_path / "some.md").read_text(encoding="utf-8") == "whole"


def test_a_folder_has_its_name_once_it_is_filled(tmp_path: Path) -> None:
    with new_folder(tmp_path / "deep" / "run", hint="do that") as temporary:
        (temporary / "run.json").write_text("{}", encoding="utf-8")
        assert not (tmp_path / "deep" / "run").exists()

    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["run"]
    assert [path.name for path in (tmp_path / "deep" / "run").iterdir()] == ["run.json"]


def fill(path: Path, end: BaseException | None = None) -> None:
    """Make a folder with a file in it, and end that early or let somebody else make it meanwhile."""
    with new_folder(path, hint="do that") as temporary:
        (temporary / "run.json").write_text("{}", encoding="utf-8")
        if end is not None:
            raise end
        path.mkdir()
        (path / "theirs").touch()


@pytest.mark.parametrize("end", [KeyboardInterrupt(), ValueError()])
def test_a_folder_whose_filling_ends_early_leaves_nothing(tmp_path: Path, end: BaseException) -> None:
    with pytest.raises(type(end)):
        fill(tmp_path / "run", end)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_somebody_else_made_meanwhile_is_left_to_them(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exists, and no run") as caught:
        fill(tmp_path / "run")
    assert caught.value.hint == "do that"
    assert [path.name for path in tmp_path.rglob("*")] == ["run", "theirs"]


def test_a_file_is_read_up_to_its_limit_and_no_further(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")

    assert read_at_most(tmp_path / "x", 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_at_most(tmp_path / "x", 4)
