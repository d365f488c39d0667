"""Steps on a terminal: whole in every width, with and without colours."""

from __future__ import annotations

import io
import re

import pytest

from normbench.records import StepRun
from normbench.reporters import steps, steps_document, steps_table
from normbench.reporters.terminal import console
from tests.step_runs import NAMES, complete_run, empty_run, failed_run, make_step_run, training_run


class Terminal(io.StringIO):
    """Text that is shown to somebody."""

    def isatty(self) -> bool:
        return True


def shown(run: StepRun, file: io.StringIO | None = None) -> str:
    file = file or io.StringIO()
    steps_table.show(run, console(file))
    return file.getvalue()


def on_terminal(monkeypatch: pytest.MonkeyPatch, run: StepRun, columns: int, term: str = "dumb") -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return shown(run, Terminal())


@pytest.mark.parametrize("run", [complete_run(), failed_run(), empty_run(), training_run()])
def test_the_answer_stands_last(run: StepRun) -> None:
    assert shown(run).splitlines()[-1] == f"{steps.headline(run)}."


def test_a_cell_s_table_stands_first_under_its_name() -> None:
    lines = [line.rstrip() for line in shown(make_step_run()).splitlines()]

    assert lines[0] == "Width 256, 4 layers, 8×256 tokens, fp32, eager model"
    assert lines[2].split() == " ".join(steps_document.HEADS).split()
    assert " ".join(lines[5].split()).startswith(
        "eager-rmsnorm 109 ms [108, 110] 1.087 [1.079, 1.095] slower 18,800 "
    )
    assert [line.split()[0] for line in lines[4:10]] == list(NAMES)


def test_predicted_against_measured_has_a_table_for_each_cell() -> None:
    text = shown(complete_run())

    assert text.count("longer than nn-layernorm, by the norms alone and as measured") == 4
    assert re.search(r"eager-rmsnorm +\+967 µs \[.*\] +\+8.70 ms \[.*\] +\+8.70 ms \[.*\] +as predicted", text)


def test_training_has_a_row_for_each_variant_and_each_run() -> None:
    text = shown(training_run())

    assert re.search(r"nn-rmsnorm +3 of 3 +2.1413 +\+0.0013 ± 0.0006 +0.0400 +no difference", text)
    assert re.search(r"nn-rmsnorm +2 +400 of 400 +2.1815 +2.0815 +2.2815 +ok", text)


def test_whoever_failed_is_named_with_its_reason() -> None:
    assert "nn-rmsnorm: incorrect width 256, 4 layers, 8×256 tokens, fp32, eager model: because" in shown(
        failed_run()
    )


@pytest.mark.parametrize("run", [complete_run(), training_run()], ids=["steps", "training"])
@pytest.mark.parametrize("columns", [24, 40, 60, 80, 200])
def test_every_word_is_whole_in_every_width(monkeypatch: pytest.MonkeyPatch, columns: int, run: StepRun) -> None:
    text = on_terminal(monkeypatch, run, columns)
    flat = re.sub(r"\s+", "", text)

    assert all(len(line.rstrip()) <= columns for line in text.splitlines() if len(line.split()) > 1)
    assert all(part in flat for name in run.header.plan.implementations for part in name.split("-"))
    assert re.sub(r"\s+", "", steps.headline(run)) in flat


def test_on_a_terminal_slower_is_red_and_without_colours_the_words_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coloured = on_terminal(monkeypatch, failed_run(), 200, "xterm")
    plain = on_terminal(monkeypatch, failed_run(), 200)

    assert re.search(r"\x1b\[31mslower", coloured)
    assert re.search(r"\x1b\[35mincorrect", coloured)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain
