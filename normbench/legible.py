"""Texts from outside made harmless: what a console, a page or an editor would act on is shown as its code."""

from __future__ import annotations

import unicodedata

_INVISIBLE = frozenset(map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x3164, 0xFFA0)))
"""Letters and marks by their category which nobody sees (Unicode: Default_Ignorable_Code_Point)."""

_ASCII = {
    "µ": "u",
    "μ": "u",
    "×": "x",
    "÷": "/",
    "±": "+-",
    "·": ".",
    "°": " deg ",
    "²": "^2",
    "√": "sqrt",
    "…": "...",
    "–": "-",
    "—": "-",
    "−": "-",
    "→": "->",
    "←": "<-",
    "≤": "<=",
    "≥": ">=",
    "━": "-",
    "─": "-",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
}


def visible(text: str) -> str:
    r"""A text in which nothing acts and nothing hides.

    Control characters, also those of reading direction and of no width, are written as in Python's strings
    (``\x1b``, ``\u202e``); a tab is a space, a newline stays. What it gave once it gives back unchanged.
    """
    if text.isprintable() and _INVISIBLE.isdisjoint(text):
        return text
    return "".join(map(_shown, text))


def one_line(text: str) -> str:
    """A visible text whose lines, if it has several, follow each other in one: it can't pass for our next line."""
    return visible(text).replace("\n", " ")


def _shown(character: str) -> str:
    if character == "\t" or unicodedata.category(character) == "Zs":
        return " "
    if character == "\n" or (character.isprintable() and character not in _INVISIBLE):
        return character
    return code(character)


def code(character: str) -> str:
    r"""A character as it is written in Python's strings: ``\u202e``."""
    return character.encode("unicode_escape").decode("ascii")


def substitute(character: str) -> str:
    """What stands for a character where an encoding lacks it: something alike that is ASCII, or its code.

    Not a question mark: ``?s`` could be microseconds or milliseconds.
    """
    return _ASCII.get(character) or code(character)


def said(error: BaseException) -> str:
    """What an error says; nothing where asking it raises, for whoever wrote it may have written that as well."""
    try:
        return str(error)
    except Exception:
        return ""
