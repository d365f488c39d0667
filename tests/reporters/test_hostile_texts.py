"""Every text of a stranger's run or check in every output: as words, whole, and as nothing else."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from markdown_it.token import Token

from normbench import grades
from normbench.changes import Side, between
from normbench.records import CheckRun, Run
from normbench.reporters import (
    changes_markdown,
    changes_table,
    checks_markdown,
    checks_table,
    console,
    document,
    html,
    markdown,
    merged,
    plots,
)
from normbench.reporters.changes import Report
from normbench.reporters.entries import Source
from tests.browser import mermaid
from tests.hostile_texts import CONTROL, MARKUP, PLAIN, TEXTS, hostile_check, hostile_run
from tests.reporters.reading import GITHUB, NO_WIDTH, flat, mermaid_fences, parsed
from tests.reporters.test_mermaid_drawn import lines
from tests.runs import make_device
from tests.test_changes import make_side

if TYPE_CHECKING:
    from playwright.sync_api import Browser

RUNS = {name: hostile_run(text) for name, text in TEXTS.items()}
HARMLESS = hostile_run(PLAIN)
CHECKS = {name: hostile_check(text) for name, text in TEXTS.items()}
HARMLESS_CHECK = hostile_check(PLAIN)
every_text = pytest.mark.parametrize("name", TEXTS)
DRAWN = ("mathematics", "an element", "a private name", "a colour", "another direction", "lines", "half a character")
ELEMENTS_OF_TEXT = ("text", "text_special", "softbreak")


def compared(run: Run) -> Report:
    """A run against another of other names, so that there is much to say."""
    side = make_side()
    found = between(side, Side(run=run, logs={}))
    return Report(found=found, gate=None, base="base", head=run.header.device.name)


def summary(run: Run, file: io.StringIO | None = None) -> str:
    file = file or io.StringIO()
    console.show(run, console.console(file))
    return file.getvalue()


def summary_of_several(run: Run) -> str:
    file = io.StringIO()
    console.show_merged(merged.of_runs([run, run]), console.console(file))
    return file.getvalue()


def changes(run: Run) -> str:
    file = io.StringIO()
    changes_table.show(compared(run), console.console(file))
    return file.getvalue()


def grades_of(run: CheckRun, file: io.StringIO | None = None) -> str:
    file = file or io.StringIO()
    checks_table.show(grades.of_run(run), console.console(file))
    return file.getvalue()


CONSOLES: dict[str, Callable[[Run], str]] = {
    "report": summary,
    "report of several": summary_of_several,
    "compare": changes,
}
MARKDOWN: dict[str, Callable[[Run], str]] = {
    "verdict": markdown.render,
    "verdict of several": lambda run: markdown.render_document(merged.of_runs([run, run])),
    "compare": lambda run: changes_markdown.render(compared(run)),
}
PAGES: dict[str, Callable[[Run], str]] = {
    "page": lambda run: html.render(document.of_run(run), [Source(run=run)]),
    "page of several": lambda run: html.render(
        merged.of_runs([run, run]), [Source(run=run, label=run.header.device.name)] * 2
    ),
}


def assert_nothing_acts(text: str) -> None:
    """No character but the end of a line that is not printed, and none that is not seen."""
    assert [c for c in text if c != "\n" and (not c.isprintable() or c in "\u3164\u034f")] == []


class Terminal(io.StringIO):
    """Text that is shown to somebody."""

    def isatty(self) -> bool:
        return True


@every_text
@pytest.mark.parametrize("output", CONSOLES)
def test_on_a_console_a_text_is_whole_and_acts_on_nothing(name: str, output: str) -> None:
    text = CONSOLES[output](RUNS[name])

    assert_nothing_acts(text)
    assert flat(TEXTS[name]) in flat(text)


@every_text
def test_on_a_console_a_text_of_a_check_is_whole_and_acts_on_nothing(name: str) -> None:
    text = grades_of(CHECKS[name])

    assert_nothing_acts(text)
    assert flat(TEXTS[name]) in flat(text)


@every_text
@pytest.mark.parametrize("columns", ["40", "200"])
@pytest.mark.parametrize("of", ["run", "check"])
def test_on_a_terminal_the_only_commands_are_our_colours(
    monkeypatch: pytest.MonkeyPatch, name: str, columns: str, of: str
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("COLORTERM", raising=False)
    text = summary(RUNS[name], Terminal()) if of == "run" else grades_of(CHECKS[name], Terminal())
    ours = re.compile(r"\x1b\[(?:0|1|2|1;33|31|32|33|35)m")

    assert ours.search(text)
    assert_nothing_acts(ours.sub("", text))


def shape(text: str) -> list[str]:
    """What GitHub makes of a text, apart from its words."""

    def kinds(tokens: list[Token]) -> Iterator[str]:
        for token in tokens:
            if token.type not in ELEMENTS_OF_TEXT:
                yield token.type
            yield from kinds(token.children or [])

    return list(kinds(GITHUB.parse(text)))


def words(text: str) -> str:
    """What is read of a markdown text, without the characters of no width that part what GitHub looks for."""
    page = GITHUB.render(text)
    return " ".join(parsed(page).text).replace(NO_WIDTH, "")


@every_text
@pytest.mark.parametrize("output", MARKDOWN)
def test_in_markdown_a_text_is_words_and_nothing_else(name: str, output: str) -> None:
    text = MARKDOWN[output](RUNS[name])

    assert_nothing_acts(text)
    assert shape(text) == shape(MARKDOWN[output](HARMLESS))
    assert flat(TEXTS[name]) in flat(words(text))


@every_text
def test_in_the_markdown_of_a_check_a_text_is_words_and_nothing_else(name: str) -> None:
    text = checks_markdown.render(grades.of_run(CHECKS[name]))

    assert_nothing_acts(text)
    assert shape(text) == shape(checks_markdown.render(grades.of_run(HARMLESS_CHECK)))
    assert flat(TEXTS[name]) in flat(words(text))
    assert_github_finds_nothing(text)


def assert_github_finds_nothing(text: str) -> None:
    text = re.sub(r"(?ms)^```mermaid\n.*?^```$|(?<!\\)`[^`\n]*`", "", text)
    page = GITHUB.render(text)

    assert not re.search(r"@\w|#\d|\bgh-\d", " ".join(parsed(page).text), re.IGNORECASE)
    assert not re.search(r":(tada|\+1|smile_cat):", page)
    assert not re.search(r"(?<!\\)\$", text)


@every_text
@pytest.mark.parametrize("output", MARKDOWN)
def test_github_finds_nobody_to_tell_nothing_to_link_and_nothing_to_compute(name: str, output: str) -> None:
    assert_github_finds_nothing(MARKDOWN[output](RUNS[name]))


@every_text
@pytest.mark.parametrize("output", PAGES)
def test_in_a_page_a_text_is_words_and_nothing_else(name: str, output: str) -> None:
    text = PAGES[output](RUNS[name])

    assert_nothing_acts(text)
    assert parsed(text).elements == parsed(PAGES[output](HARMLESS)).elements
    assert flat(TEXTS[name]) in flat("".join(parsed(text).text))


@pytest.mark.parametrize("name", DRAWN)
def test_in_a_picture_a_text_is_words_and_nothing_else(name: str) -> None:
    pictures = {title: data for title, data in plots.draw(RUNS[name]) if title.endswith("svg")}

    assert pictures
    for data in pictures.values():
        root = ET.fromstring(data.decode())
        assert_nothing_acts(data.decode())
        assert not {element.tag.partition("}")[2] for element in root.iter()} & {"script", "b", "img"}
    drawn = [text.text or "" for text in ET.fromstring(pictures["time-forward.svg"].decode()).iter() if text.text]
    assert any(flat(TEXTS[name]) in text for text in drawn)
    page = html.render(document.of_run(HARMLESS), [Source(run=HARMLESS)], [("a", plots.inline_svg(data, "p"))])
    assert flat(TEXTS[name]) in flat("".join(parsed(page).text))
    assert not {tag for tag, _ in parsed(page).elements} & {"b", "img"}


@pytest.mark.browser
def test_mermaid_draws_every_text_as_words(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content("<body></body>")
    page.add_script_tag(path=mermaid())
    page.evaluate("mermaid.initialize({startOnLoad: false})")
    for run in RUNS.values():
        (source,) = mermaid_fences(markdown.render(run))
        svg = str(page.evaluate('async (source) => (await mermaid.render("chart", source)).svg', source))
        assert len(lines(svg)) == 2
        assert "NaN" not in svg
        assert "<b>" not in svg
    page.close()


@pytest.mark.parametrize("name", [*MARKUP, *CONTROL])
def test_a_chart_is_as_long_and_as_wide_whatever_its_names(name: str) -> None:
    (source,) = mermaid_fences(markdown.render(RUNS[name]))
    (harmless,) = mermaid_fences(markdown.render(HARMLESS))

    assert len(source.splitlines()) == len(harmless.splitlines())
    assert source.count('"') == harmless.count('"')
    assert make_device().name not in source
