from __future__ import annotations

import io

import pytest
from rich.table import Table
from rich.text import Text

from normbench.reporters.terminal import console, say


class Terminal(io.StringIO):
    """Text that is shown to somebody."""

    def isatty(self) -> bool:
        return True


class Windows(Terminal):
    encoding = "cp1252"  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "COLORTERM", "JPY_PARENT_PID", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def said(text: str, file: io.StringIO, style: str = "") -> str:
    say(console(file), text, style)
    return file.getvalue()


def test_nothing_that_is_printed_by_whatever_way_is_a_command() -> None:
    file = Terminal()
    out = console(file)
    table = Table("\x1b[31m", title="\x1b[32m")
    table.add_row("\x1b[33m")
    for thing in ("\x1b[34m", Text("\x1b[35m"), table):
        out.print(thing)

    assert "\\x1b" in file.getvalue()
    assert not any(f"\x1b[3{number}m" in file.getvalue() for number in range(1, 6))


def test_a_line_is_wrapped_between_words_and_its_indent_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "12")

    assert said("  one two three", Terminal()) == "  one two\n  three\n"
    assert said("one two three", io.StringIO()) == "one two three\n"


def test_too_long_a_word_is_left_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "8")

    assert said("see /a/very/long/path now", Terminal()) == "see\n/a/very/long/path\nnow\n"


def test_lines_of_a_text_do_not_pass_for_lines_of_ours() -> None:
    assert said("because\nOn H200: use it", io.StringIO()) == "because On H200: use it\n"


@pytest.mark.parametrize(
    ("file", "variables", "colours", "redraws"),
    [
        (Terminal, {}, True, True),
        (Terminal, {"TERM": "dumb"}, False, False),
        (Terminal, {"TERM": "unknown"}, False, False),
        (Terminal, {"TERM": ""}, False, False),
        (Terminal, {"TERM": "dumb", "FORCE_COLOR": "1"}, False, False),
        (Terminal, {"NO_COLOR": "1"}, False, True),
        (Terminal, {"NO_COLOR": ""}, True, True),
        (Terminal, {"JPY_PARENT_PID": "7"}, True, False),
        (io.StringIO, {}, False, False),
        (io.StringIO, {"FORCE_COLOR": "1"}, True, False),
        (io.StringIO, {"CI": "true", "GITHUB_ACTIONS": "true"}, False, False),
    ],
)
def test_colours_and_movements_go_where_they_are_understood(
    monkeypatch: pytest.MonkeyPatch,
    file: type[io.StringIO],
    variables: dict[str, str],
    colours: bool,
    redraws: bool,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert ("\x1b[31m" in said("x", file(), "red")) is colours
    assert console(file()).redraws is redraws


@pytest.mark.parametrize(("columns", "width"), [("40", 40), ("0", 80), ("-3", 80), ("wide", 80), ("", 80)])
def test_a_width_that_is_none_is_the_usual_one(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    assert console(Terminal()).width == width


def test_lines_are_drawn_where_the_text_is_shown_not_where_it_is_kept() -> None:
    assert console(Windows(), io.StringIO()).encoding == "cp1252"
