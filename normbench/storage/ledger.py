"""Rows added to several tables: all of them are on the disk, or none, whatever ends it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from normbench.errors import StorageError
from normbench.storage.files import unwritable
from normbench.storage.table import Table


class Ledger:
    """Knows, while rows are added, how many bytes of each file were there before.

    Args:
        again: The command that goes on with the folder, which an error names; None where nothing does.
    """

    def __init__(self, again: str | None = None) -> None:
        self._again = again
        self._committed: Mapping[Path, int] = {}

    @contextmanager
    def adding(self, tables: Iterable[Table]) -> Iterator[None]:
        """A context in which rows are added to tables; where it fails, what was written in it is taken back.

        What could not be taken back then is taken back before anything else is added.

        Raises:
            StorageError: Names the file, and how to go on.
        """
        self._roll_back()
        self._committed = {table.path: _size(table.path) for table in tables}
        try:
            yield
            self._committed = {}
        except BaseException as error:
            with suppress(StorageError):
                self._roll_back()
            if isinstance(error, StorageError) and self._again is not None:
                raise self._to_go_on(error, self._again) from error
            raise

    def _roll_back(self) -> None:
        for path, size in self._committed.items():
            try:
                os.truncate(path, size)
            except OSError as error:
                raise unwritable(path, error) from error
        self._committed = {}

    @staticmethod
    def _to_go_on(error: StorageError, again: str) -> StorageError:
        first = f"{error.hint}, then go on" if error.hint else "go on"
        return StorageError(error.message, hint=f"{first} with: {again}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise unwritable(path, error) from error
