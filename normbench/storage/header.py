"""``run.json``: what a run is, before and besides its results; written, read and validated."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from normbench.records import NoiseFloor, RunHeader, Spent
from normbench.storage.json_object import read_object, refuse_names, validated, write_object

SCHEMA_VERSION = 3
"""1: the first. 2: ``swaps.csv``. 3: ``isolate``, ``case_timeout_s`` and ``resumed``, whose defaults fit a 2; what
grows with each cell is in ``cells.csv``, no more in ``findings``."""

_READABLE = (2, SCHEMA_VERSION)
_HINT = "name a folder that a sweep or a check has written"


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
    file = path / "run.json"
    refuse_names(file, header.implementations)
    found = {} if findings is None else {"findings": _FINDINGS.dump_python(findings, mode="json")}
    write_object(file, {"schema": SCHEMA_VERSION, **_HEADER.dump_python(header, mode="json"), **found})


def read_header(path: Path) -> RunHeader:
    """What ``run.json`` holds of the run before its first cell.

    Raises:
        StorageError: Names the file, and the line or the field that can't be read.
    """
    data = _read_run(path)
    data.pop("findings", None)
    header = validated(_HEADER, data, path / "run.json")
    refuse_names(path / "run.json", header.implementations)
    return header


def read_findings(path: Path) -> Findings | None:
    """What a ``run.json`` of schema 2 holds of its cells; None of a later one.

    Raises:
        StorageError: As ``read_header``.
    """
    data = _read_run(path)
    if "findings" not in data:
        return None
    return validated(_FINDINGS, data["findings"], path / "run.json", "findings")


def _read_run(path: Path) -> dict[str, Any]:
    return read_object(path / "run.json", _READABLE, _HINT)
