"""The texts in a run folder: what may stand in them, so that none commands a terminal or a spreadsheet."""

from __future__ import annotations

import re
import unicodedata

from normbench.records import is_below
from normbench.storage.limits import MOST_NAME, MOST_TEXT

_REFUSED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of what is not seen: controls, marks of direction and width, surrogates, line separators."""

_BLANK = frozenset({"Cc", "Zl", "Zp"})
"""Those that a space stands for when they are written; for the others it is U+FFFD."""

_FORMULA = re.compile(r"(^|;)(\s*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")
"""Where a spreadsheet would see a formula: the semicolon separates fields where the comma is a decimal one."""

_BEGINNING = re.compile(r"(?:^|[,;\"])\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""Where a field of a line may be one."""

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def objection(text: str) -> str | None:
    """Why a text is refused when it is read, as the end of a sentence; None where there is nothing against it."""
    if len(text) > MOST_TEXT:
        return f"is a text of {len(text)} characters, more than {MOST_TEXT}"
    if not text.isprintable():
        for character in text:
            if unicodedata.category(character) in _REFUSED:
                return f"holds the character U+{ord(character):04X}, which is not seen"
    return None


def field_objection(text: str) -> str | None:
    """The same for a field of a CSV file, which may not be a formula to a spreadsheet either."""
    if _FORMULA.search(text) and not _NUMBER.fullmatch(text):
        return f"{text[:40]!r} is a formula to a spreadsheet"
    return objection(text)


def is_plain(line: str) -> bool:
    """Whether nothing need be asked about a line of a CSV file: there is no objection to any of its fields."""
    return len(line) <= MOST_TEXT and line.isprintable() and not _BEGINNING.search(line)


def name_objection(text: str) -> str | None:
    """The same for the name of an implementation: any visible characters, for reports escape what they mean."""
    if not text or len(text) > MOST_NAME or text != text.strip() or not is_below(text):
        what = f"1 to {MOST_NAME} characters, no space at either end, no backslash, no path that leads elsewhere"
        return f"{text[:40]!a} is no name of an implementation: {what}"
    return field_objection(text)


def cleaned(text: str) -> str:
    """A text as it is written: against it there is no objection when it is read."""
    if not text.isprintable():
        text = "".join(map(_seen, text))
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def cleaned_field(text: str) -> str:
    """The same for a field of a CSV file: an apostrophe makes a text of what would be a formula."""
    text = cleaned(text)
    if _FORMULA.search(text) and not _NUMBER.fullmatch(text):
        return cleaned(_FORMULA.sub(r"\1\2'", text))
    return text


def _seen(character: str) -> str:
    category = unicodedata.category(character)
    if category not in _REFUSED:
        return character
    return " " if category in _BLANK else "\N{REPLACEMENT CHARACTER}"
