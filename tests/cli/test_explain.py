"""``normbench explain``: numbers in, ten steps out, in four forms."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from normbench.walkthrough import StepName
from tests.cli.command import normbench
from tests.cli.consoles import SEQUENCE, in_shell, on_terminal, piped
from tests.reporters.test_walkthrough_table import numbers

HELP = normbench("explain", "--help").out
IMPORTS = """
import sys
from normbench.cli import main
try:
    main()
finally:
    print(*sorted({name.partition(".")[0] for name in sys.modules} & {"torch", "pandas", "matplotlib", "scipy"}))
"""


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test runs in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(*words: str) -> dict[str, Any]:
    """What ``--json`` prints."""
    done = normbench("explain", "--json", *words)
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert isinstance(found, dict)
    return found


def refused(*words: str) -> str:
    """What is said of words that are refused, with a hint."""
    done = normbench("explain", *words)
    assert (done.code, done.out) == (2, "")
    assert "hint: " in done.err
    return done.err


def test_the_known_values_are_printed() -> None:
    done = normbench("explain", "1", "2", "3")

    assert (done.code, done.err) == (0, "")
    for text in ("0.462910  0.925820  1.388730", "-1.224744  0.000000  1.224744", "not computed"):
        assert re.search(re.escape(text).replace(r"\ \ ", r"\s+"), done.out)


def test_equal_values_give_zeros_and_nearly_ones() -> None:
    norms = read("3", "3")["norms"]

    assert norms["layernorm"]["output"] == [0, 0]
    assert norms["rmsnorm"]["output"] == pytest.approx([1, 1], abs=1e-7)


@pytest.mark.parametrize(
    "words",
    [
        ["-1", "2", "-3.5"],
        ["-1,2,-3.5"],
        ["-1", "2,", "-3.5,"],
        ["--", "-1", "2", "-3.5"],
        ["-1", "--quiet", "2", "-3.5"],
        ["--shift", "1", "-1", "2", "-3.5"],
    ],
)
def test_negative_numbers_are_values_and_commas_part_them(words: list[str]) -> None:
    assert read(*words)["values"] == [-1, 2, -3.5]


def test_every_option_reaches_the_arithmetic() -> None:
    words = ("--shift", "-1", "--scale=-0.5", "--eps", "1e-3", "--gain", "2", "-3", "0.5", "--bias", "-1", "--")
    found = read(*words, "-1", "2", "4")
    layernorm = found["norms"]["layernorm"]
    n = layernorm["steps"]["divided"]

    assert {name: found[name] for name in ("values", "shift", "scale", "eps", "gain", "bias")} == {
        "values": [-1, 2, 4],
        "shift": -1,
        "scale": -0.5,
        "eps": 1e-3,
        "gain": [2, -3, 0.5],
        "bias": [-1, -1, -1],
    }
    assert layernorm["output"] == [2 * n[0] - 1, -3 * n[1] - 1, 0.5 * n[2] - 1]
    assert layernorm["steps"]["plus_eps"] == layernorm["steps"]["mean_of_squares"] + 1e-3
    assert layernorm["shifted"]["after"] == pytest.approx(layernorm["output"])
    assert (
        found["norms"]["rmsnorm"]["output"]
        == read("-1", "2", "4", "--eps", "1e-3", "--gain", "2,-3,.5")["norms"]["rmsnorm"]["output"]
    )


def test_without_values_there_are_some_whose_figures_are_round() -> None:
    found = read("--eps", "0")
    steps = {name: norm["steps"] for name, norm in found["norms"].items()}

    assert len(found["values"]) == 6
    assert (steps["layernorm"]["mean"], steps["layernorm"]["root"], steps["rmsnorm"]["root"]) == (3, 4, 5)
    assert (found["shift"], found["scale"], read()["eps"]) == (1, 2, 1e-6)


def test_json_has_a_list_for_values_a_number_for_the_row_and_null_for_what_is_not_computed() -> None:
    norms = read("1", "2")["norms"]

    assert list(norms) == ["layernorm", "rmsnorm"]
    assert all(list(norm["steps"]) == [str(name) for name in StepName] for norm in norms.values())
    assert {name for name, found in norms["rmsnorm"]["steps"].items() if found is None} == {
        "mean",
        "centred",
        "plus_bias",
    }
    kinds = {name: type(found).__name__ for name, found in norms["layernorm"]["steps"].items()}
    assert {name for name, kind in kinds.items() if kind == "float"} == {
        *("mean", "mean_of_squares", "plus_eps", "root")
    }
    assert set(kinds.values()) == {"float", "list"}
    assert [norm["parameters"] for norm in norms.values()] == [4, 2]
    assert [len(norm["reductions"]) for norm in norms.values()] == [2, 1]


def test_one_divided_by_nothing_is_null_in_json_and_said_elsewhere() -> None:
    words = ("3", "3", "--eps", "0")

    assert read(*words)["norms"]["layernorm"]["output"] == [None, None]
    assert read(*words)["norms"]["layernorm"]["scaled"]["from_invariance"] is None
    assert "NaN is 0 ÷ 0" in normbench("explain", *words).out
    assert "NaN is 0 ÷ 0" in normbench("explain", *words, "--markdown").out
    assert "NaN" not in normbench("explain", "3", "3").out


def test_markdown_has_the_numbers_of_the_table() -> None:
    table, markdown = (normbench("explain", "1", "2", "3", *more) for more in ((), ("--markdown",)))

    assert (markdown.code, markdown.err) == (0, "")
    assert markdown.out.startswith("## LayerNorm and RMSNorm of 1, 2, 3\n")
    assert numbers(markdown.out) == numbers(table.out)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["one"], "X: 'one' is not a number"),
        (["1", "nan"], "X: 'nan' is not a finite number"),
        (["-inf"], "X: '-inf' is not a finite number"),
        (["1e51"], "X: '1e51' is out of range"),
        ([*map(str, range(33))], "X: 33 numbers"),
        ([",".join(map(str, range(33)))], "X: 33 numbers"),
        ([""], "X: '' holds no value"),
        ([","], "X: ',' holds no value"),
        (["1", "--shift", "a"], "--shift: 'a' is not a number"),
        (["1", "--shift", "--json"], "--shift: a value is missing"),
        (["1", "--shift"], "--shift: a value is missing"),
        (["--eps", "--", "1"], "--eps: a value is missing"),
        (["--html"], "--html: a value is missing"),
        (["--html", "--json"], "--html: a value is missing"),
        (["--html", "--", "1"], "--html: a value is missing"),
        (["1_000"], "X: '1_000' is not a number"),
        (["1", "--shift", "\u0663"], "--shift: '\u0663' is not a number"),
        (["1", "--eps", "1e-400"], "--eps: '1e-400' is so near to 0 that float64 can't hold it"),
        (["1", "--scale", "-1e999"], "--scale: '-1e999' is not a finite number"),
        (["1", "--eps", "-1e-6"], "--eps: '-1e-6' is out of range"),
        (["1", "--eps", "nan"], "--eps: 'nan' is not a finite number"),
        (["1", "2", "--gain", "1", "2", "3"], "--gain: 3 numbers for 2 of x"),
        (["--bias", "1", "2", "3"], "--bias: 3 numbers for 6 of x"),
        (["1", "--gain", "--json"], "--gain: a value is missing"),
        (["1", "--gain", "-inf"], "--gain: '-inf' is not a finite number"),
        (["1", "--markdown", "--json"], "--markdown and --json are two ways to print"),
        (["1", "--html", "."], "--html .: is a folder"),
        (["1", "--html", "no/where.html"], "--html no/where.html: there is no folder no"),
        (["1", "--html", "x" * 300], f"--html {'x' * 300}: can't be written: File name too long"),
    ],
)
def test_what_cannot_be_worked_out_is_refused_with_what_is_allowed(
    empty_folder: Path, words: list[str], said: str
) -> None:
    assert f"error: {said}" in refused(*words)
    assert list(empty_folder.iterdir()) == []


def test_where_values_may_have_gone_to_an_option_the_hint_says_how_to_part_them() -> None:
    assert "put -- between" in refused("--gain", "1", "2", "3")


def test_how_many_numbers_are_allowed_is_said_once() -> None:
    assert "hint: allowed: 1; where" in refused("1", "--gain", "2", "3")


def test_an_option_that_does_not_exist_is_no_number() -> None:
    done = normbench("explain", "1", "-x")

    assert done.code == 2
    assert "-x" in done.err


def test_the_page_is_written_beside_the_table_and_named_on_stderr(empty_folder: Path) -> None:
    done = normbench("explain", "1", "2", "3", "--html", "norms.html")
    page = (empty_folder / "norms.html").read_text(encoding="utf-8")

    assert (done.code, done.err) == (0, "written: norms.html\n")
    assert done.out == normbench("explain", "1", "2", "3").out
    assert numbers(re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)) == numbers(done.out)
    assert list(empty_folder.iterdir()) == [empty_folder / "norms.html"]


def test_the_page_is_quiet_and_goes_with_json(empty_folder: Path) -> None:
    done = normbench("explain", "1", "--html", "norms.html", "--json", "--quiet")

    assert done.err == ""
    assert json.loads(done.out)["values"] == [1]
    assert (empty_folder / "norms.html").exists()


def test_a_page_is_replaced_by_another_and_nothing_else_is(empty_folder: Path) -> None:
    for row in (["1", "2"], ["7", "8"]):
        assert normbench("explain", *row, "--html", "norms.html").code == 0
    assert "LayerNorm and RMSNorm of 7, 8" in (empty_folder / "norms.html").read_text(encoding="utf-8")

    notes = empty_folder / "notes.html"
    notes.write_text("<p>mine</p>", encoding="utf-8")
    assert "exists, and is no page of this command" in refused("1", "--html", "notes.html")
    assert notes.read_text(encoding="utf-8") == "<p>mine</p>"


def test_a_link_to_a_page_stays_one_and_a_link_to_anything_else_is_not_followed(empty_folder: Path) -> None:
    for name, target in {
        "page": "norms.html",
        "notes": "notes.html",
        "ring": "ring",
        "away": "no/where.html",
    }.items():
        (empty_folder / name).symlink_to(target)
    (empty_folder / "notes.html").write_text("mine", encoding="utf-8")

    for row in (["1", "2"], ["7", "8"]):
        assert normbench("explain", *row, "--html", "page").code == 0
    assert (empty_folder / "page").is_symlink()
    assert "LayerNorm and RMSNorm of 7, 8" in (empty_folder / "norms.html").read_text(encoding="utf-8")
    assert "--html notes: exists, and is no page of this command" in refused("1", "--html", "notes")
    assert "--html ring: can't be written" in refused("1", "--html", "ring")
    assert "/no" in refused("1", "--html", "away").partition("--html away: there is no folder ")[2]


@pytest.mark.parametrize("name", ["pipe", "/dev/null", "/dev/stdout"])
def test_what_is_no_file_is_not_replaced_and_not_waited_for(empty_folder: Path, name: str) -> None:
    os.mkfifo(empty_folder / "pipe")

    assert "exists, and is no page of this command" in refused("1", "--html", name)


def test_a_disk_that_takes_nothing_is_named() -> None:
    done = piped({}, "explain", "1", "--html", "/proc/norms.html", encoding="utf-8")

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: /proc/norms.html: can't be written: ")


@pytest.mark.parametrize("more", [[], ["--json"], ["--markdown"], ["--html", "norms.html"]])
def test_nothing_heavy_is_imported_that_is_not_needed(empty_folder: Path, more: list[str]) -> None:
    command = [sys.executable, "-c", IMPORTS, "explain", "1", "2", *more]
    done = subprocess.run(command, cwd=empty_folder, capture_output=True, text=True, check=True, timeout=60)

    assert "torch" not in done.stdout.splitlines()[-1].split()
    if not more:
        assert done.stdout.splitlines()[-1] == ""


@pytest.mark.parametrize("changes", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_on_a_terminal_of_forty_columns_lines_fit_and_numbers_are_whole(
    changes: dict[str, str],
) -> None:
    words = ("explain", "-1", "2", "-3.5", "1e9")
    code, sent = on_terminal(changes, 40, *words)
    plain = SEQUENCE.sub("", sent)

    assert code == 0
    assert max(map(len, plain.splitlines())) <= 40
    assert numbers(plain) == numbers(normbench(*words).out)
    if "NO_COLOR" in changes:
        assert {parts for parts, _ in SEQUENCE.findall(sent)} <= {"0", "1", "2"}
    if "TERM" in changes:
        assert plain == sent


def test_an_encoding_that_lacks_characters_gets_others() -> None:
    done = piped({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "explain", "1", "2", "3")
    text = done.stdout.decode("ascii")

    assert (done.returncode, done.stderr) == (0, b"")
    assert "x x 2" in text
    assert "mean^2" in text
    assert "\\" not in text
    assert numbers(text) == numbers(normbench("explain", "1", "2", "3").out)


def test_streams_that_are_closed_or_full_are_answered_as_everywhere(empty_folder: Path) -> None:
    closed = in_shell('"$@" >&- 2>&-', "explain", "1", "--html", empty_folder / "norms.html")
    full = in_shell('"$@" >/dev/full', "explain", "1")

    assert closed.returncode == 0
    assert (empty_folder / "norms.html").exists()
    assert full.returncode == 3
    assert b"stdout can't be written" in full.stderr


@pytest.mark.parametrize("line", re.findall(r"^ +normbench (explain .*)", HELP, re.MULTILINE))
def test_the_examples_in_the_help_work(line: str) -> None:
    assert HELP.count("  normbench explain") == 5
    assert normbench(*line.split()).code == 0
