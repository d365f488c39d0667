"""``--json``: one document on stdout that any parser takes, whatever the end; messages are on stderr."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from normbench.cli.output import json_text
from normbench.records import Accuracy, Status
from normbench.storage import RunFolder
from normbench.storage.texts import cleaned_field
from tests.cli.command import PLAIN, TINY, Done, normbench
from tests.cli.consoles import COMMAND, environment
from tests.hostile_texts import MARKUP
from tests.runs import TIMES, make_header, make_plan, make_records, write_run


def refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def document(text: str) -> Any:
    """The one document that a text is, read as the standard has it."""
    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with a result so wrong that its error is infinite, and one whose error is none."""
    plan = make_plan()
    folder = RunFolder.create(tmp_path / "run", make_header(plan))
    records = make_records(next(plan.cells()), {**TIMES, "eager-rmsnorm": Status.INCORRECT}, plan)
    odd = {
        "eager-rmsnorm": Accuracy(max_abs_error=float("inf"), max_rel_error=float("nan"), out_dtype=None),
    }
    results = tuple(replace(r, accuracy=odd.get(r.case.implementation, r.accuracy)) for r in records.results)
    folder.write(replace(records, results=results))
    return folder.path


def test_what_is_no_number_is_null() -> None:
    nested = {"a": [float("nan"), (float("inf"), 1.5)], "b": {"c": -float("inf")}, "d": "\x1b[31m\ud800"}

    assert document(json_text(nested)) == {"a": [None, [None, 1.5]], "b": {"c": None}, "d": "\x1b[31m\ud800"}
    assert json_text(nested).isascii()
    assert "\x1b" not in json_text(nested)


def test_every_command_that_reads_runs_prints_one_document(run: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other").path
    commands: list[tuple[str | Path, ...]] = [
        ("report", run, "--pictures", "0"),
        ("report", run, other, "--pictures", "0", "--out", tmp_path / "both"),
        ("compare", run, other),
        ("list", "--device", "cpu"),
        ("sweep", *TINY, *PLAIN, "--widths", "64", "--dry-run"),
        ("profile", *PLAIN, "--device", "cpu", "--dry-run"),
    ]
    for words in commands:
        done = normbench(*words, "--json")
        assert done.code == 0, words
        assert document(done.out), words


def test_an_error_that_is_infinite_is_null_and_the_result_says_that_it_is_wrong(run: Path) -> None:
    results = document(normbench("report", run, "--pictures", "0", "--json").out)["results"]
    (wrong,) = (result for result in results if result["status"] == "incorrect")

    assert (wrong["max_abs_error"], wrong["max_rel_error"], wrong["implementation"]) == (None, None, "eager-rmsnorm")


@pytest.mark.parametrize("name", MARKUP)
def test_texts_of_a_stranger_are_in_the_document_as_they_were_written(tmp_path: Path, name: str) -> None:
    path = write_run(tmp_path / "run", times={**TIMES, "nn-rmsnorm": Status.FAILED}, reason=MARKUP[name]).path
    results = document(normbench("report", path, "--pictures", "0", "--json").out)["results"]

    assert [r["reason"] for r in results if r["status"] == "failed"] == [cleaned_field(MARKUP[name])]


def test_a_usage_error_prints_no_document(tmp_path: Path) -> None:
    for words in (("report", "--json"), ("sweep", "--widths", "0", "--json"), ("report", tmp_path / "no", "--json")):
        done = normbench(*words)
        assert (done.out, done.code) == ("", 3 if "no" in str(words[1]) else 2)
        assert done.err


def iter_until(line: Callable[[], str], beginning: str) -> Iterator[str]:
    """Lines up to the one that begins so; before it there may be a warning."""
    while True:
        yield (found := line())
        assert found, "it has ended"
        if found.startswith(beginning):
            return


def interrupted(folder: Path, *more: str) -> Done:
    """A sweep of many cells that is interrupted after its first."""
    widths = [str(width) for width in range(32, 64)]
    words = [*COMMAND, "sweep", *TINY, *PLAIN, "--widths", *widths, "--out", str(folder), "--json", *more]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=environment({}), stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stderr is not None
        first = "".join(iter_until(process.stderr.readline, "[1/"))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    return Done(code=process.returncode, out=out, err=first + err)


def test_an_interrupted_sweep_prints_what_there_is_as_one_document(tmp_path: Path) -> None:
    done = interrupted(tmp_path / "run")
    found = document(done.out)

    assert done.code == 130
    assert found["complete"] is False
    assert {result["status"] for result in found["results"]} == {"ok", "not_run"}
    assert "go on with: normbench sweep --resume" in done.err


def test_a_sweep_of_which_nothing_could_be_measured_prints_one_document(tmp_path: Path) -> None:
    words = (*TINY, *PLAIN, "--widths", "1000000000000000", "--out", tmp_path / "run")
    done = normbench("sweep", *words, "--json")

    assert done.code == 3
    assert {result["status"] for result in document(done.out)["results"]} == {"out_of_memory"}


def test_quiet_leaves_warnings_and_errors_alone_on_stderr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normbench.reporters.plots.choice.MOST", 2)
    one, other = (write_run(tmp_path / name).path for name in ("one", "other"))
    for words in (("report", one), ("report", one, other, "--out", tmp_path / "both")):
        loud = normbench(*words)
        quiet = normbench(*[tmp_path / "quiet" if word == tmp_path / "both" else word for word in words], "--quiet")
        assert (loud.code, quiet.code, quiet.err) == (0, 0, "")
        assert loud.err
        assert quiet.out == loud.out
    assert normbench("report", tmp_path / "no", "--quiet").err.startswith("error: ")
