from __future__ import annotations

import io
import json
from typing import Any

import pytest

from normbench.gpu_acceptance.criteria import CRITERIA
from normbench.gpu_acceptance.evidence import Evidence
from normbench.gpu_acceptance.lines import judged
from normbench.gpu_acceptance.running import Ending
from normbench.gpu_acceptance.summary import Summary, as_dictionary, markdown, show
from normbench.reporters.terminal import console
from tests.gpu_acceptance.good import diagnosis, evidence

ENDINGS = (Ending(name="doctor", seconds=20.0, code=0), Ending(name="step", why="not begun: the time was over"))


def summary(found: Evidence | None = None, **changes: Any) -> Summary:
    found = found or evidence()
    fields: dict[str, Any] = {
        "created_utc": "2026-01-02T03:04:05Z",
        "seconds": 412.0,
        "allowed_s": 480.0,
        "diagnosis": found.diagnosis,
        "sweeps": found.sweeps,
        "lines": judged(CRITERIA, found),
        "endings": ENDINGS,
        "missed": {"apex": "its kernels"},
    }
    return Summary(**{**fields, **changes})


def shown(of: Summary) -> str:
    text = io.StringIO()
    show(of, console(text))
    return text.getvalue()


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (evidence(), "16 of 16 lines hold"),
        (evidence(diagnosis=diagnosis(0.02)), "15 of 16 lines hold, 1 FAILS"),
        (evidence(diagnosis=None), "15 of 16 lines hold, 1 not shown"),
        (
            evidence(on_gpu=False),
            "No GPU, and nothing about one is shown here: 5 of 16 lines hold, 11 need one",
        ),
    ],
)
def test_one_sentence_says_how_many_lines_hold(found: Evidence, said: str) -> None:
    of = summary(found)
    assert of.conclusion == said
    assert shown(of).splitlines()[-1] == f"{said}."
    assert markdown(of).splitlines()[0] == f"**{said}.**"


def test_the_table_of_lines_comes_last_with_every_figure_and_parts_and_packages_before() -> None:
    of = summary()
    text = shown(of)
    places = [text.index(word) for word in ("sweep-bf16-large: ", "Parts", "apex", "Acceptance", of.lines[0].what)]
    assert places == sorted(places)
    assert all(line.figure in text and line.asked in text for line in of.lines)
    assert "not begun: the time was over" in text


def test_a_pull_request_gets_the_same_with_the_machine() -> None:
    text = markdown(summary())
    assert "| doctor | 20 s | done |" in text
    assert "| step |  | not begun: the time was over |" in text
    assert "| device | A GPU |" in text
    assert "- sweep-bf16-large: " in text
    assert "| took | 6 min 52 s of 8 min 00 s |" in text


def test_a_program_reads_the_same() -> None:
    found = json.loads(json.dumps(as_dictionary(summary())))
    assert {line["outcome"] for line in found["lines"]} == {"holds"}
    assert found["parts"][1] == {
        "name": "step",
        "seconds": 0.0,
        "code": None,
        "why": "not begun: the time was over",
        "is_cut": False,
        "is_interrupted": False,
    }
    assert found["machine"]["device"] == "A GPU"
    assert found["not_installed"] == {"apex": "its kernels"}


def test_without_a_diagnosis_nothing_is_said_of_the_machine() -> None:
    assert as_dictionary(summary(evidence(diagnosis=None)))["machine"] == {}
