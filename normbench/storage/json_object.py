"""A JSON file that says what a folder is: written as a whole, read strictly, of a schema that this version knows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from normbench.errors import StorageError
from normbench.records import ImplementationInfo
from normbench.storage.files import read_at_most, write_text
from normbench.storage.limits import MOST_HEADER_BYTES
from normbench.storage.strict_json import parsed, unknown_names, with_clean_texts
from normbench.storage.table import first_problem, unreadable
from normbench.storage.texts import name_objection

T = TypeVar("T")


def write_object(file: Path, data: Mapping[str, Any]) -> None:
    """Write a file, with every text so that it can be read again.

    Raises:
        StorageError: It can't be written.
    """
    write_text(file, json.dumps(with_clean_texts(dict(data)), indent=2) + "\n")


def read_object(file: Path, readable: tuple[int, ...], hint: str) -> dict[str, Any]:
    """What a file holds apart from its schema.

    Args:
        file: The file.
        readable: The schemas that this version reads; the last one is what it writes.
        hint: What to do where there is no such file.

    Raises:
        StorageError: Names the file, and the line or the field that can't be read.
    """
    try:
        data = parsed(read_at_most(file, MOST_HEADER_BYTES))
    except (OSError, ValueError) as error:  # not there, not UTF-8, not JSON, or absurd
        raise unreadable(file, error, hint) from error
    schema = data.pop("schema", None) if isinstance(data, dict) else None
    if type(schema) is not int or schema not in readable:
        older = isinstance(schema, int) and schema < readable[-1]
        raise StorageError(
            f"{file}: schema is {repr(schema)[:40]}, this version reads {' and '.join(map(str, readable))}",
            hint=f"read it with the version that wrote it: {file.name} names it" if older else "update normbench",
        )
    return dict(data)


def validated(kind: TypeAdapter[T], data: object, file: Path, within: str = "") -> T:
    """The record that ``data`` is; types are taken as they are, and every name must be known.

    Args:
        kind: Of which type.
        data: What was read.
        file: Where from, for errors.
        within: The name below which it stood.

    Raises:
        StorageError: Names the file and the field.
    """
    try:
        found = kind.validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise StorageError(f"{file}: {first_problem(error, within)}") from error
    for name in unknown_names(data, kind.dump_python(found, mode="json"), within):
        raise StorageError(f"{file}: {name}: this version knows no such field")
    return found


def refuse_names(file: Path, implementations: Iterable[ImplementationInfo]) -> None:
    """A StorageError where an implementation has a name that is none."""
    for index, info in enumerate(implementations):
        said = name_objection(info.name)
        if said is not None:
            raise StorageError(f"{file}: implementations.{index}.name: {said}")
