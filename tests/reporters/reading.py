"""Reading a report in markdown as GitHub does, and a page as a browser does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

from markdown_it import MarkdownIt

from normbench.legible import visible

GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])
"""CommonMark with what GitHub adds to it."""

NO_WIDTH = "\u200b"
"""What parts the texts that GitHub would make a mention, a reference or an emoji of."""


def tables(text: str) -> Iterator[list[list[str]]]:
    """The words in the cells of every table as GitHub reads it; markup in a cell is an error."""
    table: list[list[str]] = []
    before = ""
    for token in GITHUB.parse(text):
        if token.type == "tr_open":
            table.append([])
        elif before in ("th_open", "td_open"):
            children = token.children or []
            assert {child.type for child in children} <= {"text", "text_special"}, token.content
            table[-1].append("".join(child.content for child in children).replace(NO_WIDTH, ""))
        elif token.type == "table_close":
            yield table
            table = []
        before = token.type


def assert_tables_keep_their_shape(text: str) -> None:
    """GitHub drops the cells that a row has too many, so they are counted in the text: pipes without a backslash."""
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        counts = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in block.splitlines()]
        assert set(counts) == {counts[0]}, block


def table_after(text: str, heading: str) -> list[list[str]]:
    """The first table below a heading."""
    return next(tables(text[text.index(f"## {heading}\n") :]))


def mermaid_fences(text: str) -> list[str]:
    """What GitHub hands to mermaid."""
    found = MarkdownIt("commonmark").parse(text)
    return [token.content for token in found if token.type == "fence" and token.info == "mermaid"]


def flat(text: str) -> str:
    """A text as it is shown in one line."""
    return " ".join(visible(text).split())


def environment(text: str) -> list[list[str]]:
    """The rows of what the run was made on."""
    return next(tables(text[text.index("<summary>On what</summary>") :]))


class Page(HTMLParser):
    """What a browser makes of a page: elements with the names of their attributes, and text."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "span":  # how many names are kept whole depends on the text
            self.elements.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(page: str) -> Page:
    """A page, read."""
    found = Page()
    found.feed(page)
    found.close()
    return found
