from __future__ import annotations

import pytest

from normbench.records import Property
from normbench.records.properties import ROUNDING


@pytest.mark.parametrize("one", list(Property))
def test_every_property_says_what_it_asks_and_what_it_allows(one: Property) -> None:
    assert one.asks
    assert one.allows
    assert not one.asks.endswith(".")
    assert not one.allows.endswith(".")


@pytest.mark.parametrize("one", list(Property))
def test_a_property_s_name_is_words_with_hyphens(one: Property) -> None:
    assert str(one) == one.value
    assert all(word.isalnum() for word in one.value.split("-"))
    assert one.value == one.value.lower()


def test_no_two_ask_the_same() -> None:
    assert len({one.asks for one in Property}) == len(Property)


def test_what_rounding_means_is_said_with_the_figures_of_the_tolerance() -> None:
    from normbench import reference

    assert f"{reference._ROUNDINGS_FORWARD:.0f} roundings" in ROUNDING
    assert f"and {reference._ROUNDINGS_BACKWARD:.0f} in a gradient" in ROUNDING
    assert "8·(1 + √(N/64))·2⁻²⁴" in ROUNDING
    assert reference.accumulation(64 * 9) == 8 * (1 + 3)
