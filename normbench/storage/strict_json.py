"""JSON read strictly: no name twice, no number beyond all bounds, no text that is refused, not deep without end."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NoReturn

from normbench.storage.limits import MOST_DEPTH, MOST_INTEGER
from normbench.storage.texts import cleaned, objection


def parsed(data: bytes) -> Any:
    """What a JSON text holds.

    Raises:
        ValueError: It is no JSON, or holds what is refused; the message says where.
    """
    try:
        found = json.loads(data.decode("utf-8"), object_pairs_hook=_each_once, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: is no UTF-8 text") from error
    except RecursionError as error:
        raise ValueError(f"more than {MOST_DEPTH} lists and objects within each other") from error
    for where, said in _objections(found, ""):
        raise ValueError(f"{where}: {said}" if where else said)
    return found


def unknown_names(data: Any, known: Any, where: str = "") -> Iterator[str]:
    """The names in ``data`` that stand nowhere in ``known``, which was made of it; with those around them."""
    if isinstance(data, dict) and isinstance(known, dict):
        for name, value in data.items():
            inner = _within(where, name)
            if name in known:
                yield from unknown_names(value, known[name], inner)
            else:
                yield inner
    elif isinstance(data, list) and isinstance(known, list):
        for index, (value, held) in enumerate(zip(data, known, strict=False)):
            yield from unknown_names(value, held, _within(where, index))


def with_clean_texts(data: Any) -> Any:
    """The same with every text as it is written."""
    if isinstance(data, str):
        return cleaned(data)
    if isinstance(data, dict):
        return {name: with_clean_texts(value) for name, value in data.items()}
    return [with_clean_texts(value) for value in data] if isinstance(data, list) else data


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice[:40]!a} stands twice in one object")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _objections(value: Any, where: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    if depth > MOST_DEPTH:
        yield where[:80], f"more than {MOST_DEPTH} lists and objects within each other"
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _of_leaf(name, where)
            yield from _objections(inner, _within(where, name), depth + 1)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _objections(inner, _within(where, index), depth + 1)
    else:
        yield from _of_leaf(value, where)


def _of_leaf(value: Any, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and (said := objection(value)) is not None:
        yield where, said
    elif isinstance(value, float) and not math.isfinite(value):
        yield where, "is a number beyond all that a computer holds"
    elif isinstance(value, int) and abs(value) > MOST_INTEGER:
        yield where, f"is a number beyond {MOST_INTEGER}"


def _within(where: str, name: str | int) -> str:
    shown = str(name) if isinstance(name, int) or name.isidentifier() else ascii(name)
    return f"{where}.{shown[:40]}" if where else shown[:40]
