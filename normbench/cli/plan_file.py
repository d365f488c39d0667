"""The text of a plan file, and what it says: every fault names file, key, what is allowed and the nearest name."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from normbench.cli.keys import Key, Keys, Kind
from normbench.errors import UsageError

_LEGIBLE = 60
_MOST_BITS = 256


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A value that a key is given.

    Args:
        key: What is set.
        source: Who says it: a file; empty for a program.
        written: The key as it is written there.
        value: The value of the command's parameter.
    """

    key: Key
    source: str
    written: str
    value: Any

    @property
    def place(self) -> str:
        """How errors begin that are about it: ``sweep.toml: widths``."""
        return _at(self.source, self.written)


def parsed(text: bytes, source: str) -> dict[str, Any]:
    """What TOML says.

    Raises:
        UsageError: It is none; names the line.
    """
    if text.startswith(b"\xef\xbb\xbf"):
        raise UsageError(f"{source}: begins with a byte order mark", hint="save it as UTF-8 without one")
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{source}: line {line} is not UTF-8", hint="save it as UTF-8") from error
    try:
        return tomllib.loads(decoded)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{source}: no TOML: {_where(str(error), decoded)}", hint='lines are like: widths = [256, "512:4096:x2"]'
        ) from error


def _where(said: str, text: str) -> str:
    """What tomllib says, with the line that it means: a key that is there twice is named by no more than that."""
    found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", said)
    lines = text.splitlines()
    number = int(found[1]) if found and found[1] else len(lines)
    if found is None or not 0 < number <= len(lines):
        return said[:200]
    return f"{said[: found.start()]}, line {number}: {_short(lines[number - 1].strip())}"


def settings(said: Mapping[str, object], keys: Keys, source: str, *, serves_all: bool = False) -> dict[str, Setting]:
    """What the keys of a plan say, by the names of the command's parameters.

    Args:
        said: Keys and values as they are written.
        keys: Those that there are.
        source: Where they are written.
        serves_all: It serves every command that takes a plan: keys of others are passed over.

    Raises:
        UsageError: A key that there is not, or twice, or with a value that it can't have.
    """
    found: dict[str, Setting] = {}
    for written, value in said.items():
        name = written.replace("_", "-")
        if serves_all and name in keys.elsewhere:
            continue
        key = _key(name, written, keys, source)
        if key.parameter in found:
            raise UsageError(
                f"{_at(source, written)}: {found[key.parameter].written} is the same key",
                hint="leave one of them out",
            )
        converted = _converted(key, value, _at(source, written))
        found[key.parameter] = Setting(
            key=key,
            source=source,
            written=written,
            value=not converted if name in key.opposites else converted,
        )
    return found


def _key(name: str, written: str, keys: Keys, source: str) -> Key:
    if name in keys.by_name:
        return keys.by_name[name]
    if name in keys.elsewhere:
        raise UsageError(
            f"{_at(source, written)}: a key of {keys.elsewhere[name]} alone, which {keys.command} does not have",
            hint="leave it out",
        )
    if name in keys.apart:
        raise UsageError(
            f"{_at(source, written)}: belongs on the command line, as --{name}",
            hint="leave it out: a plan says what is measured and how precisely, and neither where it goes nor when",
        )
    nearest = difflib.get_close_matches(name, list(keys.by_name), n=1)
    suggestion = f"did you mean {nearest[0]}? " if nearest else ""
    raise UsageError(
        f"{_at(source)}unknown key {_short(written)!r}", hint=f"{suggestion}allowed: {', '.join(keys.shown)}"
    )


def _converted(key: Key, value: object, place: str) -> Any:
    """A value as the command line gives it to the command."""
    if key.kind is Kind.LIST:
        values = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        if not values:
            raise UsageError(f"{place}: [] holds no value", hint="give one or more, or leave the key out")
        return [_text(key, part, place) for part in values]
    if key.kind is Kind.TEXT:
        return _text(key, value, place)
    if key.kind is Kind.FLAG:
        is_right = isinstance(value, bool)
    else:
        _refuse_no_number(key, value, place)
        is_right = isinstance(value, int if key.kind is Kind.INTEGER else int | float)
    if not is_right or isinstance(value, bool) is not (key.kind is Kind.FLAG):
        raise _unlike(key, value, place)
    return value


def _text(key: Key, value: object, place: str) -> str:
    """The word that stands for a value on the command line."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _unlike(key, value, place)
    _refuse_no_number(key, value, place)
    return str(value)


def _refuse_no_number(key: Key, value: object, place: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise _unlike(key, value, place)
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise UsageError(f"{place}: too large a number", hint=f"allowed: {key.kind.value}")


def _unlike(key: Key, value: object, place: str) -> UsageError:
    return UsageError(f"{place}: {_named(value)} is not allowed", hint=f"allowed: {key.kind.value}")


def _named(value: object) -> str:
    """What a value is called that can't be there."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return repr(_short(value)) if isinstance(value, str) else str(value)
    return f"the {type(value).__name__} {_short(value)}"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LEGIBLE else f"{text[:_LEGIBLE]}…"


def _at(source: str, key: str = "") -> str:
    """How an error begins that is about a key of a file, or of a program's call."""
    if key:
        return f"{source}: {_short(key)}" if source else _short(key)
    return f"{source}: " if source else ""
