from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from normbench.reporters import plots
from normbench.reporters.plots.svg import VARIABLES
from tests.reporters.plots.looking import draw
from tests.runs import NAMES, TIMES, Times, make_device, make_plan, make_run, profiled_run

SVG = draw(profiled_run())
NAME = "time-forward.svg"
ODD = ["<script>alert(1)</script>", "\"&'", "$x$", "[bold]", "</svg>", "url(#x)", "]]>", "a<!--b"]


def inline(name: str = NAME, prefix: str = "p1") -> str:
    return plots.inline_svg(SVG[name], prefix)


def ids(fragment: str) -> list[str]:
    return [found for element in ET.fromstring(fragment).iter() if (found := element.get("id"))]


def references(fragment: str) -> list[str]:
    return re.findall(r'(?:href="|url\()([^")]*)', fragment)


class Tags(HTMLParser):
    """The tags and texts that an HTML reader sees."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 (the base class's name)
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def seen(fragment: str) -> Tags:
    tags = Tags()
    tags.feed(fragment)
    tags.close()
    return tags


@pytest.mark.parametrize("name", [name for name in SVG if name.endswith("svg")])
def test_every_picture_becomes_a_fragment_that_refers_to_nothing_but_itself(name: str) -> None:
    fragment = inline(name)

    assert fragment.startswith("<svg ")
    assert set(references(fragment)) == {f"#{i}" for i in ids(fragment) if f"#{i}" in references(fragment)}
    assert references(fragment)
    assert all(i.startswith("p1-") for i in ids(fragment))
    assert re.findall(r"https?://[^\s\"']*", fragment) == ["http://www.w3.org/2000/svg"]
    assert seen(fragment).tags <= {"svg", "title", "defs", "g", "path", "use", "text", "clippath", "rect"}


def test_two_pictures_of_a_page_share_no_id() -> None:
    both = ids(inline(prefix="p1")) + ids(inline(prefix="p2"))

    assert len(both) == len(set(both)) > 2


def test_nothing_of_a_file_of_its_own_is_left() -> None:
    fragment = inline()

    for word in ("<?xml", "<!DOCTYPE", "<metadata", "<style", "xlink", "rdf:", "matplotlib.org"):
        assert word in SVG[NAME].decode()
        assert word not in fragment


def test_it_is_as_wide_as_there_is_room_up_to_its_natural_size() -> None:
    natural = ET.fromstring(SVG[NAME].decode()).get("width")
    root = ET.fromstring(inline())

    assert (root.get("width"), root.get("height")) == ("100%", None)
    assert (root.get("style") or "").startswith(f"max-width: {natural}; height: auto;")
    assert len((root.get("viewBox") or "").split()) == 4


def test_it_is_an_image_with_a_title_for_those_who_cannot_see_it() -> None:
    root = ET.fromstring(inline())
    title = root[0]

    assert (root.get("role"), root.get("aria-labelledby")) == ("img", title.get("id"))
    assert title.text == "Time of one call - forward, 32 rows, warm cache - Some CPU"


@pytest.mark.parametrize("name", [name for name in SVG if name.endswith("svg")])
def test_it_follows_light_and_dark(name: str) -> None:
    fragment = inline(name)
    root = ET.fromstring(fragment)
    colours = set(re.findall(r"#[0-9a-f]{6}", re.sub(r"var\([^)]*\)", "", fragment)))

    assert root.get("fill") == "currentColor"
    assert "stroke: currentColor" in fragment
    assert not colours & {"#ffffff", "#000000", *VARIABLES.values()}
    assert colours  # those of the implementations or ops stay


def test_greys_are_variables_of_the_page_that_have_their_own_colour_unless_set() -> None:
    every = "".join(inline(name) for name in SVG if name.endswith("svg"))

    for name in ("--grid", "--floor", "--muted"):
        assert f"var({name}, {VARIABLES[name]})" in every


@pytest.mark.parametrize("odd", ODD)
def test_names_are_text_and_never_markup(odd: str) -> None:
    name = f"{odd}-rmsnorm"
    times: Times = {**TIMES, name: 3e-6}
    run = make_run(make_plan(implementations=(*NAMES, name)), times, device=make_device(name=odd))
    fragment = plots.inline_svg(draw(run)[NAME], "p1")
    page = seen(fragment)

    assert name in page.texts
    assert "script" not in page.tags
    assert fragment.count("</svg>") == 1
    assert "<!--" not in fragment


@pytest.mark.parametrize("prefix", ["", "1a", "a b", 'a"', "a#b", "<"])
def test_a_prefix_that_can_be_in_no_id_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="can't begin an id"):
        inline(prefix=prefix)


@pytest.mark.parametrize(
    "outside",
    [
        b'<use xlink:href="http://example.org/x.svg#a"/>',
        b'<image href="file:///etc/passwd"/>',
        b'<path style="fill: url(http://example.org/#a)"/>',
        b"<path clip-path=\"url('//example.org/#a')\"/>",
    ],
)
def test_a_file_that_refers_to_something_outside_is_refused(outside: bytes) -> None:
    spoiled = SVG[NAME].replace(b"</svg>", outside + b"</svg>")

    with pytest.raises(ValueError, match="is outside the picture"):
        plots.inline_svg(spoiled, "p1")


def test_a_script_in_a_file_does_not_reach_the_page() -> None:
    spoiled = SVG[NAME].replace(b"</svg>", b'<script>alert(1)</script><g onclick="alert(2)"/></svg>')

    assert "alert" not in plots.inline_svg(spoiled, "p1")
