from __future__ import annotations

import re
from dataclasses import replace
from html import escape as html_escape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from normbench.records import Cache, Cell, DType, Flag, Mode, Plan, Run, Status
from normbench.reporters import markdown
from tests.reporters.reading import (
    GITHUB,
    assert_tables_keep_their_shape,
    environment,
    flat,
    mermaid_fences,
    table_after,
    tables,
)
from tests.runs import TIMES, Times, flagged, make_device, make_environment, make_plan, make_run

NASTY = "a|b||c `code` *bold* _it_ [x](http://y) <img src=z> ~~s~~ &lt; \\| \\\ntwo\r\n| - |"
SLOWER: Times = {**TIMES, "nn-rmsnorm": 5e-6}
GROWING = {"copy": 1e-8, "eager-rmsnorm": 8e-8, "nn-layernorm": 4e-8, "nn-rmsnorm": 2e-8}
"""Seconds for each unit of width: nothing is launch-bound."""
ALL_STATUSES = [status for status in Status if status is not Status.OK]


def test_it_begins_with_the_answer_what_it_gains_how_sure_that_is_and_what_must_be_known() -> None:
    def times(cell: Cell) -> Times:
        return {name: time * cell.width for name, time in GROWING.items()}

    lines = markdown.render(make_run(make_plan(widths=(64, 128)), times)).splitlines()

    assert lines[:7] == [
        "**On Some CPU, 32 rows: use nn-rmsnorm for fp32, forward, at widths 64 and 128.**",
        "",
        "- Does RMSNorm pay here? nn: yes, 2.00 times as fast; fastest of each: yes, 2.00 times as fast.",
        "- Against nn-layernorm: eager-rmsnorm takes 2.00 times as long; nn-rmsnorm is 2.00 times as fast.",
        "- How sure: 4 of 4 comparisons are decided (95 % intervals over placements, margin 2 %; "
        "half of them ±1 % or narrower).",
        "- This is a verdict about a CPU, not about a GPU: the kernels that decide there are others.",
        "- LayerNorm and RMSNorm are different functions: swapping one for the other changes the model.",
    ]


def test_a_cpu_verdict_says_that_it_is_no_gpus() -> None:
    assert "- This is a verdict about a CPU, not about a GPU" in markdown.render(make_run())
    assert "not about a GPU" not in markdown.render(make_run(device=make_device(kind="cuda")))


def test_an_incomplete_run_says_so_above_its_tables() -> None:
    plan = make_plan(widths=(64, 128, 256))
    text = markdown.render(make_run(plan, cells=list(plan.cells())[:1]))

    top, _, _ = text.partition("\n## ")
    assert "- This run is incomplete: 2 of 3 cells lack a final status: fp32 forward at widths 128 and 256." in top
    assert "incomplete" not in markdown.render(make_run(plan))


def test_without_a_baseline_there_is_no_verdict() -> None:
    text = markdown.render(make_run(times={**TIMES, "nn-layernorm": Status.FAILED}))

    assert text.startswith("**On Some CPU, 32 rows: no verdict, since the baseline nn-layernorm has no time.**\n")
    assert table_after(text, "What to use")[1:] == [["fp32 forward", "32", "warm", "no verdict", "", ""]]


def test_a_run_of_which_nothing_was_measured_yet_renders() -> None:
    plan = make_plan()
    text = markdown.render(make_run(plan, cells=()))

    assert text.startswith("**On Some CPU, 32 rows: no verdict")
    assert "- This run is incomplete: 1 of 1 cells lack a final status: fp32 forward at width 64." in text
    assert all(len(table) == 1 or table[0] == ["", ""] for table in tables(text))


def test_each_dtype_and_mode_has_a_row_of_what_to_use_along_the_widths() -> None:
    def times(cell: Cell) -> Times:
        found = GROWING if cell.width == 256 else {**GROWING, "nn-rmsnorm": 5e-8}
        return {name: time * cell.width for name, time in found.items()}

    run = make_run(make_plan(widths=(1024, 64, 128, 256, 512), dtypes=(DType.FP32, DType.BF16)), times)
    first, second = table_after(markdown.render(run), "What to use")[1:]

    assert first == [
        *("fp32 forward", "32", "warm"),
        "up to 128: nn-layernorm; at 256: nn-rmsnorm, 2.00 [1.98, 2.02] times as fast as nn-layernorm; "
        "from 512 on: nn-layernorm",
        "nn-layernorm to nn-rmsnorm between 128 and 256, nn-rmsnorm to nn-layernorm between 256 and 512",
        "",
    ]
    assert second == ["bf16 forward", *first[1:]]


def test_each_provider_has_a_column_that_says_whether_rmsnorm_pays_and_the_last_one_what_that_rests_on() -> None:
    names = ("copy", "eager-layernorm", "eager-rmsnorm", "nn-layernorm", "nn-rmsnorm")
    plan = make_plan(widths=(64, 128), caches=(Cache.WARM, Cache.COLD), implementations=names)

    def times(cell: Cell) -> Times:
        lost = {"eager-rmsnorm": Status.FAILED} if cell.cache is Cache.COLD else {}
        found: Times = {**GROWING, "eager-layernorm": 2e-7, **lost}
        return {n: t if isinstance(t, Status) else t * cell.width for n, t in found.items()}

    run = flagged(make_run(plan, times), Flag.THROTTLED, lambda case: case.cell.width == 64)

    assert table_after(markdown.render(run), "Does RMSNorm pay here?") == [
        ["dtype and mode", "rows", "cache", "eager", "nn", "fastest of each", "these results are"],
        [
            *("fp32 forward", "32", "warm", "yes, 2.50 times as fast", "yes, 2.00 times as fast"),
            *("yes, 2.00 times as fast", "throttled at width 64"),
        ],
        [
            *("fp32 forward", "32", "cold", "no answer, since RMSNorm has no time", "yes, 2.00 times as fast"),
            *("yes, 2.00 times as fast", "throttled at width 64"),
        ],
    ]


def test_without_both_formulas_nothing_is_said_of_swapping_them() -> None:
    text = markdown.render(make_run(make_plan(implementations=("copy", "nn-layernorm", "eager-layernorm"))))

    assert "Does RMSNorm pay here?" not in text


def test_what_is_undecided_is_listed_with_what_would_decide_it() -> None:
    text = markdown.render(make_run(times={**TIMES, "nn-rmsnorm": 3.9e-6}, spread=0.1))

    assert "\n## Undecided\n\n- nn-rmsnorm for fp32 forward at width 64 (interval\\_too\\_wide): " in text
    assert "## Undecided" not in markdown.render(make_run())


def test_wrong_results_are_named_before_the_tables() -> None:
    text = markdown.render(make_run(times={**TIMES, "eager-rmsnorm": Status.INCORRECT}))

    top, _, _ = text.partition("\n## ")
    assert "- Wrong results, and so without a time: eager-rmsnorm for fp32 forward at width 64." in top


def test_every_chart_is_a_closed_mermaid_fence_and_names_its_lines() -> None:
    plan = make_plan(widths=(64, 128), dtypes=(DType.FP32, DType.BF16))

    def times(cell: Cell) -> Times:
        lost = {"eager-rmsnorm": Status.FAILED} if cell.width == 64 and cell.dtype is DType.BF16 else {}
        return {**{name: time * cell.width for name, time in GROWING.items()}, **lost}

    text = markdown.render(make_run(plan, times))
    fences = mermaid_fences(text)

    assert [fence.splitlines()[1] for fence in fences] == ["xychart-beta"] * 2
    assert len(re.findall(r"^Lines: \S.* nn-layernorm, \S.* eager-rmsnorm, \S.* nn-rmsnorm\.$", text, re.M)) == 1
    assert "nn-rmsnorm. Not drawn, since speedups are missing: eager-rmsnorm (at 1 width).\n" in text


def test_a_chart_of_flagged_results_says_so() -> None:
    run = make_run(make_plan(widths=(64, 128)), lambda cell: {n: t * cell.width for n, t in GROWING.items()})
    busy = flagged(run, Flag.BUSY_MACHINE, lambda case: case.cell.width == 128)

    assert "nn-rmsnorm. These results are beside other programs at width 128.\n" in markdown.render(busy)
    assert "These results are" not in markdown.render(run)


def test_every_result_has_a_row_with_its_time_distance_from_the_floor_speedup_and_outcome() -> None:
    run = make_run(times={**TIMES, "eager-rmsnorm": Status.OUT_OF_MEMORY})
    flagged = (*run.results[:-1], replace(run.results[-1], flags=(Flag.DRIFTED, Flag.BIMODAL)))
    text = markdown.render(replace(run, results=flagged))

    assert "<details><summary>fp32 forward, 32 rows, warm cache: 4 results</summary>\n\n| width " in text
    assert table_after(text, "Times and speedups")[1:] == [
        ["64", "copy", "1.00 µs", "1.00", "-", "floor", ""],
        ["64", "eager-rmsnorm", "-", "-", "-", "out_of_memory", ""],
        ["64", "nn-layernorm", "4.00 µs", "4.00", "-", "baseline", ""],
        ["64", "nn-rmsnorm", "2.00 µs", "2.00", "2.00 [1.98, 2.02]", "faster", "drifted, bimodal"],
    ]
    assert "- drifted (1 result: nn-rmsnorm): times drifted" in text


def test_candidates_are_counted_by_mode_and_outcome() -> None:
    plan = make_plan(widths=(64, 128), modes=(Mode.FORWARD, Mode.BACKWARD))
    run = make_run(plan, lambda cell: TIMES if cell.mode is Mode.FORWARD or cell.width == 64 else SLOWER)
    said = "launch-bound in 1 of 2 cells"

    assert table_after(markdown.render(run), "The candidates at a glance")[1:] == [
        ["forward", "eager-rmsnorm", "0.50", "0", "0", "2", "0", said],
        ["forward", "nn-rmsnorm", "2.00", "2", "0", "0", "0", said],
        ["backward", "eager-rmsnorm", "0.50", "0", "0", "2", "0", said],
        ["backward", "nn-rmsnorm", "0.80 to 2.00", "1", "0", "1", "0", said],
    ]


@pytest.mark.parametrize("start", ["- x", "+ x", "1. x", "23) x", "# x", "> x", "* x"])
def test_a_name_that_looks_like_the_start_of_a_list_or_a_heading_is_none(start: str) -> None:
    plan = make_plan(implementations=("copy", "nn-layernorm", f"{start}-rmsnorm"))
    text = markdown.render(make_run(plan, {**TIMES, f"{start}-rmsnorm": 3.9e-6}, spread=0.1))
    section = text[text.index("## Undecided") : text.index("## The candidates")]
    html = MarkdownIt("commonmark").render(section)

    assert f"<li>{html_escape(start)}-rmsnorm for fp32 forward" in html


def test_a_text_is_cut_by_what_is_written_and_never_within_an_escape() -> None:
    text = "<a|" * 20

    assert markdown.escape(text, 140) == text.replace("<", "&lt;").replace("|", "\\|")
    for most in range(10, 140):
        cut = markdown.escape(text, most)
        assert len(cut) <= most
        assert re.fullmatch(r"(&lt;|a|\\\|)*…", cut)


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
    software = make_environment(packages=((NASTY, NASTY),))
    text = markdown.render(make_run(plan, times, device=make_device(name=NASTY), environment=software))

    assert_tables_keep_their_shape(text)
    (packages,) = (row for table in tables(text) for row in table if row[0] == flat(NASTY))
    assert packages == [flat(NASTY)] * 2
    assert ["device", flat(NASTY)] in environment(text)
    html = GITHUB.render(text)
    assert not any(tag in html for tag in ("<img", "<a ", "<em>", "<s>"))


def test_the_command_is_one_code_span_that_repeats_the_run() -> None:
    run = make_run()
    text = markdown.render(replace(run, header=replace(run.header, command=("normbench", "sweep", "--a`b\nc"))))

    assert text.endswith("Again: `normbench sweep '--a'b c'`\n")


def test_it_says_how_and_on_what_it_was_measured() -> None:
    text = markdown.render(make_run(device=make_device(cache_bytes=50 * 2**20)))

    assert "<details><summary>How it was measured</summary>\n\n- All implementations of a cell together, in " in text
    assert dict(environment(text))["last-level cache"] == "50.0 MiB"


def test_the_same_run_gives_the_same_text() -> None:
    plan: Plan = make_plan(widths=(64, 128))
    runs: list[Run] = [make_run(plan), make_run(plan)]

    assert len({markdown.render(run) for run in runs}) == 1
