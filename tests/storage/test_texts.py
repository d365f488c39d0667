from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normbench.storage.limits import MOST_NAME, MOST_TEXT
from normbench.storage.texts import cleaned, cleaned_field, field_objection, is_plain, name_objection, objection

anything = st.one_of(st.text(), st.text("=+-@;'\t\r\n ＝abc01.e\u202e\ud800"))


@given(anything)
def test_what_is_written_is_read(text: str) -> None:
    assert objection(cleaned(text)) is None
    assert field_objection(cleaned_field(text)) is None


@given(anything)
def test_what_there_is_nothing_against_is_written_as_it_is(text: str) -> None:
    if objection(text) is None:
        assert cleaned(text) == text
    if field_objection(text) is None:
        assert cleaned_field(text) == text


@pytest.mark.parametrize(
    "character", ["\x00", "\t", "\n", "\r", "\x1b", "\x7f", "\x85", "\u200b", "\u202e", "\u2028", "\ufeff", "\ud800"]
)
def test_a_character_that_is_not_seen_is_named_and_replaced(character: str) -> None:
    assert objection(f"a{character}b") == f"holds the character U+{ord(character):04X}, which is not seen"
    assert cleaned(f"a{character}b") in ("a b", "a\ufffdb")


@pytest.mark.parametrize("text", ["", "µ × … “„”", "名前", "🙂", "a\u00a0b", "<b>|`*_#", "98.765", "None", "nan"])
def test_what_is_seen_is_kept(text: str) -> None:
    assert objection(text) is None


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "  =1", "x;=1+1", "x; -1", "＝1", "-", "-inf"]
)
def test_what_a_spreadsheet_would_compute_is_refused_and_written_as_a_text(text: str) -> None:
    assert field_objection(text) == f"{text!r} is a formula to a spreadsheet"
    assert cleaned_field(text).replace("'", "") == text.replace("'", "")
    assert objection(text) is None, "in run.json it is an option, not a formula"


@pytest.mark.parametrize("text", ["-4", "+5", "-1.5e-06", "1e-05", "-.5", "a=b", "nn-rmsnorm", "a;b"])
def test_numbers_and_words_are_no_formulas(text: str) -> None:
    assert field_objection(text) is None
    assert cleaned_field(text) == text


def test_a_text_without_end_is_cut_and_refused() -> None:
    assert objection("x" * MOST_TEXT) is None
    assert objection("x" * (MOST_TEXT + 1)) == f"is a text of {MOST_TEXT + 1} characters, more than {MOST_TEXT}"
    assert cleaned("x" * (MOST_TEXT + 1)) == "x" * (MOST_TEXT - 1) + "…"


@pytest.mark.parametrize(
    "name",
    [
        *("copy", "nn-rmsnorm", "nn.RMSNorm[compile]", "path/file.py:name", "./x.py:f", "…/x.py:f", "a b", "None"),
        *("nan", "NA", "own|of|mine", "<b>*x*", "ünï-名", "x" * MOST_NAME),
    ],
)
def test_an_implementation_may_be_called_by_any_visible_name(name: str) -> None:
    assert name_objection(name) is None


@pytest.mark.parametrize(
    "name",
    ["", " a", "a ", "x" * (MOST_NAME + 1), "../x", "a/../b", "/abs", "a\\b", "=1", "-x", "@x", "a\nb", "a\u202eb"],
)
def test_no_implementation_is_called_by_a_formula_a_way_elsewhere_or_what_is_not_seen(name: str) -> None:
    assert name_objection(name) is not None


@given(st.lists(anything, min_size=1))
def test_in_a_plain_line_there_is_nothing_against_any_field(fields: list[str]) -> None:
    quoted = ",".join('"' + field.replace('"', '""') + '"' for field in fields)
    plain = ",".join(fields)

    assert is_plain("nn-rmsnorm,1e-05,None,,a b;c")
    for line in (quoted, plain):
        if is_plain(line):
            assert all(field_objection(field) is None for field in fields)
