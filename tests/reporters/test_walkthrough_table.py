"""An example on the terminal: whole in every width."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from normbench.reporters.terminal import console
from normbench.reporters.walkthrough import SPEED, explained
from normbench.reporters.walkthrough_table import show
from normbench.walkthrough import Walkthrough
from tests.reporters.examples import PLAIN, ROUND, UNDEFINED, walked


def shown(walk: Walkthrough) -> str:
    out = io.StringIO()
    show(explained(walk), console(out))
    return out.getvalue()


def numbers(text: str) -> list[str]:
    return sorted(re.findall(r"-?\d+\.\d{6}(?:e[+-]\d+)?", text))


def test_the_steps_of_both_norms_stand_side_by_side() -> None:
    lines = [re.split(r"\s{2,}", line.strip()) for line in shown(PLAIN).splitlines()]

    assert ["2 mean", "2.000000", "not computed"] in lines
    assert ["3 centred", "-1.000000", "0.000000", "1.000000", "not computed"] in lines
    assert ["7 root", "0.816497", "2.160247"] in lines
    assert ["9 × gain", "-1.224744", "0.000000", "1.224744", "0.462910", "0.925820", "1.388730"] in lines
    assert ["10 + bias", "-1.224744", "0.000000", "1.224744", "not computed"] in lines
    assert ["RMSNorm", "x + 1", "0.643267", "0.964901", "1.286535", "0.180357"] in lines


def test_numbers_of_a_norm_stand_beneath_each_other() -> None:
    steps = shown(ROUND).partition("What a shift")[0].splitlines()
    points = [[m.start() for m in re.finditer(r"\.", line)] for line in steps if re.match(r"\s*(1|4|8) ", line)]

    assert len(points) == 3
    assert points[0] == points[1] == points[2]


def test_what_has_no_number_is_said_so_and_explained() -> None:
    text = shown(UNDEFINED)

    assert re.search(r"LayerNorm +x × 0 +NaN +NaN +NaN +-", text)
    assert "NaN is 0 ÷ 0" in text


def test_the_last_sentence_is_on_speed() -> None:
    assert shown(PLAIN).endswith(f"{SPEED}.\n")


@pytest.mark.parametrize("width", [20, 30, 40, 60, 80, 120, 200])
@pytest.mark.parametrize("walk", [PLAIN, ROUND, walked(*(0.1 * n * 10**9 for n in range(1, 33)))])
def test_in_any_width_every_number_is_whole(walk: Walkthrough, width: int) -> None:
    out = io.StringIO()
    narrow = Console(file=out, width=width, color_system=None)
    show(explained(walk), narrow)

    # In a narrow one each norm's heads are repeated, never a number.
    assert numbers(out.getvalue()) == numbers(shown(walk))
    assert max(map(len, out.getvalue().splitlines())) <= max(width, 24)
