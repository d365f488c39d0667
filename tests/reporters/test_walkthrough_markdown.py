"""An example as markdown: the same numbers as everywhere, in tables that GitHub draws."""

from __future__ import annotations

import re

from normbench.reporters.walkthrough import explained
from normbench.reporters.walkthrough_markdown import render
from normbench.walkthrough import Walkthrough
from tests.reporters.examples import PLAIN, ROUND, UNDEFINED
from tests.reporters.test_walkthrough_table import numbers, shown


def tables(walk: Walkthrough) -> list[list[list[str]]]:
    """The tables, as rows of fields."""
    found = re.findall(r"(?:^\|.*\|\n)+", render(explained(walk)), re.MULTILINE)
    return [[line.strip("|").split("|") for line in table.splitlines()] for table in found]


def test_all_rows_of_a_table_have_as_many_fields_as_its_head() -> None:
    for walk in (PLAIN, ROUND, UNDEFINED):
        steps, effects, needs = tables(walk)
        assert [len(table) for table in (steps, effects, needs)] == [12, 8, 4]
        for table in (steps, effects, needs):
            assert {len(row) for row in table} == {len(table[0])}


def test_numbers_are_those_of_the_terminal() -> None:
    assert numbers(render(explained(ROUND))) == numbers(shown(ROUND))


def test_a_step_that_rmsnorm_does_not_have_is_not_computed() -> None:
    steps = tables(PLAIN)[0]

    assert [row[1].strip() for row in steps if row[3].strip() == "not computed"] == ["mean", "centred", "+ bias"]
    assert [row[2] for row in steps if "not computed" in row[2]] == []


def test_there_are_no_empty_lines_in_a_row_and_the_notes_are_a_list() -> None:
    text = render(explained(UNDEFINED))

    assert "\n\n\n" not in text
    assert text.startswith("## LayerNorm and RMSNorm of 3, 3\n")
    assert len(re.findall(r"^- .*\.$", text, re.MULTILINE)) == 6
