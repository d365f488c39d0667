from __future__ import annotations

import io

import pytest
from rich.text import Text

from normbench.reporters.sheet import Sheet, show
from normbench.reporters.terminal import console


class Terminal(io.StringIO):
    """Text that is shown to somebody."""

    def isatty(self) -> bool:
        return True


ALIKE = Sheet(
    title="times",
    heads=("width", "64", "128", "256"),
    rows=[("copy", "1.00 µs  floor", "2.00 µs  floor", "4.00 µs  floor"), ("b[c]", "-", Text("1.00 µs"), "")],
    alike=True,
)
SENTENCES = Sheet(
    heads=("name", "why"), rows=[("one", "a reason of so many words"), ("two", "none")], wrapped=frozenset({1})
)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> object:
    def on(sheet: Sheet, columns: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "dumb")
        file = Terminal()
        show(sheet, console(file))
        return [line.rstrip() for line in file.getvalue().splitlines() if line.strip(" ─")]

    return on


def test_where_there_is_room_it_is_one_table(shown) -> None:  # type: ignore[no-untyped-def]
    assert shown(ALIKE, 70) == [
        "times",
        " width   64               128              256",
        " copy    1.00 µs  floor   2.00 µs  floor   4.00 µs  floor",
        " b[c]    -                1.00 µs",
    ]


def test_columns_that_are_alike_go_on_in_another_table(shown) -> None:  # type: ignore[no-untyped-def]
    assert shown(ALIKE, 45) == [
        "times",
        " width   64               128",
        " copy    1.00 µs  floor   2.00 µs  floor",
        " b[c]    -                1.00 µs",
        " width   256",
        " copy    4.00 µs  floor",
        " b[c]",
    ]


def test_where_not_even_one_column_has_room_each_row_is_a_block(shown) -> None:  # type: ignore[no-untyped-def]
    assert shown(ALIKE, 22) == [
        "times",
        "copy",
        "  64: 1.00 µs  floor",
        "  128: 2.00 µs  floor",
        "  256: 4.00 µs  floor",
        "b[c]",
        "  64: -",
        "  128: 1.00 µs",
    ]


def test_columns_that_are_unlike_are_never_torn_apart(shown) -> None:  # type: ignore[no-untyped-def]
    unlike = Sheet(heads=ALIKE.heads, rows=ALIKE.rows, title="times")

    assert shown(unlike, 45) == shown(ALIKE, 22)


def test_sentences_go_on_in_the_next_line_while_they_have_a_readable_width(shown) -> None:  # type: ignore[no-untyped-def]
    assert shown(SENTENCES, 24) == [" name   why", " one    a reason of so", "        many words", " two    none"]
    assert shown(SENTENCES, 18) == ["one", "  why: a reason of", "  so many words", "two", "  why: none"]


def test_two_columns_may_name_a_row(shown) -> None:  # type: ignore[no-untyped-def]
    sheet = Sheet(heads=("width", "name", ""), rows=[("64", "copy", "a long remark")], names=2)

    assert shown(sheet, 16) == ["64 copy", "  a long remark"]


@pytest.mark.parametrize("columns", range(8, 80, 3))
def test_a_line_is_too_long_only_where_a_word_is(shown, columns: int) -> None:  # type: ignore[no-untyped-def]
    for sheet in (ALIKE, SENTENCES):
        lines = shown(sheet, columns)
        assert all(len(line) <= columns or len(line.split()) == 1 for line in lines)


def test_a_field_of_several_lines_or_with_commands_is_one_line_of_text(shown) -> None:  # type: ignore[no-untyped-def]
    sheet = Sheet(heads=("a\nb", "c"), rows=[("d\ne", Text("\x1b[31mf"))])

    assert shown(sheet, 40) == [" a b   c", r" d e   \x1b[31mf"]


def test_a_head_goes_on_after_a_hyphen_where_that_keeps_more_columns_together(shown) -> None:  # type: ignore[no-untyped-def]
    sheet = Sheet(heads=("", "nn-rmsnorm", "nn-layernorm", "-"), rows=[("one", "ok", "ok", "ok")], alike=True)

    assert [line.split() for line in shown(sheet, 50)] == [["nn-rmsnorm", "nn-layernorm", "-"], ["one", *["ok"] * 3]]
    assert [line.split() for line in shown(sheet, 35)] == [
        ["nn-", "nn-"],
        ["rmsnorm", "layernorm", "-"],
        ["one", *["ok"] * 3],
    ]
