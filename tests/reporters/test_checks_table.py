"""A check on a terminal: whole in every width, with and without colours."""

from __future__ import annotations

import io
import re

import pytest

from normbench import grades
from normbench.implementations import names_of
from normbench.records import CheckRun, DType, Operation, Property
from normbench.reporters import checks_table
from normbench.reporters.terminal import console
from tests.checked import ALLOWED, NAMES, PROPERTIES, checks_of, make_check_run


class Terminal(io.StringIO):
    """Text that is shown to somebody."""

    def isatty(self) -> bool:
        return True


def shown(run: CheckRun, file: io.StringIO | None = None) -> str:
    file = file or io.StringIO()
    checks_table.show(grades.of_run(run), console(file))
    return file.getvalue()


def on_terminal(monkeypatch: pytest.MonkeyPatch, run: CheckRun, columns: int, term: str = "dumb") -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return shown(run, Terminal())


def test_the_grades_stand_first_and_the_answer_last() -> None:
    lines = [line.rstrip() for line in shown(make_check_run()).splitlines()]

    assert lines[0] == "Largest error in ulp, per property and implementation"
    assert lines[2:8] == [
        " property               eager-layernorm  nn-rmsnorm  naive-rmsnorm",
        f" {'─' * 65}",
        " normal-values          coarse 40        ok 0.62     ok 0.62",
        " fp16-squares-overflow  ok 0.50          ok 0.50     FAIL fp16",
        " zero-mean              ok 0.50          -           -",
        " determinism            ok               ok          ok",
    ]
    assert lines[-7:] == [
        "naive-rmsnorm fails fp16-squares-overflow, fp16, all widths:",
        "  dx[0, 2] is 0, not 1.3 (100% of the elements are wrong); inf ulp (inf), inf times what is allowed, "
        "at 5×3 fp16",
        "eager-layernorm is right only coarsely in normal-values (fp16, all widths: dgain)",
        "Some CPU, torch 2.13.0: fp32 and fp16, widths 3 and 64, eps 1e-06, seed 0; took 1 min 15 s.",
        "",
        "3 implementations, 4 properties: 1 fails something: naive-rmsnorm (fp16-squares-overflow).",
        "Of 12 pairs of implementation and property 9 pass (1 only coarsely), 1 fail, 2 can't be asked; exit code 1: "
        "a property that is not allowed to fail does.",
    ]


def test_a_failure_that_is_allowed_says_so() -> None:
    assert "naive-rmsnorm fails fp16-squares-overflow (allowed), fp16, all widths:" in shown(
        make_check_run(allowed=ALLOWED)
    )


def test_what_was_not_come_to_has_its_mark_and_is_named() -> None:
    text = shown(make_check_run(checks_of(NAMES[0]), complete=False))

    assert re.search(r"normal-values +coarse [\d.]+ +\? +\?", text)
    assert "not come to: nn-rmsnorm (4 properties)" in text


@pytest.mark.parametrize("columns", [24, 40, 60, 80, 200])
def test_every_word_is_whole_in_every_width_and_a_name_goes_on_after_its_hyphen_at_most(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    text = on_terminal(monkeypatch, make_check_run(), columns)
    flat = re.sub(r"\s+", "", text)

    assert all(len(line.rstrip()) <= columns for line in text.splitlines() if len(line.split()) > 1)
    assert all(str(asked) in flat for asked in PROPERTIES)
    assert all(part in flat for name in NAMES for part in name.split("-"))
    assert "FAILfp16" in flat
    assert "1fails" in flat


def test_all_properties_of_all_implementations_take_two_tables_of_80_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_check_run().header.plan
    every = type(plan)(**{**vars(plan), "properties": tuple(Property), "dtypes": tuple(DType)})
    names = (*names_of(Operation.NORM)[1:], "naive-rmsnorm")
    text = on_terminal(monkeypatch, make_check_run([], names=names, plan=every), 80)

    assert text.count("finite-differences") == 2
    assert re.search(r"^ +eager- +eager- +nn-", text, re.MULTILINE)


def test_on_a_terminal_failures_are_red_and_without_colours_the_words_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coloured = on_terminal(monkeypatch, make_check_run(), 100, "xterm")
    plain = on_terminal(monkeypatch, make_check_run(), 100)

    assert re.search(r"\x1b\[31mFAIL fp16", coloured)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain
