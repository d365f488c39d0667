from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normbench.legible import one_line, substitute, visible
from tests.hostile_texts import CONTROL, MARKUP


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nn-rmsnorm 1.5 µs × 归一化 é ✓ שלום", "nn-rmsnorm 1.5 µs × 归一化 é ✓ שלום"),
        ("\x1b[31mred\x07\b\x00", r"\x1b[31mred\x07\x08\x00"),
        ("a\rb\vc\x85d\u2028e", r"a\rb\x0bc\x85d\u2028e"),
        ("a\tb\u00a0c\u3000d", "a b c d"),
        ("a\nb", "a\nb"),
        ("\u202eabc\u2066\u200f", r"\u202eabc\u2066\u200f"),
        ("a\u200bb\ufeffc\u3164d\u034fe", r"a\u200bb\ufeffc\u3164d\u034fe"),
        ("\U000e0041", r"\U000e0041"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_acts_or_hides_is_shown_as_its_code_and_the_rest_as_it_is(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", MARKUP.values())
def test_markup_is_text(text: str) -> None:
    assert visible(text) == text


@given(st.text(st.characters()) | st.sampled_from(list(CONTROL.values())))
def test_a_visible_text_is_printable_line_by_line_and_visible_again(text: str) -> None:
    shown = visible(text)

    assert all(line.isprintable() for line in shown.split("\n"))
    assert visible(shown) == shown
    assert one_line(text).isprintable()


@pytest.mark.parametrize(
    ("character", "shown"), [("µ", "u"), ("×", "x"), ("…", "..."), ("√", "sqrt"), ("é", r"\xe9"), ("中", r"\u4e2d")]
)
def test_what_an_encoding_lacks_is_substituted_by_something_that_says_as_much(character: str, shown: str) -> None:
    assert substitute(character) == shown
    assert shown.isascii()
