"""``run.json``: what a run is, before and besides its results; written, read and validated."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from normbench.errors import StorageError
from normbench.records import NoiseFloor, RunHeader, Spent
from normbench.storage.files import write_text

T = TypeVar("T")

SCHEMA_VERSION = 3
"""1: the first. 2: ``swaps.csv``. 3: ``isolate``, ``case_timeout_s`` and ``resumed``, whose defaults fit a 2; what
grows with each cell is in ``cells.csv``, no more in ``findings``."""

_READABLE = (2, SCHEMA_VERSION)


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a ``run.json`` of schema 2 holds besides the header: what its cells left, together."""

    noise: tuple[NoiseFloor, ...] = ()
    spent: Spent = field(default_factory=Spent)


_HEADER = TypeAdapter(RunHeader)
_FINDINGS = TypeAdapter(Findings)


def write_header(path: Path, header: RunHeader, findings: Findings | None = None) -> None:
    """Write ``run.json`` in the folder ``path``, as a whole or not at all.

    Args:
        path: The run folder.
        header: What the run is.
        findings: What the run was begun with where it was begun with schema 2.
    """
    held = _HEADER.dump_python(header, mode="json")
    found = {} if findings is None else {"findings": _FINDINGS.dump_python(findings, mode="json")}
    text = json.dumps({"schema": SCHEMA_VERSION, **held, **found}, indent=2)
    write_text(path / "run.json", text + "\n")


def read_header(path: Path) -> RunHeader:
    """What ``run.json`` holds of the run before its first cell."""
    data = _read_run(path)
    data.pop("findings", None)
    return _validated(_HEADER, data, path)


def read_findings(path: Path) -> Findings | None:
    """What a ``run.json`` of schema 2 holds of its cells; None of a later one."""
    data = _read_run(path)
    return _validated(_FINDINGS, data["findings"], path) if "findings" in data else None


def _read_run(path: Path) -> dict[str, Any]:
    file = path / "run.json"
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # not there, not UTF-8, not JSON, or absurd
        why = error.strerror if isinstance(error, OSError) else error
        raise StorageError(f"{file}: can't be read: {why}", hint="name a folder that a sweep has written") from error
    schema = data.pop("schema", None) if isinstance(data, dict) else None
    if schema not in _READABLE:
        older = isinstance(schema, int) and schema < SCHEMA_VERSION
        raise StorageError(
            f"{file}: schema is {schema!r}, this version reads {' and '.join(map(str, _READABLE))}",
            hint="read it with the version that wrote it: run.json names it" if older else "update normbench",
        )
    return dict(data)


def _validated(kind: TypeAdapter[T], data: object, path: Path) -> T:
    try:
        return kind.validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        field_name = ".".join(str(part) for part in first["loc"])
        raise StorageError(f"{path / 'run.json'}: {field_name}: {first['msg']}") from error
