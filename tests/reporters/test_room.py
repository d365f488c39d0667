"""A report stays short enough for a pull request whatever the run: what goes first, and what always stays."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from normbench.records import DType, Flag, Mode, Run, Status
from normbench.reporters import document, markdown, room
from normbench.reporters.room import ROOMS, Room
from normbench.swaps import BEST
from tests.reporters.big import LABEL, big_run
from tests.reporters.reading import GITHUB, assert_tables_keep_their_shape, mermaid_fences, table_after
from tests.runs import Times, flagged, make_device, make_environment, make_plan, make_run

MOST = 60_000
RUN = big_run()
DOCUMENT = document.of_run(RUN)
NASTY = (
    *("|", "`", "```", "<b>", "</details>", "\n", "\r\n", "-->", "%%{init: {}}%%", '"', "'", "&", "\\", "# ", "- x"),
)
TAGS = set("p strong ul li h2 h3 table thead tbody tr th td pre code details summary".split())  # noqa: SIM905
BUT_SHORT = {"cache", "mode", "speedups", "margin", "floor"}
"""Fields of few characters, that come from no user."""


def lines_of(text: str, heading: str) -> list[list[str]]:
    """The rows of a table without its header."""
    return table_after(text, heading)[1:]


def assert_whole(text: str) -> None:
    """Short enough, and nothing in it is cut through or read out of data."""
    assert len(text) < MOST
    assert_tables_keep_their_shape(text)
    apart_from_code, _, _ = text.rpartition("\nAgain: `")
    assert len({apart_from_code.count(tag) for tag in ("<details>", "</details>", "<summary>", "</summary>")}) == 1
    fences = mermaid_fences(text)
    assert len(re.findall("^```", text, re.MULTILINE)) == 2 * len(fences) == 2 * text.count("\n```mermaid\n")
    assert not any("`" in fence or fence.count("%%{") > 1 for fence in fences)
    html = GITHUB.render(text)
    assert set(re.findall(r"</?([a-z0-9]+)", html)) <= TAGS
    assert html.count("<details>") == html.count("</details>")


def test_with_enough_room_nothing_is_left_out() -> None:
    no_limit = Room()

    assert room.shortened(DOCUMENT, no_limit) == (DOCUMENT, ())
    assert "Left out here" not in markdown.render(make_run())


def test_every_step_leaves_less_room_than_the_one_before() -> None:
    for wider, narrower in pairwise(ROOMS):
        assert all(getattr(narrower, f.name) <= getattr(wider, f.name) for f in fields(Room))
        assert narrower != wider


def test_results_are_kept_from_the_first_table_on_and_counted() -> None:
    shown, left_out = room.shortened(DOCUMENT, Room(results=151))

    assert [len(table.lines) for table in shown.results] == [150, 1]
    assert shown.results[1].lines[0] == DOCUMENT.results[1].lines[0]
    assert left_out == ("749 of 900 results (all are in results.csv)",)


def test_every_list_is_cut_at_its_first_rows_and_says_which_file_has_all() -> None:
    shown, left_out = room.shortened(DOCUMENT, Room(rows=2, charts=1))

    assert shown.recommendations == DOCUMENT.recommendations[:2]
    assert shown.swaps == DOCUMENT.swaps[:2]
    assert shown.charts == DOCUMENT.charts[:1]
    assert "4 of 6 rows of the answers on RMSNorm (all are in swaps.csv)" in left_out
    assert "5 of 6 charts (all are in plots/)" in left_out
    assert all(" (all are in " in text for text in left_out)


def test_of_many_providers_the_first_stay_and_the_fastest_of_each_with_their_answers() -> None:
    assert DOCUMENT.providers == ("eager", "nn", "compile", BEST)
    shown, left_out = room.shortened(DOCUMENT, Room(providers=2))

    assert shown.providers == ("eager", BEST)
    assert [line.answers for line in shown.swaps] == [(a[0], a[3]) for a in (line.answers for line in DOCUMENT.swaps)]
    assert left_out == ("2 of 4 providers (all are in swaps.csv)",)


def test_the_largest_sweep_that_people_run_keeps_its_answer_and_says_what_it_left_out() -> None:
    """N33: ten implementations at 15 widths, in three dtypes and two passes, and a label with two pipes."""
    text = markdown.render(RUN)

    assert len(RUN.results) == 900
    assert_whole(text)
    said = DOCUMENT.headline
    assert text.startswith(f"**{markdown.escape(said.use)}.**\n")
    assert all(f"- {markdown.escape(line)}.\n" in text for line in said.rest)
    assert [row[3] for row in lines_of(text, "What to use")] == [row.use for row in DOCUMENT.recommendations]
    assert [tuple(row[3:-1]) for row in lines_of(text, "Does RMSNorm pay here?")] == [
        line.answers for line in DOCUMENT.swaps
    ]
    assert LABEL in {row[1] for row in lines_of(text, "The candidates at a glance")}
    assert LABEL in {row[1] for row in lines_of(text, "Times and speedups")}
    (left_out,) = re.findall(
        r"^- Left out here, to stay below 60,000 characters: (.*), in the run folder\.$", text, re.M
    )
    assert re.search(r"\d+ of 900 results \(all are in results\.csv\)", left_out)


def test_ten_thousand_results_keep_the_answer_too() -> None:
    run = big_run(rows=12)
    text = markdown.render(run)

    assert len(run.results) == 10_800
    assert_whole(text)
    assert re.match(r"\*\*On Some CPU: use .* of 1080 cells", text)
    assert "10800 of 10800 results (all are in results.csv)" in text
    assert "\n- Does RMSNorm pay here? eager: it depends, " in text


def filled(value: Any, *, within: bool = False) -> Any:
    """The same kind of value, as large as it can get: long texts that grow when they are escaped, many rows."""
    if is_dataclass(value):
        found = {f.name: getattr(value, f.name) for f in fields(value)}
        return replace(value, **{n: v if n in BUT_SHORT else filled(v) for n, v in found.items()})  # type: ignore[type-var]
    if isinstance(value, tuple) and value:
        return tuple(filled(item, within=True) for item in value) if within else (filled(value[0], within=True),) * 20
    return "&" * 3000 if isinstance(value, str) else value


def test_the_last_step_is_enough_for_any_document() -> None:
    run = make_run(
        make_plan(widths=(64, 128)),
        {"copy": 1e-6, "nn-layernorm": 4e-6, "nn-rmsnorm": 3.9e-6, "eager-rmsnorm": Status.FAILED},
        spread=0.1,
    )
    whole = filled(document.of_run(run))
    whole = replace(whole, notes=whole.notes[:10], method=whole.method[:10])

    assert all(getattr(whole, name) for name in ("swaps", "questions", "unmeasured", "standings", "reaches", "flags"))
    text = markdown.render_document(whole)
    assert_whole(text)
    assert "17 of 20 rows of what to use" in text


def texts() -> st.SearchStrategy[str]:
    """Short ones and such of 5,000 characters, of anything and of all that could be markup."""
    pieces = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(NASTY)
    short = st.lists(pieces, min_size=1, max_size=5).map("".join)
    return st.builds(lambda text, times: (text * times)[:5000], short, st.sampled_from([1, 1, 9, 5000]))


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Runs of any shape, of which every text that a user, a device or an error brings may be anything."""
    brought = [f"{draw(texts()).replace('-', ' ')}{n}" for n in range(draw(st.sampled_from([0, 1, 2, 12])))]
    names = ("copy", "nn-layernorm", "nn-rmsnorm", *(f"{n}-{op}" for n in brought for op in ("layernorm", "rmsnorm")))
    plan = make_plan(
        widths=tuple(range(64, 64 + draw(st.sampled_from([1, 2, 20])))),
        dtypes=tuple(DType)[: draw(st.integers(1, 3))],
        modes=tuple(Mode)[: draw(st.integers(1, 2))],
        implementations=names,
    )
    kinds = st.sampled_from([1e-6, 2e-6, 3.9e-6, 1e-5, Status.INCORRECT, Status.FAILED])
    outcomes = [{name: draw(kinds) for name in names} for _ in range(2)]
    run = make_run(
        plan,
        lambda cell: {**outcomes[cell.width % 2], "copy": 1e-6},
        reason=draw(texts()) or "?",
        spread=draw(st.sampled_from([0.01, 0.2])),
        device=make_device(name=draw(texts()), kind=draw(st.sampled_from(["cpu", "cuda"]))),
        environment=make_environment(packages=((draw(texts()), draw(texts())),)),
        command=("normbench", draw(texts())),
    )
    return flagged(run, draw(st.sampled_from(Flag)), lambda case: case.cell.width % 3 == 0)


@settings(max_examples=40, phases=[Phase.explicit, Phase.generate])
@given(runs())
@example(make_run(reason="|" * 5000, times={"copy": 1e-6, "nn-layernorm": 4e-6, "nn-rmsnorm": Status.FAILED}))
def test_whatever_names_reasons_and_devices_are_called_and_however_many_cells_there_are(run: Run) -> None:
    text = markdown.render(run)

    assert_whole(text)
    assert text.startswith(("**On ", "**Not reliable"))
    assert text.count("\n## What to use\n") == 1


@pytest.mark.parametrize("count", [8, 300])
def test_any_number_of_providers_is_a_table_that_fits(count: int) -> None:
    names = [f"p{n}{'&' * 500}-{op}" for n in range(count) for op in ("layernorm", "rmsnorm")]
    plan = make_plan(implementations=("copy", "nn-layernorm", *names))
    times: Times = {name: 1e-6 * (1 + n % 7) for n, name in enumerate(plan.implementations)}
    text = markdown.render(make_run(plan, times))

    assert_whole(text)
    header, row = table_after(text, "Does RMSNorm pay here?")
    assert len(header) == len(row)
    assert header[-2:] == [BEST, "these results are"]
    assert header[3].startswith("p0&&&")
