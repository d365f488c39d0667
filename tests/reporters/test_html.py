from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from normbench.legible import visible
from normbench.records import Run, Status
from normbench.reporters import document, html, merged, method
from normbench.reporters.entries import Source
from tests.reporters.reading import parsed
from tests.runs import TIMES, make_device, make_environment, make_plan, make_run, profiled_run

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><script>alert(1)</script>",
    "</title><svg onload=alert(1)>",
    "<!-- --><a href=javascript:alert(1)>x</a>",
    "{{7*7}}",
    "{% raw %}",
    "a-b<b>-c",
)
PLAIN = "harmless"

ROWS = dict(method.environment(make_run().header))
texts = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


def page_of(run: Run, pictures: tuple[tuple[str, str], ...] = ()) -> str:
    return html.render(document.of_run(run), [Source(run=run)], pictures)


def page_of_several(*runs: Run) -> str:
    shown = merged.of_runs(runs)
    return html.render(shown, [Source(run=run, label=name) for run, name in zip(runs, shown.labels, strict=True)])


def run_called(text: str) -> Run:
    """A run in which everything that comes from outside is this text: the name of an implementation is another."""
    name = f"{text}-own"
    names = ("copy", "nn-layernorm", name)
    return make_run(
        make_plan(implementations=(*names, "eager-rmsnorm")),
        {"copy": 1e-6, "nn-layernorm": 4e-6, name: 2e-6, "eager-rmsnorm": Status.FAILED},
        reason=text,
        device=make_device(name=text),
        environment=make_environment(torch=text, platform=text, packages=((text, text),)),
        command=("normbench", text),
        created_utc=text,
    )


@given(texts)
def test_no_text_from_outside_becomes_markup(text: str) -> None:
    text = " ".join(text.split()) or PLAIN
    assume(text.partition("-")[0] != "nn")  # the provider's LayerNorm would make a pair of it, and so another row
    assume(text not in ROWS)  # a package of that name would share its row
    shape = parsed(page_of(run_called(text)))

    assert shape.elements == parsed(page_of(run_called(PLAIN))).elements
    assert " ".join(visible(text).split()) in " ".join("".join(shape.text).split())


@given(texts)
def test_no_text_from_outside_becomes_markup_in_a_page_of_several_runs(text: str) -> None:
    text = " ".join(text.split()) or PLAIN
    assume(text.partition("-")[0] != "nn")  # the provider's LayerNorm would make a pair of it, and so another row
    assume(text not in ROWS)  # a package of that name would share its row

    def shape(of: str) -> list[tuple[str, tuple[str, ...]]]:
        return parsed(page_of_several(run_called(of), replace(run_called(of)))).elements

    assert shape(text) == shape(PLAIN)


def test_no_text_from_outside_becomes_markup_in_the_description_of_a_picture() -> None:
    shape = parsed(page_of(make_run(), (('"><script>alert(1)</script>', "<svg></svg>"),)))

    assert [tag for tag, _ in shape.elements].count("script") == 1


@pytest.mark.parametrize("page", [page_of(profiled_run()), page_of_several(make_run(), profiled_run())])
def test_a_page_needs_nothing_from_elsewhere(page: str) -> None:
    assert not re.search(r"(?:src|href)=(?!\"(?:#|data:,))", page)
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page


@pytest.mark.parametrize("page", [page_of(profiled_run()), page_of_several(make_run(), profiled_run())])
def test_the_links_of_a_page_lead_to_places_in_it(page: str) -> None:
    links = re.findall(r'<a href="#([^"]+)"', page)

    assert len(links) >= 4
    assert set(links) <= set(re.findall(r' id="([^"]+)"', page))


def test_every_table_has_a_field_below_each_head() -> None:
    page = page_of(profiled_run())
    for table in re.findall(r"<table>.*?</table>", page, re.DOTALL):
        rows = re.findall(r"<tr.*?</tr>", table, re.DOTALL)
        assert len({len(re.findall(r"<t[hd][ >]", row)) for row in rows}) == 1


def test_every_table_of_several_runs_has_a_field_below_each_head() -> None:
    page = page_of_several(make_run(), make_run(times={**TIMES, "nn-rmsnorm": Status.FAILED}))
    for table in re.findall(r"<table>.*?</table>", page, re.DOTALL):
        rows = re.findall(r"<tr.*?</tr>", table, re.DOTALL)
        assert len({len(re.findall(r"<t[hd][ >]", row)) for row in rows}) == 1


def test_pictures_stand_in_the_page_as_they_are() -> None:
    assert '<figure aria-label="time"><svg id="one"></svg></figure>' in page_of(
        make_run(), (("time", '<svg id="one"></svg>'),)
    )


def test_without_pictures_there_is_no_heading_for_them() -> None:
    assert ">Pictures<" not in page_of(make_run())


def test_samples_are_explained_only_where_they_are_shown() -> None:
    assert "Samples:" not in page_of(make_run())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use nn-layernorm.", 'use <span class="whole">nn-layernorm</span>.'),
        ("(--max-seconds)", '(<span class="whole">--max-seconds</span>)'),
        ("--seed 0", '<span class="whole">--seed</span> 0'),
        ("0.5 - 0.7, -", "0.5 - 0.7, -"),
        ("a" * 30 + "-b", "a" * 30 + "-b"),
    ],
)
def test_names_and_options_are_not_broken_at_hyphens_as_long_as_they_fit(text: str, expected: str) -> None:
    assert str(html._whole(text)) == expected


@given(texts)
def test_keeping_names_whole_changes_nothing_that_is_read(text: str) -> None:
    shape = parsed(str(html._whole(text)))

    assert "".join(shape.text) == visible(text)
    assert shape.elements == []


def test_the_rows_of_results_carry_what_they_are_sorted_by_and_absent_values_nothing() -> None:
    page = page_of(make_run(times={**TIMES, "nn-rmsnorm": Status.FAILED}))
    row = next(row for row in re.findall(r"<tr>.*?</tr>", page) if "failed" in row and "data-key" in row)

    assert '<td class="number">-</td>' in row
    assert '<td data-key="failed" class="failed">failed</td>' in row


def test_the_title_is_the_answer() -> None:
    assert "<title>normbench: On Some CPU, 32 rows: use nn-rmsnorm" in page_of(make_run())
