"""A console: where text is shown, how wide it is and what it understands, and that no text acts there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from normbench.legible import one_line, visible

_UNLIMITED = 10_000
"""Columns where nobody looks at a terminal: nothing is wrapped or cut."""
_USUAL = 80
_LINES = 25
_WITHOUT_COMMANDS = ("", "dumb", "unknown")


class PlainConsole(Console):
    """A console to which a text is a text: nothing in it is markup, a picture or a command of the terminal.

    Args:
        shown_on: Where it is shown, which decides width, colours and which characters there are.
        into: Where it is written, if that is not the same.
    """

    def __init__(self, shown_on: TextIO, into: TextIO | None = None) -> None:
        self._shown_on = shown_on
        self._takes_commands = _takes_commands(shown_on)
        width = self._fixed_width()
        super().__init__(
            # The stream below, where our stderr makes visible whatever else is written to it.
            file=getattr(shown_on, "commands", shown_on),
            width=width,
            height=None if width is None else _LINES,  # with one alone a dumb terminal has 80 columns
            color_system="auto" if self._takes_commands or not shown_on.isatty() else None,
            force_jupyter=False,
            markup=False,
            highlight=False,
            emoji=False,
            soft_wrap=not shown_on.isatty(),
        )
        if into is not None:
            self.file = into

    @property
    def redraws(self) -> bool:
        """Whether a line can be drawn over: not in a file, whatever colours it wants, nor in a notebook's output."""
        return self.is_terminal and self._takes_commands and "JPY_PARENT_PID" not in os.environ

    @property
    def encoding(self) -> str:
        """Of where it is shown."""
        return (getattr(self._shown_on, "encoding", None) or "utf-8").lower()

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is shown of anything: the last place that every text passes."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def _fixed_width(self) -> int | None:
        """The width; None where rich is to follow that of the terminal."""
        if not self._shown_on.isatty():
            return _UNLIMITED
        told = os.environ.get("COLUMNS", "")
        if told.isdecimal() and int(told) > 0:
            return int(told)
        return None if self._takes_commands and "COLUMNS" not in os.environ else _columns(self._shown_on)


def _takes_commands(shown_on: TextIO) -> bool:
    """Whether it is a terminal that understands colours and movements; Windows' do, and say nothing of it."""
    dumb = os.environ.get("TERM", "").lower() in _WITHOUT_COMMANDS and os.name != "nt"
    return shown_on.isatty() and not dumb


def _columns(terminal: TextIO) -> int:
    """The width that a terminal says it has."""
    try:
        return os.get_terminal_size(terminal.fileno()).columns or _USUAL
    except (OSError, ValueError):
        return _USUAL


def console(file: TextIO | None = None, into: TextIO | None = None) -> PlainConsole:
    """A console that never reads markup out of data, and that cuts nothing where there is no terminal.

    Args:
        file: Where the text is shown, which decides its width and its colours; stdout unless told.
        into: Where it is written, if that is not the same.
    """
    return PlainConsole(file or sys.stdout, into)


def say(out: Console, line: str | Text, style: str = "") -> None:
    """Print a line, wrapped between words; too long a word is left to the terminal, so that it copies whole."""
    text = line if isinstance(line, Text) else Text(one_line(line), style=style)
    if out.soft_wrap:
        out.print(text)
        return
    indent = len(text.plain) - len(text.plain.lstrip(" "))
    body = text[indent:]
    body.overflow = "ignore"
    for part in body.wrap(out, max(out.width - indent, 1)):
        part.rstrip()
        out.print(Text(" " * indent) + part, soft_wrap=True)
