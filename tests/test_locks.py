"""Claims on devices: of real processes, which are killed or other users; and files that anybody may have left."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

import pytest

from normbench import locks
from normbench.locks import Claim, TakenError
from tests.claiming import Other, other

ONE, TWO = 61001, 61002
"""Users that nothing belongs to."""


@contextmanager
def held(at: Path, device: str = "cpu", what: str = "sweep", *, share: bool = False) -> Iterator[Claim]:
    claim = locks.claim(device, what, share=share, at=at)
    try:
        yield claim
    finally:
        claim.release()


@pytest.fixture
def at(tmp_path: Path) -> Path:
    return tmp_path / "claims"


@pytest.fixture
def everywhere() -> Iterator[Path]:
    """A folder as /tmp is: everybody writes in it, and nobody removes another's files."""
    path = Path(tempfile.mkdtemp(dir="/tmp"))
    path.chmod(0o1777)
    yield path / "claims"
    rmtree(path)


def files(at: Path, device: str = "cpu") -> list[Path]:
    return list((at / device).iterdir())


def test_a_device_that_another_process_holds_is_taken_and_its_holder_is_named(at: Path) -> None:
    with other(at, what="profile") as holder:
        assert holder.said == "holds"
        with pytest.raises(TakenError) as raised:
            locks.claim("cpu", "sweep", at=at)
    (found,) = raised.value.holders
    assert (found.what, found.pid) == ("profile", holder.pid)
    assert 0 <= time.time() - found.since_s < 60


def test_a_device_that_was_given_back_is_free_and_nothing_is_left(at: Path) -> None:
    with other(at) as holder:
        pass
    assert holder.said == "holds"
    assert files(at) == []
    with held(at):
        assert len(files(at)) == 1
    assert files(at) == []


def test_what_a_killed_process_left_is_no_claim_and_is_cleared(at: Path) -> None:
    with other(at) as holder:
        (left,) = files(at)
        holder.kill()
        assert files(at) == [left]
        with held(at) as claim:
            assert claim.others() == ()
            assert not left.exists()
    assert files(at) == []


def test_a_claim_that_was_killed_before_it_was_one_is_cleared(at: Path) -> None:
    (at / "cpu").mkdir(parents=True)
    (at / "cpu" / ".1-half").write_text("{")
    with held(at):
        assert len(files(at)) == 1


def test_another_device_is_free(at: Path) -> None:
    with held(at), held(at, "GPU-1"), held(at, "GPU-2"), pytest.raises(TakenError):
        locks.claim("GPU-1", "sweep", at=at)


def test_whoever_shares_gets_it_and_sees_the_others_the_oldest_first(at: Path) -> None:
    with other(at, what="sweep") as first, other(at, what="doctor", share=True) as second:
        with held(at, share=True) as claim:
            assert [(holder.what, holder.pid) for holder in claim.others()] == [
                ("sweep", first.pid),
                ("doctor", second.pid),
            ]
        with other(at) as third:
            assert third.said == f"taken by {first.pid} {second.pid}"


def test_company_is_noticed_while_it_is_there_and_once_after_it_left(at: Path) -> None:
    with held(at) as claim:
        assert not claim.had_company()
        with other(at, share=True):
            assert claim.had_company()
        assert claim.had_company()
        assert not claim.had_company()


def test_company_that_came_and_left_between_two_looks_is_noticed(at: Path) -> None:
    with held(at) as claim:
        with other(at, share=True):
            pass
        assert claim.others() == ()
        assert claim.had_company()
        assert not claim.had_company()


def test_company_that_was_killed_is_noticed_as_far_as_it_lived(at: Path) -> None:
    with held(at) as claim, other(at, share=True) as intruder:
        assert claim.had_company()
        intruder.kill()
        assert claim.had_company()
        assert not claim.had_company()


def test_company_at_the_beginning_is_company_although_it_left_before_the_first_look(at: Path) -> None:
    with other(at), held(at, share=True) as claim:
        pass
    assert claim.had_company()


def test_who_was_refused_was_no_company_and_tidies_nothing(at: Path) -> None:
    with held(at) as claim:
        (at / "cpu" / "0-left").write_text("{}")
        claim.had_company()
        with other(at) as refused:
            assert refused.said == f"taken by {os.getpid()}"
        assert not claim.had_company()


def test_many_at_once_one_gets_it(at: Path) -> None:
    with held(at, "warm"):  # so that nobody makes the folder
        pass
    processes = [Other(at, "cpu", "sweep", share=False, user=0) for _ in range(6)]
    said = [process.said for process in processes]
    for process in processes:
        process.end()
    assert said.count("holds") == 1
    assert sum(line.startswith("taken by ") for line in said) == 5


def test_a_claim_says_nothing_of_who_made_it_and_where(at: Path) -> None:
    with held(at):
        (file,) = files(at)
        assert json.loads(file.read_text()) == {
            "what": "sweep",
            "pid": os.getpid(),
            "processes": str(Path("/proc/self/ns/pid").readlink()),
        }


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become two users")
class TestTwoUsers:
    """The umask of each is 077, and each has files that the other may not write."""

    def test_each_sees_the_other(self, everywhere: Path) -> None:
        with other(everywhere, user=ONE) as first, other(everywhere, user=TWO) as second:
            assert (first.said, second.said) == ("holds", f"taken by {first.pid}")
        with other(everywhere, user=TWO) as second, other(everywhere, user=ONE) as first:
            assert (second.said, first.said) == ("holds", f"taken by {second.pid}")

    def test_what_one_left_when_killed_does_not_keep_the_other_away(self, everywhere: Path) -> None:
        with other(everywhere, user=ONE) as first:
            first.kill()
        assert [file.stat().st_uid for file in files(everywhere)] == [ONE]
        with other(everywhere, user=TWO) as second:
            assert second.said == "holds"
        with other(everywhere, user=ONE):
            assert len(files(everywhere)) == 1, "who left it has cleared it"

    def test_sharing_works_between_them(self, everywhere: Path) -> None:
        with other(everywhere, user=ONE) as first, other(everywhere, user=TWO, share=True) as second:
            assert (first.said, second.said) == ("holds", "holds")
            assert [file.stat().st_uid for file in sorted(files(everywhere), key=lambda f: f.stat().st_uid)] == [
                ONE,
                TWO,
            ]

    def test_neither_can_remove_what_is_the_others(self, everywhere: Path) -> None:
        with other(everywhere, user=ONE):
            assert stat.S_IMODE((everywhere / "cpu").stat().st_mode) == 0o1777
            assert stat.S_IMODE(files(everywhere)[0].stat().st_mode) == 0o644


def test_no_file_is_opened_for_making_it_that_may_be_anothers(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With fs.protected_regular Linux refuses that in a sticky folder, whatever the file's mode is."""
    really, flags = os.open, list[int]()

    def watched(path: Path, how: int, mode: int = 0o777) -> int:
        flags.append(how)
        return really(path, how, mode)

    monkeypatch.setattr(os, "open", watched)
    with other(at), held(at, share=True):
        pass
    making = [how for how in flags if how & os.O_CREAT]
    assert making
    assert all(how & os.O_EXCL for how in making)
    assert all(not how & (os.O_WRONLY | os.O_RDWR) for how in flags if not how & os.O_CREAT)


NUMBERS = f'"processes": "{locks._process_numbers()}"'
ODD = (
    *("", "{", "[" * 4096, "null", "\x00", "7"),
    *(
        f'{{"what": {what}, "pid": {pid}, {NUMBERS}}}'
        for what, pid in ((3, '"7"'), ('"rm -rf"', -1), ("null", "true"))
    ),
)


@pytest.mark.parametrize("text", [text.encode() for text in ODD] + [b"\xff\xfe"])
def test_a_claim_in_which_nonsense_stands_is_a_claim_of_nobody_known(at: Path, text: bytes) -> None:
    (at / "cpu").mkdir(parents=True)
    with (at / "cpu" / "odd").open("wb+") as file:
        file.write(text)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(TakenError) as raised:
            locks.claim("cpu", "sweep", at=at)
    (holder,) = raised.value.holders
    assert (holder.what, holder.pid) == ("run", None)


def test_the_number_of_a_process_of_another_container_is_not_told(at: Path) -> None:
    (at / "cpu").mkdir(parents=True)
    with (at / "cpu" / "7-x").open("w+") as file:
        json.dump({"what": "sweep", "pid": 7, "processes": "pid:[1]"}, file)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        with held(at, share=True) as claim:
            assert [(holder.what, holder.pid) for holder in claim.others()] == [("sweep", None)]


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_file_is_no_claim_and_is_left_alone(at: Path, kind: str) -> None:
    odd = at / "cpu" / kind
    odd.parent.mkdir(parents=True)
    {"link": lambda: odd.symlink_to("/dev/zero"), "pipe": lambda: os.mkfifo(odd), "folder": odd.mkdir}[kind]()
    with held(at) as claim:
        assert claim.others() == ()
    assert odd.is_symlink() or kind != "link"
    assert odd.exists() or kind == "pipe"


def test_a_link_in_the_place_of_the_folder_is_not_followed(at: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    at.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotADirectoryError):
        locks.claim("cpu", "sweep", at=at)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_place_that_cannot_be_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "not" / "there"):
        with pytest.raises(OSError, match=str(place)):
            locks.claim("cpu", "sweep", at=place)


def test_a_folder_that_somebody_keeps_locked_is_waited_for_and_not_for_ever(
    at: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_PATIENCE_S", 0.05)
    (at / "cpu").mkdir(parents=True)
    descriptor = locks.open_folder(at / "cpu")
    assert locks.lock(descriptor)
    with pytest.raises(TimeoutError, match="has kept the folder locked"):
        locks.claim("cpu", "sweep", at=at)
    os.close(descriptor)
    with held(at):
        pass


def test_the_folder_lies_where_all_users_write_whatever_their_tmpdir(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(locks.VARIABLE)
    mine, ours = tmp_path / "mine", tmp_path / "ours"
    for folder in (mine, ours):
        folder.mkdir()
    monkeypatch.setattr(locks, "_USUAL", (tmp_path / "missing", mine, ours))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine.chmod(0o755)
    ours.chmod(0o1777)
    assert locks.place() == ours / "normbench"
    ours.chmod(0o777)
    assert locks.place() == tmp_path / "normbench", "where all can remove what is others', claims are not safe"
    monkeypatch.setenv(locks.VARIABLE, "/somewhere/else")
    assert locks.place() == Path("/somewhere/else")


def test_whoever_holds_a_lock_is_told_by_the_system(tmp_path: Path) -> None:
    descriptor = locks.open_folder(tmp_path)
    assert locks.holder_of(descriptor) is None
    assert locks.lock(descriptor)
    assert locks.holder_of(descriptor) == os.getpid()
    os.close(descriptor)
    again = locks.open_folder(tmp_path)
    assert locks.holder_of(again) is None
    os.close(again)
