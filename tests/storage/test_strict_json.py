from __future__ import annotations

import pytest

from normbench.storage.limits import MOST_DEPTH, MOST_INTEGER
from normbench.storage.strict_json import parsed, unknown_names, with_clean_texts


def nested(depth: int) -> bytes:
    return b'{"a": ' + b"[" * depth + b"]" * depth + b"}"


def test_what_json_holds_is_read() -> None:
    assert parsed(b'{"a": [1, -0.5, null, true, "\\u00b5"], "b": {}}') == {"a": [1, -0.5, None, True, "µ"], "b": {}}
    assert parsed(nested(MOST_DEPTH - 1))
    assert parsed(str(-MOST_INTEGER).encode()) == -MOST_INTEGER


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "Expecting value: line 1"),
        (b'{"a": 1,\n "b": }', "line 2 column 7"),
        (b'{"a": 1, "a": 2}', "'a' stands twice in one object"),
        (b'{"x": [{"a": 1, "b": 2, "a": 1}]}', "'a' stands twice"),
        (b'{"a": [1, NaN]}', "NaN is no number"),
        (b'{"a": Infinity}', "Infinity is no number"),
        (b'{"a": [1, 1e999]}', r"a\.1: is a number beyond"),
        (b'{"a": 18446744073709551617}', r"a: is a number beyond 18446744073709551616"),
        (b'{"a": ' + b"9" * 5000 + b"}", "4300 digits"),
        (b'{"a": "x\\u001b[31m"}', r"a: holds the character U\+001B"),
        (b'{"a": "\\ud800"}', r"a: holds the character U\+D800"),
        (b'{"a\\u202e": 1}', r"holds the character U\+202E"),
        (b'{"a": "' + b"x" * 20000 + b'"}', "a: is a text of 20000 characters"),
        (b'{\n"a": "\xff"}', "line 2: is no UTF-8 text"),
        (b"\xef\xbb\xbf{}", "BOM"),
        ('{"a": 1}'.encode("utf-16"), "line 1: is no UTF-8 text"),
        (nested(MOST_DEPTH + 1), "lists and objects within each other"),
        (nested(100_000), "lists and objects within each other"),
    ],
)
def test_what_is_refused_says_where_and_why(data: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parsed(data)


def test_names_that_nobody_knows_are_found_wherever_they_are() -> None:
    data = {"a": 1, "b": {"c": 1, "d": 2}, "e": [{"f": 1}, {"g g": 1}]}
    known = {"a": 1, "b": {"c": 1}, "e": [{"f": 1}, {}]}

    assert list(unknown_names(data, known)) == ["b.d", "e.1.'g g'"]
    assert list(unknown_names(data, data)) == []


def test_every_text_is_written_clean_and_nothing_else_changes() -> None:
    data = {"a": ["x\ty", 1, None], "b": {"c": "\ud800"}}

    assert with_clean_texts(data) == {
        "a": ["x y", 1, None],
        "b": {"c": "\ufffd"},
    }
