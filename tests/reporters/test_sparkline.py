from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from normbench import spread
from normbench.reporters import sparkline
from normbench.spread import Spread


def of(*seconds: float) -> Spread:
    return spread.of_seconds(np.array(seconds))


def bars(picture: ET.Element, name: str) -> list[tuple[float, float]]:
    """The place and the height of each bar of a class."""
    path = next(element for element in picture if element.get("class") == name)
    return [(float(x), float(h)) for x, h in re.findall(r"M(\d+) 18v-(\d+)", path.get("d") or "")]


def drawn(found: Spread) -> ET.Element:
    return ET.fromstring(str(sparkline.draw(found)))


@given(st.lists(st.floats(min_value=1e-6, max_value=1e-3), min_size=1, max_size=80))
def test_every_bin_with_a_sample_has_a_bar_inside_the_picture(seconds: list[float]) -> None:
    found = of(*seconds)
    picture = drawn(found)
    every = bars(picture, "bars") + bars(picture, "beyond")

    assert len(every) == sum(count > 0 for count in found.counts)
    assert all(0 <= x < float(picture.get("width") or 0) and 1 <= height <= 18 for x, height in every)
    assert max(height for _, height in every) == 18


def test_a_single_sample_among_many_is_seen() -> None:
    assert min(height for _, height in bars(drawn(of(*[1.0] * 1000, 1.2)), "bars")) == 1


def test_what_lies_far_away_has_another_colour_at_the_ends() -> None:
    picture = drawn(of(1.0, 1.0, 1.0, 0.1, 9.0, 9.0))

    assert [x for x, _ in bars(picture, "bars")] == [42]
    assert bars(picture, "beyond") == [(0, 6), (84, 12)]


def test_without_samples_far_away_nothing_is_said_of_them() -> None:
    assert sparkline.describe(of(1e-6, 1e-6)) == ("2 samples: median 1.00 µs, nine tenths from 1.00 µs to 1.00 µs")


def test_the_picture_says_in_words_what_it_shows() -> None:
    found = of(1e-6, 1e-6, 1e-6, 1e-5)

    assert drawn(found).findtext("title") == sparkline.describe(found)
    assert sparkline.describe(found).startswith("4 samples: median 1.00 µs, nine tenths from 1.00 µs to ")
    assert sparkline.describe(found).endswith("; 1 farther from it than a factor of 1.5")
