from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normbench.implementations import ALL
from normbench.records import ImplementationInfo, Op
from normbench.reporters import colours
from normbench.reporters.colours import BROUGHT, BUILT_IN, FLOOR
from tests.runs import make_info

BUILT_INS = [implementation.name for implementation in ALL]


def of(*names: str) -> dict[str, colours.Colour]:
    return colours.of([make_info(name) for name in names])


def test_every_built_in_implementation_has_a_colour_of_its_own() -> None:
    assert {i.name for i in ALL if i.op is not Op.COPY} == set(BUILT_IN)
    everything = [*BUILT_IN.values(), *BROUGHT, FLOOR]
    assert (
        len({colour.hex for colour in everything}) == len({colour.word for colour in everything}) == len(everything)
    )


@given(st.sets(st.sampled_from(BUILT_INS)), st.lists(st.sampled_from("abcdefgh"), unique=True))
def test_a_built_in_has_the_same_colour_whoever_else_is_in_the_run(names: set[str], brought: list[str]) -> None:
    found = of(*brought, *sorted(names))

    assert list(found) == [*brought, *sorted(names)]
    for name in names:
        assert found[name] == BUILT_IN.get(name, FLOOR)


@pytest.mark.parametrize("count", range(1, 5))
def test_names_that_users_bring_share_no_colour_with_anybody_while_there_are_free_ones(count: int) -> None:
    found = of(*BUILT_INS, *(f"mine{i}-rmsnorm" for i in range(count)))

    assert len(set(found.values())) == len(found)


def test_where_built_ins_are_left_out_there_are_more_colours_for_others() -> None:
    brought = [f"mine{i}-rmsnorm" for i in range(9)]
    found = of("copy", "nn-layernorm", *brought)

    assert len(set(found.values())) == len(found)


def test_with_more_names_than_colours_they_come_again_in_order_and_never_a_built_ins() -> None:
    brought = [f"mine{i}-rmsnorm" for i in range(9)]
    found = of(*BUILT_INS, *brought)

    assert [found[name] for name in brought[:4]] == [found[name] for name in brought[4:8]] == list(BROUGHT)
    assert not {found[name] for name in brought} & {*BUILT_IN.values(), FLOOR}


def test_a_floor_is_grey_whatever_it_is_called() -> None:
    floor = ImplementationInfo(name="mine-copy", op=Op.COPY, provider="mine", summary="a floor")

    assert colours.of([floor]) == {"mine-copy": FLOOR}


def linear(colour: str) -> tuple[float, float, float]:
    """Red, green and blue as amounts of light (sRGB, IEC 61966-2-1)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return red, green, blue


def contrast(one: str, other: str) -> float:
    """Of WCAG 2: from 1 to 21."""
    low, high = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05 for r, g, b in map(linear, (one, other)))
    return high / low


@pytest.mark.parametrize("page", ["#ffffff", "#0d1117"])
def test_built_ins_and_the_floor_show_on_a_light_and_on_a_dark_page(page: str) -> None:
    for colour in (*BUILT_IN.values(), FLOOR):
        assert contrast(colour.hex, page) > 2.2


DEUTERANOPIA = (
    (0.367322, 0.860646, -0.227968),
    (0.280085, 0.672501, 0.047413),
    (-0.011820, 0.042940, 0.968881),
)
"""Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB."""


def seen(colour: str) -> tuple[float, ...]:
    """A colour as the commonest colour-blind reader sees it, in lightness-like amounts."""
    light = linear(colour)
    mixed = (sum(k * c for k, c in zip(row, light, strict=True)) for row in DEUTERANOPIA)
    return tuple(max(c, 0.0) ** (1 / 2.4) for c in mixed)


def test_built_ins_are_told_apart_by_colour_blind_readers() -> None:
    for one, other in combinations(BUILT_IN.values(), 2):
        assert sum((a - b) ** 2 for a, b in zip(seen(one.hex), seen(other.hex), strict=True)) ** 0.5 > 0.12
    confused = ("#CC3311", "#7A7A00")  # a red and an olive of the same lightness
    assert sum((a - b) ** 2 for a, b in zip(*map(seen, confused), strict=True)) ** 0.5 < 0.12


def test_colours_need_neither_torch_nor_matplotlib() -> None:
    code = "import sys, normbench.reporters.colours; print({'torch', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"
