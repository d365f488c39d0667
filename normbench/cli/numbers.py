"""Numbers on a command line: negative ones are values too, and each that is none is named with what is allowed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

import typer
from typer.core import TyperCommand

from normbench.cli.options import expand, is_option, refuse_missing, split, valued_options
from normbench.errors import UsageError

_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)
"""Less than Python takes: no underscores and no other script's digits, which nobody reads as it does."""
_NO_NUMBER = re.compile(r"\s*[+-]?(?:inf|infinity|nan)\s*", re.IGNORECASE)


class NumbersCommand(TyperCommand):
    """A command whose arguments are numbers, in any place: ``explain -1 2 --shift -3``.

    Its options of several values take them until the next option, also where arguments follow (then ``--``).
    """

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Put the arguments behind a ``--``, where no minus makes an option, then parse as usual."""
        if ctx.resilient_parsing:  # completing: nothing is whole yet
            return super().parse_args(ctx, args)
        expanded = expand(args, valued_options(self, several=True))
        refuse_missing(expanded, valued_options(self))
        return super().parse_args(ctx, apart(expanded, valued_options(self)))


def apart(args: Sequence[str], valued: Iterable[str]) -> list[str]:
    """Options with their values first, then ``--`` and everything else.

    Args:
        args: What was typed.
        valued: The options that take the word behind them, whatever that is.
    """
    taking = frozenset(valued)
    options: list[str] = []
    others: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            others += words
        elif is_option(word):
            options += [word, *_next(words)] if word in taking else [word]
        else:
            others.append(word)
    return [*options, "--", *others]


def _next(words: Iterator[str]) -> list[str]:
    return [word for word in [next(words, None)] if word is not None]


def number(name: str, text: str, least: float, most: float) -> float:
    """A finite number within limits.

    Args:
        name: What is asked for, as messages say it.
        text: What was typed.
        least: The least that is allowed.
        most: The most that is allowed.
    """
    allowed = f"allowed: numbers such as 1, -2.5 or 1e-3, from {least:g} to {most:g}"
    if not _NUMBER.fullmatch(text) and not _NO_NUMBER.fullmatch(text):
        raise UsageError(f"{name}: {text!r} is not a number", hint=allowed)
    value = float(text)
    if not math.isfinite(value):
        raise UsageError(f"{name}: {text!r} is not a finite number", hint=allowed)
    if not least <= value <= most:
        raise UsageError(f"{name}: {text!r} is out of range", hint=allowed)
    if value == 0 and re.search("[1-9]", text.lower().partition("e")[0]):
        raise UsageError(f"{name}: {text!r} is so near to 0 that float64 can't hold it", hint=allowed)
    return value


def numbers(name: str, texts: Iterable[str], least: float, most: float) -> tuple[float, ...]:
    """Several of them, at spaces, commas and repeats."""
    return tuple(number(name, text, least, most) for text in split(name, texts))
