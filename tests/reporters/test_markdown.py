from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from normbench.records import Cache, Cell, Flag, Mode, Plan, Run, Status
from normbench.reporters import markdown
from tests.runs import TIMES, Times, make_device, make_environment, make_plan, make_run

NASTY = "a|b||c `code` *bold* _it_ [x](http://y) <img src=z> ~~s~~ &lt; \\| \\\ntwo\r\n| - |"
SLOWER: Times = {**TIMES, "nn-rmsnorm": 5e-6}
ALL_STATUSES = [status for status in Status if status is not Status.OK]


def tables(text: str) -> Iterator[list[list[str]]]:
    """The words in the cells of every table as GitHub reads it; markup in a cell is an error."""
    table: list[list[str]] = []
    before = ""
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        if token.type == "tr_open":
            table.append([])
        elif before in ("th_open", "td_open"):
            children = token.children or []
            assert {child.type for child in children} <= {"text", "text_special"}, token.content
            table[-1].append("".join(child.content for child in children))
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
    return next(tables(text[text.index(f"## {heading}\n") :]))


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_first_three_lines_say_what_to_use_how_much_it_gains_and_how_sure_that_is() -> None:
    lines = markdown.render(make_run(make_plan(widths=(64, 128)))).splitlines()

    assert lines[:3] == [
        "**On Some CPU, 32 rows: use nn-rmsnorm for fp32, forward, at widths 64 and 128.**",
        "- Where nn-layernorm is not the fastest, the best is 2.00 times as fast, for fp32 forward.",
        "- How sure: 4 of 4 comparisons are decided (95 % intervals over placements, margin 2 %; "
        "half of them ±1 % or narrower).",
    ]


def test_a_cpu_verdict_says_that_it_is_no_gpus() -> None:
    assert "- This is a verdict about a CPU, not about a GPU" in markdown.render(make_run())
    assert "not about a GPU" not in markdown.render(make_run(device=make_device(kind="cuda")))


def test_an_incomplete_run_says_so_above_its_tables() -> None:
    plan = make_plan(widths=(64, 128, 256))
    text = markdown.render(make_run(plan, cells=list(plan.cells())[:1]))

    top, _, _ = text.partition("\n## ")
    assert "- This run is incomplete: 2 of 3 cells lack a final status." in top
    assert "incomplete" not in markdown.render(make_run(plan))


def test_without_a_baseline_there_is_no_verdict() -> None:
    text = markdown.render(make_run(times={**TIMES, "nn-layernorm": Status.FAILED}))

    assert text.startswith("**On Some CPU, 32 rows: no verdict, since the baseline nn-layernorm has no time.**\n")
    assert table_after(text, "What to use")[1:] == [["fp32 forward", "32", "warm", "64", "no verdict"]]


def test_a_run_of_which_nothing_was_measured_yet_renders() -> None:
    plan = make_plan()
    text = markdown.render(make_run(plan, cells=()))

    assert text.startswith("**On Some CPU, 32 rows: no verdict")
    assert "- This run is incomplete: 1 of 1 cells lack a final status." in text
    assert all(len(table) == 1 or table[0] == ["", ""] for table in tables(text))


def test_neighbouring_widths_with_the_same_answer_share_a_row() -> None:
    def times(cell: Cell) -> Times:
        return TIMES if cell.width == 256 else SLOWER

    rows = table_after(markdown.render(make_run(make_plan(widths=(1024, 64, 128, 256, 512)), times)), "What to use")

    assert [row[3:] for row in rows[1:]] == [
        ["64, 128", "nn-layernorm"],
        ["256", "nn-rmsnorm 2.00 [1.98, 2.02]"],
        ["512, 1024", "nn-layernorm"],
    ]


def test_every_result_has_a_row_with_its_time_distance_from_the_floor_speedup_and_outcome() -> None:
    run = make_run(times={**TIMES, "eager-rmsnorm": Status.OUT_OF_MEMORY})
    flagged = (*run.results[:-1], replace(run.results[-1], flags=(Flag.DRIFTED, Flag.BIMODAL)))
    text = markdown.render(replace(run, results=flagged))

    assert table_after(text, "Times and speedups\n\n### fp32 forward, 32 rows, warm cache")[1:] == [
        ["64", "copy", "1.00 µs", "1.00", "-", "floor", ""],
        ["64", "eager-rmsnorm", "-", "-", "-", "out_of_memory", ""],
        ["64", "nn-layernorm", "4.00 µs", "4.00", "-", "baseline", ""],
        ["64", "nn-rmsnorm", "2.00 µs", "2.00", "2.00 [1.98, 2.02]", "faster", "drifted, bimodal"],
    ]
    assert "- drifted (1 result: nn-rmsnorm): times drifted" in text


def test_candidates_are_counted_by_mode_and_outcome() -> None:
    plan = make_plan(widths=(64, 128), modes=(Mode.FORWARD, Mode.BACKWARD))
    run = make_run(plan, lambda cell: TIMES if cell.mode is Mode.FORWARD or cell.width == 64 else SLOWER)

    assert table_after(markdown.render(run), "The candidates at a glance")[1:] == [
        ["forward", "eager-rmsnorm", "0.50", "0", "0", "2", "0"],
        ["forward", "nn-rmsnorm", "2.00", "2", "0", "0", "0"],
        ["backward", "eager-rmsnorm", "0.50", "0", "0", "2", "0"],
        ["backward", "nn-rmsnorm", "0.80 to 2.00", "1", "0", "1", "0"],
    ]


@pytest.mark.parametrize("status", ALL_STATUSES)
def test_whoever_has_no_time_is_listed_with_status_place_and_reason(status: Status) -> None:
    run = make_run(times={**TIMES, "nn-rmsnorm": status}, reason="CompileError: no")

    assert table_after(markdown.render(run), "Without a time")[1:] == [
        [f"nn-rmsnorm: {status}", "fp32 forward at width 64", "CompileError: no"]
    ]


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("|\\`*_[]<>&~\n#"), min_size=1))
@example(NASTY)
@example("&amp; &lt; &#124;")
def test_whatever_a_reason_holds_its_table_keeps_its_shape_and_its_words(reason: str) -> None:
    text = markdown.render(make_run(times={**TIMES, "nn-rmsnorm": Status.FAILED}, reason=reason))

    assert_tables_keep_their_shape(text)
    assert table_after(text, "Without a time")[1][2] == flat(reason).strip()


def test_markup_in_the_name_of_an_implementation_a_device_or_a_package_is_no_markup() -> None:
    plan = make_plan(implementations=("copy", "nn-layernorm", f"own {NASTY}-rmsnorm"))
    times: Times = {"copy": 1e-6, "nn-layernorm": 4e-6, f"own {NASTY}-rmsnorm": 2e-6}
    environment = make_environment(packages=((NASTY, NASTY),))
    text = markdown.render(make_run(plan, times, device=make_device(name=NASTY), environment=environment))

    assert_tables_keep_their_shape(text)
    (packages,) = (row for table in tables(text) for row in table if row[0] == flat(NASTY))
    assert packages == [flat(NASTY)] * 2
    assert ["device", flat(NASTY)] in table_after(text, "On what")
    html = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)
    assert not any(tag in html for tag in ("<img", "<a ", "<em>", "<s>"))


def test_the_command_is_one_code_span_that_repeats_the_run() -> None:
    run = make_run()
    text = markdown.render(replace(run, header=replace(run.header, command=("normbench", "sweep", "--a`b\nc"))))

    assert text.endswith("Again: `normbench sweep --a'b c`\n")


def test_it_says_how_and_on_what_it_was_measured() -> None:
    plan = make_plan(caches=(Cache.COLD,), eps=1e-5, seed=7)
    text = markdown.render(make_run(plan, device=make_device(kind="cuda", capability=(9, 0), cache_bytes=50 * 2**20)))

    assert "in 2 placements" in text
    assert "10 to 40 are asked for" in text
    assert "Time is device time by CUDA events" in text
    assert "cold (the last-level cache is overwritten before each call, outside the clock)" in text
    assert "eps 1e-05 for all" in text
    assert "(seed 7)" in text
    rows = dict(table_after(text, "On what"))
    assert (rows["compute capability"], rows["last-level cache"]) == ("9.0", "50.0 MiB")
    assert "CUDA" not in rows


def test_the_same_run_gives_the_same_text() -> None:
    plan: Plan = make_plan(widths=(64, 128))
    runs: list[Run] = [make_run(plan), make_run(plan)]

    assert len({markdown.render(run) for run in runs}) == 1
