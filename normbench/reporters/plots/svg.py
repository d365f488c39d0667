"""An SVG file of a picture turned into a fragment for the inside of an HTML page, which follows light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from normbench.reporters import colours
from normbench.reporters.plots.styles import GRID, INK, MUTED, REST

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "{http://www.w3.org/1999/xlink}"
_PAPER = "#ffffff"
_FONTS = "'DejaVu Sans', Verdana, sans-serif"
"""Said once, not with every text; names were measured in the first, and most others are narrower."""

_DROPPED = ("metadata", "style", "script")

VARIABLES: dict[str, str] = {"--grid": GRID, "--floor": colours.FLOOR.hex, "--muted": MUTED, "--rest": REST}
"""What a page may set: grid lines, the floor and the margin, notes and reference lines, ops that share a colour."""

_COLOURS = {value: f"var({name}, {value})" for name, value in VARIABLES.items()} | {INK: "currentColor"}
_REFERENCE = re.compile(r"url\(\s*['\"]?(.*?)['\"]?\s*\)")
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def inline_svg(svg: bytes, prefix: str) -> str:
    """One of our SVG files as an ``<svg>`` element that can stand in an HTML page, beside others.

    It is as wide as there is room, up to its natural size. Text, axes and everything black take the colour of
    the text around it, greys the page's variables (:data:`VARIABLES`), the background is the page's. It refers to
    nothing outside itself.

    Args:
        svg: The file.
        prefix: Goes before every id, so that two pictures of a page do not share one: a letter, then letters,
            digits, ``-`` and ``_``.

    Raises:
        ValueError: The prefix is none, or the file refers to something outside itself.
    """
    if not _PREFIX.fullmatch(prefix):
        raise ValueError(f"{prefix!r} can't begin an id")
    root = ET.fromstring(svg.decode())
    for element in list(root.iter()):
        for child in [child for child in element if _local(child) in _DROPPED]:
            element.remove(child)
    for element in root.iter():
        element.tag = _local(element)
        element.attrib = dict(_attributes(element, prefix))
        if element.tag not in ("text", "title"):  # which hold nothing but what is read
            element.text = None
        element.tail = None
    width = root.attrib.pop("width", "100%")
    root.attrib.pop("height", None)
    root.attrib.pop("version", None)
    title = root.find("title")
    if title is None:
        title = ET.Element("title")
        title.text = "a picture of normbench"
    else:
        root.remove(title)
    root.insert(0, title)
    title.set("id", f"{prefix}-title")
    root.attrib |= {
        "xmlns": _SVG,
        "width": "100%",
        "role": "img",
        "aria-labelledby": f"{prefix}-title",
        "fill": "currentColor",  # what says nothing of its colour is black
        # The file says the last two in a style sheet, which would reach the whole page.
        "style": f"max-width: {width}; height: auto; font-family: {_FONTS}; "
        "stroke-linejoin: round; stroke-linecap: butt",
    }
    return ET.tostring(root, encoding="unicode", short_empty_elements=True)


def _local(element: ET.Element) -> str:
    return element.tag.removeprefix(f"{{{_SVG}}}")


def _attributes(element: ET.Element, prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in element.attrib.items():
        if name == "id":
            yield name, f"{prefix}-{value}"
        elif name in ("href", f"{_XLINK}href"):
            yield "href", f"#{_own(value, prefix)}"
        elif name == "style":
            yield name, "; ".join(_declarations(value, prefix))
        elif not name.startswith(("{", "on")):
            yield name, _value(name, value, prefix)


def _declarations(style: str, prefix: str) -> Iterator[str]:
    for declaration in filter(None, (part.strip() for part in style.split(";"))):
        name, value = (word.strip() for word in declaration.split(":", 1))
        if name != "font-family":
            yield f"{name}: {_value(name, value, prefix)}"


def _value(name: str, value: str, prefix: str) -> str:
    """A property's value: colours that follow the page, references to what has the prefix."""
    if name in ("fill", "stroke"):
        if value.lower() == _PAPER:
            return "none"
        value = _COLOURS.get(value.lower(), value)
    return _REFERENCE.sub(lambda found: f"url(#{_own(found[1], prefix)})", value)


def _own(reference: str, prefix: str) -> str:
    """The name, with its prefix, of what is referred to."""
    if not reference.startswith("#"):
        raise ValueError(f"{reference!r} is outside the picture")
    return f"{prefix}-{reference[1:]}"
