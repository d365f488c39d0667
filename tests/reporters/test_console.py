from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from normbench.records import Cell, DType, Flag, Run, Status
from normbench.reporters.console import console, show
from tests.runs import TIMES, Times, flagged, make_device, make_plan, make_run, write_run

LABEL = "nn.RMSNorm[compile]"
LABELLED = make_plan(implementations=("copy", "nn-layernorm", LABEL), widths=(64, 128))
LABELLED_TIMES: Times = {"copy": 1e-6, "nn-layernorm": 4e-6, LABEL: 2e-6}
NARROW = {
    "cp1252": {"PYTHONIOENCODING": "cp1252"},
    "ascii": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "40"},
}


class Terminal(io.StringIO):
    """Text that is shown to somebody."""

    def isatty(self) -> bool:
        return True


def shown(run: Run, file: io.StringIO | None = None) -> str:
    file = file or io.StringIO()
    show(run, console(file))
    return file.getvalue()


def words(text: str) -> set[str]:
    """Whole words and values; where a head stands before its value, without the colon between."""
    return {word.rstrip(":") for word in re.findall(r"[^\s─]+", text)}


def run_command(env: Mapping[str, str], *args: str) -> subprocess.CompletedProcess[bytes]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG", "PYTHON"))}
    command = [sys.executable, "-m", "normbench", *args]
    return subprocess.run(command, env=inherited | env, capture_output=True, check=False, timeout=120)


def test_the_answer_comes_last_where_the_reader_looks_first() -> None:
    run = flagged(make_run(), Flag.THROTTLED, lambda case: case.implementation == "nn-layernorm")
    lines = shown(run).rstrip("\n").splitlines()

    assert lines[-5:] == [
        "On Some CPU, 32 rows: use nn-rmsnorm for fp32, forward, at width 64.",
        "Does RMSNorm pay here? nn: yes, 2.00 times as fast; fastest of each: yes, 2.00 times as fast.",
        "Against nn-layernorm: eager-rmsnorm takes 2.00 times as long; nn-rmsnorm is 2.00 times as fast.",
        "How sure: 2 of 2 comparisons are decided (95 % intervals over placements, margin 2 %; "
        "half of them ±1 % or narrower).",
        "All of this rests on results that were throttled in 1 of 1 cells.",
    ]


def test_each_group_has_a_table_of_times_and_speedups_over_its_widths() -> None:
    def times(cell: Cell) -> Times:
        return TIMES if cell.width == 64 else {**TIMES, "nn-rmsnorm": Status.INCORRECT, "eager-rmsnorm": 4e-6}

    lines = shown(make_run(make_plan(widths=(128, 64)), times)).splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.split()}

    assert lines[0].rstrip() == "fp32 forward, 32 rows, warm cache: time, speedup over nn-layernorm"
    assert rows["width"] == ["64", "128"]
    assert rows["copy"] == ["1.00", "µs", "floor", "1.00", "µs", "floor"]
    assert rows["nn-layernorm"] == ["4.00", "µs", "baseline", "4.00", "µs", "baseline"]
    assert rows["eager-rmsnorm"] == ["8.00", "µs", "0.50", "slower", "4.00", "µs", "1.00", "same"]
    assert rows["nn-rmsnorm"] == ["2.00", "µs", "2.00", "faster", "incorrect"]


def test_without_a_baseline_a_time_stands_as_undecided() -> None:
    text = shown(make_run(times={**TIMES, "nn-layernorm": Status.FAILED}))

    assert "2.00 µs  undecided" in text
    assert "no verdict" in text


def test_a_cell_that_was_not_reached_is_in_no_table_and_is_counted() -> None:
    plan = make_plan(dtypes=(DType.FP32, DType.BF16))
    text = shown(make_run(plan, cells=list(plan.cells())[:1]))

    assert "bf16 forward, 32 rows, warm cache: time" not in text
    assert "This run is incomplete: 1 of 2 cells lack a final status: bf16 forward at width 64." in text
    assert text.rstrip().endswith("1 cell is missing.")


@pytest.mark.parametrize("file", [io.StringIO, Terminal])
def test_brackets_in_a_name_are_shown_as_they_are(file: type[io.StringIO], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    grows = lambda cell: {name: time * cell.width for name, time in LABELLED_TIMES.items()}  # noqa: E731
    text = shown(make_run(LABELLED, grows), file())

    assert f"use {LABEL} for fp32, forward, at widths 64 and 128." in text
    assert f"Against nn-layernorm: {LABEL} is 2.00 times as fast." in text
    assert text.count(LABEL) == 3


@pytest.mark.parametrize("reason", ["cannot open [/data/x]", "[red]no[/red] :smile: [/]", "a [link=http://b]c"])
def test_brackets_in_a_reason_are_shown_as_they_are(reason: str) -> None:
    text = shown(make_run(times={**TIMES, "nn-rmsnorm": Status.FAILED}, reason=reason))

    assert f"nn-rmsnorm: failed fp32 forward at width 64: {reason}\n" in text


def test_without_a_terminal_nothing_is_wrapped_or_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    plan = make_plan(widths=tuple(2**exponent for exponent in range(6, 15)), dtypes=tuple(DType))
    reason = "a reason " * 40 + "ends"
    run = make_run(plan, {**TIMES, "eager-rmsnorm": Status.FAILED}, reason=reason)
    lines = shown(run).splitlines()

    assert sum(line.startswith(" nn-rmsnorm ") and line.count("2.00 µs  2.00 faster") == 9 for line in lines) == 3
    assert sum(line.endswith(f": {reason}") for line in lines) == 1
    assert "…" not in "".join(lines)


@pytest.mark.parametrize("columns", [32, 40, 80, 100])
def test_on_a_narrow_terminal_no_line_is_too_long_and_no_word_is_cut(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    run = make_run(make_plan(widths=tuple(2**exponent for exponent in range(6, 13))))
    narrow, wide = (re.sub(r"\x1b\[\d*m", "", shown(run, file)) for file in (Terminal(), io.StringIO()))

    assert max(map(len, narrow.splitlines())) <= columns < max(map(len, wide.splitlines()))
    assert words(wide) <= words(narrow) | {"width"}  # which is the corner of a table
    for value in re.findall(r"\d\S* µs  (?:\d\S* )?\w+", wide):
        assert value in narrow


def test_notes_on_the_device_and_flags_are_shown() -> None:
    text = shown(make_run(device=make_device(fused_rmsnorm=False)))

    assert "This is a verdict about a CPU, not about a GPU" in text
    assert "This device has no fused RMSNorm in this torch" in text


@pytest.mark.parametrize(
    ("encoding", "drawn"), [("utf-8", True), ("cp1252", False), ("ascii", False), ("odd", False)]
)
def test_boxes_are_drawn_only_in_an_encoding_that_has_them(encoding: str, drawn: bool) -> None:
    class File(io.StringIO):
        @property
        def encoding(self) -> str:  # type: ignore[override]
            return encoding

    assert ("─" in shown(make_run(), File())) is drawn


@pytest.mark.parametrize("where", NARROW)
def test_a_report_on_a_console_with_few_characters_ends_well_and_writes_utf8(tmp_path: Path, where: str) -> None:
    folder = write_run(tmp_path / "run", LABELLED, LABELLED_TIMES)
    done = run_command(NARROW[where], "report", str(folder.path))

    assert (done.returncode, done.stderr) == (0, b"")
    assert f"use {LABEL} for fp32, forward, at widths 64 and 128.".encode() in done.stdout
    assert "µs" in (folder.path / "verdict.md").read_text(encoding="utf-8")


def test_the_list_on_a_console_with_few_characters_ends_well() -> None:
    done = run_command(NARROW["ascii"], "list", "--device", "cpu")

    assert (done.returncode, done.stderr) == (0, b"")
    assert b"compile-rmsnorm" in done.stdout


@pytest.mark.parametrize("words", [["report"], ["report", "--help"]])
def test_a_reader_that_has_gone_is_no_reason_for_a_traceback(tmp_path: Path, words: list[str]) -> None:
    folder = write_run(tmp_path / "run")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        command = [sys.executable, "-m", "normbench", *words, str(folder.path)]
        done = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, check=False, timeout=120)

    assert done.stderr == b"" or done.stderr.startswith(b"error: stdout was closed before everything was printed")
    assert done.returncode == 3


def test_whoever_gave_wrong_results_is_named() -> None:
    text = shown(make_run(times={**TIMES, "nn-rmsnorm": Status.INCORRECT}))

    assert "Wrong results, and so without a time: nn-rmsnorm for fp32 forward at width 64.\n" in text
