"""``run.json``: what a run is, before and besides its results; written, read and validated."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from normbench.errors import StorageError
from normbench.records import NoiseFloor, RunHeader, Spent
from normbench.storage.files import read_at_most, write_text
from normbench.storage.limits import MOST_HEADER_BYTES
from normbench.storage.strict_json import parsed, unknown_names, with_clean_texts
from normbench.storage.table import first_problem, unreadable
from normbench.storage.texts import name_objection

T = TypeVar("T")

SCHEMA_VERSION = 3
"""1: the first. 2: ``swaps.csv``. 3: ``isolate``, ``case_timeout_s`` and ``resumed``, whose defaults fit a 2; what
grows with each cell is in ``cells.csv``, no more in ``findings``."""

_READABLE = (2, SCHEMA_VERSION)
_HINT = "name a folder that a sweep has written"


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

    Raises:
        StorageError: It can't be written, or an implementation has a name that would not be read again.
    """
    _check_names(path, header)
    held = _HEADER.dump_python(header, mode="json")
    found = {} if findings is None else {"findings": _FINDINGS.dump_python(findings, mode="json")}
    data = with_clean_texts({"schema": SCHEMA_VERSION, **held, **found})
    write_text(path / "run.json", json.dumps(data, indent=2) + "\n")


def read_header(path: Path) -> RunHeader:
    """What ``run.json`` holds of the run before its first cell.

    Raises:
        StorageError: Names the file, and the line or the field that can't be read.
    """
    data = _read_run(path)
    data.pop("findings", None)
    header = _validated(_HEADER, data, path, "")
    _check_names(path, header)
    return header


def read_findings(path: Path) -> Findings | None:
    """What a ``run.json`` of schema 2 holds of its cells; None of a later one.

    Raises:
        StorageError: As ``read_header``.
    """
    data = _read_run(path)
    return _validated(_FINDINGS, data["findings"], path, "findings") if "findings" in data else None


def _check_names(path: Path, header: RunHeader) -> None:
    for index, info in enumerate(header.implementations):
        said = name_objection(info.name)
        if said is not None:
            raise StorageError(f"{path / 'run.json'}: implementations.{index}.name: {said}")


def _read_run(path: Path) -> dict[str, Any]:
    file = path / "run.json"
    try:
        data = parsed(read_at_most(file, MOST_HEADER_BYTES))
    except (OSError, ValueError) as error:  # not there, not UTF-8, not JSON, or absurd
        raise unreadable(file, error, _HINT) from error
    schema = data.pop("schema", None) if isinstance(data, dict) else None
    if type(schema) is not int or schema not in _READABLE:
        older = isinstance(schema, int) and schema < SCHEMA_VERSION
        raise StorageError(
            f"{file}: schema is {repr(schema)[:40]}, this version reads {' and '.join(map(str, _READABLE))}",
            hint="read it with the version that wrote it: run.json names it" if older else "update normbench",
        )
    return dict(data)


def _validated(kind: TypeAdapter[T], data: object, path: Path, within: str) -> T:
    """The record that ``data`` is; types are taken as they are, and every name must be known."""
    file = path / "run.json"
    try:
        found = kind.validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise StorageError(f"{file}: {first_problem(error, within)}") from error
    for name in unknown_names(data, kind.dump_python(found, mode="json"), within):
        raise StorageError(f"{file}: {name}: this version knows no such field")
    return found
