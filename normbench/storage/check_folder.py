"""The folder of a check: there before anything is asked, added to as it is found, loaded again."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from normbench.records import Check, CheckHeader, CheckRun
from normbench.storage import check_columns
from normbench.storage.files import new_folder
from normbench.storage.json_object import read_object, refuse_names, validated, write_object
from normbench.storage.ledger import Ledger
from normbench.storage.table import Table

SCHEMA_VERSION = 1
"""Of ``check.json`` and ``check.csv``."""

_HEADER = TypeAdapter(CheckHeader)
_END_FIELDS = ("seconds", "complete", "found")


@dataclass(frozen=True, kw_only=True)
class _End:
    """How a check ended.

    Args:
        seconds: How long it took; None as long as it has not ended.
        complete: Whether everything was asked.
        found: How many rows it has left; None where that was not written down.
    """

    seconds: float | None
    complete: bool
    found: int | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None and self.seconds < 0:
            raise ValueError("seconds are 0 and more")


_END = TypeAdapter(_End)


class CheckFolder:
    """The folder of one check, open for writing.

    Args:
        path: The folder, which exists.
        header: What ``check.json`` holds besides how it ended.
    """

    def __init__(self, path: Path, header: CheckHeader) -> None:
        self.path = path
        self.header = header
        self._checks = Table(path / "check.csv", check_columns.CHECKS)
        self._ledger = Ledger()
        self._found = 0

    @classmethod
    def create(cls, path: Path, header: CheckHeader) -> CheckFolder:
        """A new folder with an empty table, which is there as a whole or not at all.

        Raises:
            UsageError: It exists, since nothing is ever overwritten, or it can't be written.
        """
        with new_folder(path, hint="name a new folder") as temporary:
            folder = cls(temporary, header)
            folder._write_header(_End(seconds=None, complete=False))
            folder._checks.create()
        return cls(path, header)

    def write(self, checks: Iterable[Check]) -> None:
        """Add what was found: it is on the disk when this returns, and nothing of it where it fails.

        Raises:
            StorageError: Names the file.
        """
        rows = [check_columns.row(check) for check in checks]
        with self._ledger.adding([self._checks]):
            self._checks.append(rows)
        self._found += len(rows)

    def finish(self, seconds: float | None, *, complete: bool) -> None:
        """Say how it ended.

        Args:
            seconds: How long it took.
            complete: Whether everything was asked.

        Raises:
            StorageError: It can't be written.
        """
        self._write_header(_End(seconds=seconds, complete=complete, found=self._found))

    def _write_header(self, end: _End) -> None:
        file = self.path / "check.json"
        refuse_names(file, self.header.implementations)
        held = {**_HEADER.dump_python(self.header, mode="json"), **_END.dump_python(end, mode="json")}
        write_object(file, {"schema": SCHEMA_VERSION, **held})


def holds_check(path: Path) -> bool:
    """Whether a folder is one of a check, and none of a run."""
    return os.path.lexists(path / "check.json") and not os.path.lexists(path / "run.json")


def load_check(path: Path) -> CheckRun:
    """The check in a folder, without torch, as far as it got and as far as it is still there.

    Raises:
        StorageError: Names the file, the line and the field that can't be read.
    """
    file = path / "check.json"
    data = read_object(file, (SCHEMA_VERSION,), "name a folder that normbench check has written")
    end = validated(_END, {name: data.pop(name) for name in _END_FIELDS if name in data}, file)
    header = validated(_HEADER, data, file)
    refuse_names(file, header.implementations)
    table = Table(path / "check.csv", check_columns.CHECKS)
    checks = tuple(check for _row, check in table.read(check_columns.Checks(header)))
    is_whole = end.found in (None, len(checks)) and not table.is_cut()
    complete = end.complete and is_whole and _has_all(header, checks)
    return CheckRun(header=header, checks=checks, seconds=end.seconds, complete=complete)


def _has_all(header: CheckHeader, checks: Iterable[Check]) -> bool:
    """Whether something was found of every property of every implementation: whatever was lost later is not there."""
    found = {(check.implementation, check.property) for check in checks}
    return all((info.name, asked) in found for info in header.implementations for asked in header.plan.properties)
