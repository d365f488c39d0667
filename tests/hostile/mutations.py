"""What befalls a file: bytes, lines, fields, columns and JSON values changed at random, all from one generator."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Any

NASTY = (
    *("", " ", "0", "-0", "-1", "1.5", "1e999", "-1e999", "nan", "NaN", "inf", "-inf", "Infinity", "1e-320", "1e300"),
    *("None", "null", "NA", "true", "True", "False", "1_000", "+5", " 64", "64 ", "0x40", "٣", "9" * 20, "9" * 5000),
    *("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "x;=1+1", "＝1", '=HYPERLINK("http://x")'),
    *("<script>alert(1)</script>", "[bold]x[/bold]", "`|*_#", "{{7*7}}", "%s%n", "$(id)", "../../x", "/etc/passwd"),
    *(
        "\x00",
        "a\x1b[31m",
        "\x7f",
        "\x85",
        "\u202eabc",
        "\ufeffx",
        "\u2028",
        "a\rb",
        "a\nb",
        '"',
        '"a',
        "'",
        "\\",
        ",",
    ),
    *(
        "x" * 20_000,
        "é" * 11_000,
        "copy",
        "nn-layernorm",
        "nn-rmsnorm",
        "zz-new",
        "ok",
        "failed",
        "not_run",
        "faster",
    ),
    *(
        "1",
        "2",
        "32",
        "128",
        "1000000000000000001",
        "fp32",
        "bf16",
        "forward",
        "wall",
        "cold",
        "2e-06",
        "1e-16",
        "1e10",
    ),
)
"""Texts for a field: numbers that are none, formulas, markup, controls, words of the tool in the wrong place."""

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 2**63, 2**70, 10**400, 0.5, -0.5, 1e-320, 1e308, [], {}, [[]], [None], [1, 1]),
    *({"a": 1}, [["a", "b"]], "\ud800", [10**18] * 3, list(range(1, 3000)), *NASTY),
)
"""Values for a place in run.json."""

_SEQUENCES = (
    b"\n",
    b"\r\n",
    b"\r",
    b",",
    b'"',
    b'""',
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b";",
    b"=",
    b"-",
    b"{",
    b"}",
    b"[",
    b"]",
)


def mutated(name: str, data: bytes, random: Random) -> bytes:
    """The file after one to three things have befallen it."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        with suppress(csv.Error, ValueError, RecursionError, OSError, EOFError, zlib.error):
            data = random.choice(_of(name))(data, random)  # what is broken already may have no rows or values
    return data


def _of(name: str) -> list[Callable[[bytes, Random], bytes]]:
    anything = [flipped, cut, inserted, deleted, repeated]
    if name.endswith(".gz"):
        return [*anything, repacked, repacked, joined]
    if name.endswith(".json"):
        return [*anything, line_twice, with_value, with_value, with_value, with_value, name_twice, without_name]
    return [*anything, line_twice, line_gone, lines_swapped, *[with_field] * 6, columns_changed, recoded]


TOKENS = (
    *("64", "128", "32", "2e-06", "4e-06", "1e-06", "8e-06", "fp32", "forward", "warm", "copy", "nn-rmsnorm"),
    *(
        "nn-layernorm",
        "eager-rmsnorm",
        "Some CPU",
        "2026-01-02T03:04:05Z",
        "because",
        "a test's",
        "0.02",
        "8589934592",
        "normal-values",
        "fp16",
        "pass",
        "inf",
        "5.0",
    ),
)
"""What stands in good folders, in several of their files."""

_LARGE = ("1e-15", "1e9", "1000000000000000000", "9223372036854775807", "1", "7", "3e-07", "0.999999")


def everywhere(files: Mapping[str, bytes], random: Random) -> dict[str, bytes]:
    """The same word or number of every file is another, as it is written there: the files still agree."""
    token = random.choice(TOKENS)
    other = random.choice(_LARGE if token[0].isdigit() and random.random() < 0.8 else NASTY)
    return {name: _with_other(name, data, token, other) for name, data in files.items()}


def _with_other(name: str, data: bytes, token: str, other: str) -> bytes:
    if name.endswith(".gz"):
        return gzip.compress(_with_other("samples.csv", gzip.decompress(data), token, other), mtime=0)
    if name.endswith(".json"):
        return data.replace(token.encode(), json.dumps(other)[1:-1].encode())
    rows = [[other if field == token else field for field in row] for row in _rows(data)]
    return _text(rows)


def flipped(data: bytes, random: Random) -> bytes:
    """A byte is another."""
    at = random.randrange(len(data) + 1)
    return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]


def cut(data: bytes, random: Random) -> bytes:
    """The end is gone."""
    return data[: random.randrange(len(data) + 1)]


def inserted(data: bytes, random: Random) -> bytes:
    """Something stands in the middle."""
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice(_SEQUENCES) + data[at:]


def deleted(data: bytes, random: Random) -> bytes:
    """A piece is gone."""
    at = random.randrange(len(data) + 1)
    return data[:at] + data[at + random.randrange(1, 60) :]


def repeated(data: bytes, random: Random) -> bytes:
    """A piece stands twice."""
    at = random.randrange(len(data) + 1)
    end = at + random.randrange(1, 400)
    return data[:end] + data[at:]


def line_twice(data: bytes, random: Random) -> bytes:
    """A line stands twice."""
    lines = data.splitlines(keepends=True) or [b""]
    at = random.randrange(len(lines))
    lines.insert(random.randrange(len(lines) + 1), lines[at])
    return b"".join(lines)


def line_gone(data: bytes, random: Random) -> bytes:
    """A line is gone."""
    lines = data.splitlines(keepends=True) or [b""]
    del lines[random.randrange(len(lines))]
    return b"".join(lines)


def lines_swapped(data: bytes, random: Random) -> bytes:
    """The lines stand in another order."""
    lines = data.splitlines(keepends=True)
    random.shuffle(lines)
    return b"".join(lines)


def with_field(data: bytes, random: Random) -> bytes:
    """A field, quoted where it has to be, is a nasty one, or one of another row or column."""
    rows = _rows(data)
    if not rows or not any(rows):
        return data
    row = random.choice([row for row in rows[1:] or rows if row] or [[""]])
    others = random.choice(rows) or [""]
    row[random.randrange(len(row))] = random.choice(
        (random.choice(NASTY), random.choice(NASTY), random.choice(others))
    )
    return _text(rows)


def columns_changed(data: bytes, random: Random) -> bytes:
    """A column is gone, stands twice, elsewhere, or has another name."""
    rows = _rows(data)
    if not rows or not rows[0]:
        return data
    at, to = random.randrange(len(rows[0])), random.randrange(len(rows[0]))
    what = random.randrange(4)
    for number, row in enumerate(rows):
        if len(row) <= max(at, to):
            continue
        if what == 0:
            del row[at]
        elif what == 1:
            row.insert(to, row[at])
        elif what == 2:
            row.insert(to, row.pop(at))
        elif number == 0:
            row[at] = random.choice(NASTY)
    return _text(rows)


def recoded(data: bytes, random: Random) -> bytes:
    """The same text as another program saves it."""
    text = data.decode("utf-8", "replace")
    return random.choice(
        (
            text.encode("utf-16"),
            text.encode("utf-8-sig"),
            text.replace("\n", "\r\n").encode(),
            text.replace("\n", "\r").encode(),
            text.replace(",", ";").encode(),
            text.replace(",", "\t").encode(),
        )
    )


def with_value(data: bytes, random: Random) -> bytes:
    """A place in run.json holds something else, or one more."""
    found = json.loads(data)
    places = list(_places(found))
    if not places:
        return data
    holder, key = random.choice(places)
    if isinstance(holder, dict) and random.random() < 0.1:
        key = random.choice(("more", "schema", *NASTY[:20]))
    if isinstance(holder, list) and random.random() < 0.2:
        holder.insert(key, random.choice((holder[key], random.choice(VALUES))))
    else:
        holder[key] = random.choice(VALUES)
    return json.dumps(found, indent=2).encode()


def without_name(data: bytes, random: Random) -> bytes:
    """A name or an item is gone from run.json."""
    found = json.loads(data)
    places = list(_places(found))
    if not places:
        return data
    holder, key = random.choice(places)
    del holder[key]
    return json.dumps(found).encode()


def name_twice(data: bytes, random: Random) -> bytes:
    """A name stands twice in an object of run.json, or it is deep."""
    if random.random() < 0.2:
        depth = random.choice((5, 50, 100_000))
        return data.replace(b'"resumed": []', b'"resumed": ' + b"[" * depth + b"]" * depth)
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    return b"\n".join([*lines[:at], lines[at].rstrip(b",") + b",", *lines[at:]])


def repacked(data: bytes, random: Random) -> bytes:
    """What was packed has been changed before."""
    return gzip.compress(mutated("samples.csv", gzip.decompress(data), random), mtime=0)


def joined(data: bytes, random: Random) -> bytes:
    """Two packed files in one, or something behind it."""
    return data + random.choice((data, b"\0" * 10, b"trash", gzip.compress(b"a,b\n")))


def _rows(data: bytes) -> list[list[str]]:
    text = data.decode("utf-8", "replace")
    return [next(csv.reader([line]), []) for line in text.split("\n")[:-1]]


def _text(rows: list[list[str]]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")


def _places(value: Any) -> Any:
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])
