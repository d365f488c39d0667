"""What the command line's values mean: list options, sizes, dtypes, names; every error names value and choice."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperOption

from normbench.errors import UsageError
from normbench.records import MOST_SIZE, DType

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

LIST_OPTIONS = frozenset(
    {
        *("--widths", "--width", "--rows", "--dtypes", "--dtype", "--param-dtypes", "--param-dtype"),
        *("--autocasts", "--autocast", "--impls", "--impl", "--modes", "--mode", "--caches", "--cache"),
        *("--properties", "--property", "--allow", "--text"),
    }
)
"""The options that take values until the next option."""

_STDOUT = {("--save-plan", "-")}
"""The option that takes a dash, and its value."""
_MOST = 1e9
_MOST_SIZES = 1000
_NUMBER = re.compile(r"-?(?:\.?\d|(?:inf|infinity|nan)\b)", re.IGNORECASE)
"""How a value begins that is a number, or would like to be one."""
_TORCH_NAMES = {dtype.torch_name: dtype for dtype in DType} | {"half": DType.FP16, "float": DType.FP32}


class ListCommand(TyperCommand):
    """A command whose list options take ``--widths 256 512``, ``256,512`` and repeats alike.

    Click options take one value each by design, so the values that follow the first are given the option's
    name again before parsing.
    """

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Expand, then parse as usual."""
        if ctx.resilient_parsing:  # completing: nothing is whole yet
            return super().parse_args(ctx, args)
        expanded = expand(args)
        refuse_missing(expanded, valued_options(self))
        self.before_parsing(ctx, expanded)
        return super().parse_args(ctx, expanded)

    def before_parsing(self, ctx: typer.Context, args: list[str]) -> None:
        """What is to be done with the expanded words before they are parsed."""


def valued_options(command: TyperCommand, *, several: bool = False) -> frozenset[str]:
    """The names of a command's options that take a value, or of those alone that take several."""
    options = (option for option in command.params if isinstance(option, TyperOption) and not option.is_flag)
    return frozenset(name for option in options if option.multiple or not several for name in option.opts)


def refuse_missing(args: Sequence[str], valued: Collection[str]) -> None:
    """A UsageError where the next option, or nothing, stands in the place of an option's value.

    Click takes whatever follows: ``--out --json`` would make a folder of that name.
    """
    words = list(args[: args.index("--")] if "--" in args else args)
    for name, following in pairwise([*words, None]):
        if name in valued and (following is None or is_option(following)) and (name, following) not in _STDOUT:
            likely = f", or {name}={following} where that is meant" if following else ""
            raise UsageError(f"{name}: a value is missing", hint=f"put one behind it{likely}")


def expand(args: Sequence[str], names: Iterable[str] = LIST_OPTIONS) -> list[str]:
    """Repeat a list option's name before each of its values; ``--`` ends the values."""
    listed = frozenset(names)
    expanded: list[str] = []
    current: str | None = None
    for index, token in enumerate(args):
        if token == "--":
            return [*expanded, *args[index:]]
        name, _, value = token.partition("=")
        if name in listed:
            current = name
            expanded += [name, value] if value else []
            if not value and not _has_value(args, index):
                raise UsageError(f"{name}: a value is missing", hint="give one or more, until the next option")
        elif current is not None and not is_option(token):
            expanded += [current, token]
        else:
            current = None
            expanded.append(token)
    return expanded


def _has_value(args: Sequence[str], index: int) -> bool:
    return index + 1 < len(args) and not is_option(args[index + 1])


def is_option(token: str) -> bool:
    """Whether a word is an option, and not a number with a minus."""
    return token.startswith("-") and not _NUMBER.match(token)


def split(option: str, values: Iterable[str]) -> list[str]:
    """Values as given, at spaces, commas and repeats."""
    parts = []
    for value in values:
        found = [part for part in re.split(r"[,\s]+", value) if part]
        if not found:
            raise UsageError(f"{option}: {value!r} holds no value", hint="give one or more, or leave the option out")
        parts += found
    return parts


def unique(values: Iterable[T]) -> tuple[T, ...]:
    """Each value once, in the order given."""
    return tuple(dict.fromkeys(values))


def sizes(option: str, values: Iterable[str]) -> tuple[int, ...]:
    """Positive whole numbers and ranges: ``256``, ``256:8192:x2`` (factor) or ``256:1024:256`` (step)."""
    return unique(size for value in split(option, values) for size in _size_or_range(option, value))


def _size_or_range(option: str, value: str) -> Iterable[int]:
    if ":" not in value:
        return [_size(option, value, value)]
    parts = value.split(":")
    match = re.fullmatch(r"(x?)(\d{1,18})", parts[2], re.ASCII) if len(parts) == 3 else None
    if match is None:
        raise _bad_size(option, value)
    first, last, step = _size(option, parts[0], value), _size(option, parts[1], value), int(match[2])
    is_factor = bool(match[1])
    if first > last or step < (2 if is_factor else 1):
        raise _bad_size(option, value)
    count = math.log(last / first, step) if is_factor else (last - first) / step
    if count >= _MOST_SIZES:
        raise UsageError(f"{option}: {value!r} is {count:.0f} sizes", hint=f"allowed: up to {_MOST_SIZES} in a range")
    found = [first]
    while (following := found[-1] * step if is_factor else found[-1] + step) <= last:
        found.append(following)
    return found


def _size(option: str, text: str, value: str) -> int:
    if not re.fullmatch(r"\d{1,19}", text, re.ASCII) or not 1 <= int(text) <= MOST_SIZE:
        raise _bad_size(option, value)
    return int(text)


def _bad_size(option: str, value: str) -> UsageError:
    return UsageError(
        f"{option}: {value!r} is not a size",
        hint="allowed: whole numbers from 1, and ranges first:last:xFACTOR or first:last:STEP, such as 256:8192:x2",
    )


def dtype(option: str, value: str) -> DType:
    """A dtype by its short name or torch's."""
    name = value.lower().removeprefix("torch.")
    try:
        return _TORCH_NAMES.get(name) or DType(name)
    except ValueError:
        raise _unknown(option, value, [*DType, *_TORCH_NAMES], "dtype") from None


def optional_dtype(option: str, value: str, absent: str) -> DType | None:
    """A dtype, or None for the word ``absent``."""
    return None if value.lower() == absent else dtype(option, value)


def choice(option: str, kind: type[E], value: str) -> E:
    """A member of an enumeration by its value."""
    return kind(one_of(option, [str(member) for member in kind], value.lower(), kind.__name__.lower()))


def one_of(option: str, names: Sequence[str], value: str, what: str) -> str:
    """One of several names."""
    if value in names:
        return value
    raise _unknown(option, value, names, what)


def many(option: str, values: Iterable[str], parse: Callable[[str, str], T]) -> tuple[T, ...]:
    """Each value parsed, each once."""
    return unique(parse(option, value) for value in split(option, values))


def above_zero(option: str, value: float) -> float:
    """A number above 0 that a clock or an eps can be."""
    if not 0 < value <= _MOST:
        raise UsageError(f"{option}: {value:g} is not a number above 0", hint=f"allowed: above 0, up to {_MOST:g}")
    return value


def fraction(option: str, value: str) -> float:
    """A fraction, given as ``1%`` or ``0.01``."""
    text = value.strip()
    try:
        number = float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        number = float("nan")
    if not 0 < number < 1:
        raise UsageError(f"{option}: {value!r} is not a fraction", hint="allowed: above 0 and below 1, as 0.01 or 1%")
    return number


_SLOWER = "slower"


def slower_than(option: str, value: str) -> float | None:
    """What fails a gate: slower by more than a fraction, given as ``slower:5%``; None for a bare ``slower``."""
    word, colon, threshold = value.partition(":")
    if word != _SLOWER:
        hint = f"allowed: {_SLOWER}, or {_SLOWER}:FRACTION such as {_SLOWER}:5%"
        raise UsageError(f"{option}: {value!r} is not known", hint=hint)
    return fraction(f"{option} {_SLOWER}", threshold) if colon else None


def _unknown(option: str, value: str, names: Sequence[str], what: str) -> UsageError:
    nearest = difflib.get_close_matches(value, names, n=1)
    suggestion = f"did you mean {nearest[0]}? " if nearest else ""
    return UsageError(f"{option}: unknown {what} {value!r}", hint=f"{suggestion}allowed: {', '.join(names)}")


def metavar(kind: type[StrEnum]) -> Any:
    """How help shows the values of an enumeration."""
    return "|".join(str(member) for member in kind)
