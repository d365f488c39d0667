from __future__ import annotations

import getpass
import socket
from pathlib import Path
from zipfile import ZipFile

import pytest

from normbench.gpu_acceptance.packing import LOG, Left, left, pack
from normbench.gpu_acceptance.parts import Kind, Part
from normbench.storage import load
from tests import runs

PARTS = (
    Part(kind=Kind.DOCTOR, name="doctor", most_s=1),
    Part(kind=Kind.TESTS, name="tests", most_s=1),
    Part(kind=Kind.SWEEP, name="sweep-a", most_s=1),
    Part(kind=Kind.SWEEP, name="sweep-b", most_s=1),
    Part(kind=Kind.PROFILE, name="profile", most_s=1),
    Part(kind=Kind.STEP, name="step", most_s=1),
)
REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" hostname="{host}"><testcase classname="tests.gpu.test_it" name="test_a/b">
<failure message="OSError: /home/{user}/norms/a.py">File "/home/{user}/norms/a.py"
</failure></testcase></testsuite></testsuites>"""


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """What parts left, one of them nothing."""
    runs.write_run(tmp_path / "sweep-a")
    runs.write_run(tmp_path / "sweep-b")
    runs.write_run(tmp_path / "profile")
    (tmp_path / "doctor.json").write_text("{}", encoding="utf-8")
    (tmp_path / "tests.xml").write_text(REPORT.format(host="lab-7.example", user="someone"), encoding="utf-8")
    (tmp_path / LOG).write_text("$ python -m normbench sweep --out /home/someone/out/sweep-a\n", encoding="utf-8")
    return tmp_path


def test_run_folders_of_a_kind_are_one_archive_that_holds_them_whole(out: Path, tmp_path: Path) -> None:
    before = load(out / "sweep-b")
    pack(PARTS, out)
    assert sorted(path.name for path in out.iterdir()) == [
        "doctor.json", LOG, "profile.zip", "sweep.zip", "tests.xml",
    ]  # fmt: skip
    with ZipFile(out / "sweep.zip") as archive:
        archive.extractall(tmp_path / "again")
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == ["sweep-a", "sweep-b"]
    assert load(tmp_path / "again" / "sweep-b") == before


def test_neither_host_nor_user_nor_home_is_in_what_is_left(out: Path) -> None:
    pack(PARTS, out)
    for name in ("tests.xml", LOG):
        text = (out / name).read_text(encoding="utf-8")
        for secret in ("someone", "lab-7", "/home", socket.gethostname(), f"/{getpass.getuser()}/"):
            assert secret not in text, (name, secret)
    assert 'name="test_a/b"' in (out / "tests.xml").read_text(encoding="utf-8")


def test_a_report_that_is_cut_is_scrubbed_as_a_text(out: Path) -> None:
    path = out / "tests.xml"
    path.write_text(path.read_text(encoding="utf-8")[:-40], encoding="utf-8")
    pack(PARTS, out)
    assert "someone" not in path.read_text(encoding="utf-8")


def test_what_is_left_is_counted_with_all_that_lies_below(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"123")
    (tmp_path / "c").write_bytes(b"4567")
    assert left(tmp_path) == Left(files=2, bytes=7)


def test_an_archive_that_can_not_be_written_leaves_the_folders_and_says_why(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ZipFile, "write", full)
    problems = pack(PARTS, out)
    assert problems == (
        "sweep.zip could not be written: No space left on device",
        "profile.zip could not be written: No space left on device",
    )
    assert load(out / "sweep-a").is_complete
    assert not [path for path in out.iterdir() if "partial" in path.name or path.suffix == ".zip"]
    assert left(out, problems).problems == problems
