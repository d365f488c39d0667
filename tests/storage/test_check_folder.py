"""The folder of a check: whole at once, added to as it is found, loaded wherever it was killed."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from normbench.errors import StorageError, UsageError
from normbench.records import CheckRun
from normbench.storage import CheckFolder, holds_check, load_check
from tests.checked import ALLOWED, checks_of, make_check, make_check_header, make_check_run, write_check
from tests.runs import make_info, write_run


def test_a_check_is_loaded_as_it_was_written_with_what_is_allowed_and_infinite(tmp_path: Path) -> None:
    run = make_check_run(allowed=ALLOWED)

    assert load_check(write_check(tmp_path / "check", run)) == run


def test_a_new_folder_is_a_check_that_has_found_nothing_and_not_ended(tmp_path: Path) -> None:
    header = make_check_header()
    CheckFolder.create(tmp_path / "check", header)

    assert load_check(tmp_path / "check") == CheckRun(header=header, checks=(), seconds=None, complete=False)
    assert sorted(path.name for path in (tmp_path / "check").iterdir()) == ["check.csv", "check.json"]


def test_what_was_written_before_a_kill_is_there_but_for_a_line_that_was_cut(tmp_path: Path) -> None:
    found = checks_of("nn-rmsnorm")
    folder = CheckFolder.create(tmp_path / "check", make_check_header())
    folder.write(found[:4])
    folder.write(found[4:9])
    file = folder.path / "check.csv"
    file.write_bytes(file.read_bytes()[:-7])

    run = load_check(folder.path)
    assert (list(run.checks), run.seconds, run.complete) == (found[:8], None, False)


def test_a_write_that_fails_leaves_nothing_of_it_and_the_next_one_is_whole(tmp_path: Path) -> None:
    found = checks_of("nn-rmsnorm")
    folder = CheckFolder.create(tmp_path / "check", make_check_header())
    folder.write(found[:2])
    with patch("os.fsync", side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))):
        with pytest.raises(StorageError, match=r"check\.csv: can't be written: No space left") as caught:
            folder.write(found[2:4])
        assert caught.value.hint == "make room there"
    folder.write(found[4:6])

    assert list(load_check(folder.path).checks) == [*found[:2], *found[4:6]]


def test_a_check_of_which_something_is_lost_is_no_longer_complete(tmp_path: Path) -> None:
    file = write_check(tmp_path / "check") / "check.csv"
    whole = file.read_bytes()
    assert load_check(file.parent).complete

    file.write_bytes(whole[:-1])  # the last row is of a pair that has others
    assert not load_check(file.parent).complete
    lines = whole.splitlines(keepends=True)
    file.write_bytes(b"".join(line for line in lines if b"naive-rmsnorm,determinism" not in line))
    assert not load_check(file.parent).complete


def test_no_folder_is_overwritten(tmp_path: Path) -> None:
    write_check(tmp_path / "check")
    with pytest.raises(UsageError, match="exists, and no run is ever overwritten"):
        CheckFolder.create(tmp_path / "check", make_check_header())


def test_a_folder_that_cannot_be_filled_is_not_there(tmp_path: Path) -> None:
    bad = make_check_header(implementations=(make_info("../x"),))
    with pytest.raises(StorageError, match=r"implementations\.0\.name: '\.\./x' is no name"):
        CheckFolder.create(tmp_path / "check", bad)

    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_of_a_check_where_it_is_not_of_a_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run").path
    check = write_check(tmp_path / "check")

    assert holds_check(check)
    assert not holds_check(run)
    assert not holds_check(tmp_path)
    assert not holds_check(tmp_path / ("x" * 5000))
    (run / "check.json").write_bytes((check / "check.json").read_bytes())
    assert not holds_check(run)


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(schema=2), "schema is 2, this version reads 1"),
        (lambda d: d.pop("schema"), "schema is None"),
        (lambda d: d.pop("seconds"), "seconds: Field required"),
        (lambda d: d.pop("complete"), "complete: Field required"),
        (lambda d: d.update(seconds=-1.0), "seconds are 0 and more"),
        (lambda d: d.update(complete="yes"), "complete: "),
        (lambda d: d.update(more=1), "more: this version knows no such field"),
        (lambda d: d["plan"].update(properties=[]), "plan: properties: one or more"),
        (lambda d: d["plan"].update(properties=["beauty"]), "plan.properties.0: "),
        (lambda d: d["plan"].update(widths=["3"]), "plan.widths.0: "),
        (lambda d: d["plan"].update(eps=0.0), "plan: eps: from 1e-30 to 1e+08"),
        (lambda d: d["implementations"].append(d["implementations"][0]), "implementations: one or more, and none"),
        (lambda d: d["implementations"][0].update(name="=1"), "implementations.0.name: '=1' is a formula"),
        (lambda d: d.update(allowed=["zeros"]), "allowed.0: "),
        (lambda d: d.update(created_utc="a\x1bb"), "created_utc: holds the character U+001B"),
    ],
)
def test_a_check_json_that_is_none_names_its_field(tmp_path: Path, change: Change, said: str) -> None:
    path = write_check(tmp_path / "check")
    data = json.loads((path / "check.json").read_text(encoding="utf-8"))
    change(data)
    (path / "check.json").write_text(json.dumps(data), encoding="utf-8")

    with pytest.raises(StorageError) as caught:
        load_check(path)
    assert caught.value.message.startswith(f"{path}/check.json: ")
    assert said in caught.value.message
    assert len(caught.value.message) < 250 + len(str(path))  # there are many properties that would be right


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = write_check(tmp_path / "check")
    (path / "check.csv").unlink()
    with pytest.raises(StorageError, match=r"check\.csv: can't be read"):
        load_check(path)
    (path / "check.json").unlink()
    with pytest.raises(StorageError, match=r"check\.json: can't be read") as caught:
        load_check(path)
    assert caught.value.hint == "name a folder that normbench check has written"


def test_checks_of_another_check_are_refused(tmp_path: Path) -> None:
    folder = CheckFolder.create(tmp_path / "check", make_check_header())
    folder.write([make_check("zz-new")])

    with pytest.raises(StorageError, match=r"line 2: implementation: 'zz-new' is not in check\.json"):
        load_check(folder.path)
