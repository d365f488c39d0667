"""One writer a run folder: another is refused, nothing of it stays, and its end is the end of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from normbench import locks
from normbench.errors import BusyError
from normbench.storage import only_writer

HOLD = """
import sys
from pathlib import Path
from normbench.storage import only_writer
with only_writer(Path(sys.argv[1])) as is_sure:
    print(is_sure, flush=True)
    sys.stdin.read()
"""


def test_a_second_writer_is_refused_naming_folder_and_process_until_the_first_is_killed(tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "True\n"
        with pytest.raises(BusyError) as raised, only_writer(tmp_path):
            pass
        first.send_signal(signal.SIGKILL)
        first.wait()
        with only_writer(tmp_path) as is_sure:
            assert is_sure
    assert raised.value.message == f"{tmp_path}: another normbench is writing it (process {first.pid})"
    assert "normbench report" in (raised.value.hint or "")


def test_nothing_is_in_the_folder_and_it_is_free_afterwards(tmp_path: Path) -> None:
    for _again in range(2):
        with only_writer(tmp_path) as is_sure:
            assert is_sure
            assert list(tmp_path.iterdir()) == []


def test_it_is_one_folder_by_whatever_name(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "latest").symlink_to("run")
    with only_writer(tmp_path / "run"), pytest.raises(BusyError), only_writer(tmp_path / "latest"):
        pass


def test_where_there_are_no_locks_it_is_not_sure_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lock(_descriptor: int) -> bool:
        raise OSError(9, os.strerror(9))

    monkeypatch.setattr(locks, "lock", lock)
    with only_writer(tmp_path) as is_sure:
        assert not is_sure


def test_a_folder_that_is_not_there_is_somebody_elses_error(tmp_path: Path) -> None:
    with only_writer(tmp_path / "nowhere") as is_sure:
        assert not is_sure


def test_the_process_is_left_out_where_the_system_does_not_tell_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "holder_of", lambda _descriptor: None)
    with only_writer(tmp_path), pytest.raises(BusyError, match=r"is writing it$"), only_writer(tmp_path):
        pass
