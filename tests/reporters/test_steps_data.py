"""A run of steps as plain data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from normbench.cli.output import json_text
from normbench.records import STEP_KEY, StepRun
from normbench.reporters import steps
from normbench.reporters.steps_data import as_dictionary
from tests.step_runs import complete_run, empty_run, failed_run, make_step_run, training_run


def data(run: StepRun) -> Any:
    return json.loads(json_text(as_dictionary(run)))


def test_it_holds_the_answer_the_plan_and_every_record() -> None:
    run = complete_run()
    found = data(run)

    assert (found["complete"], found["headline"]) == (True, steps.headline(run))
    assert (found["plan"]["baseline"], found["device"]["kind"], found["command"][1]) == (
        "nn-layernorm",
        "cpu",
        "step",
    )
    counts = [len(found[name]) for name in ("results", "comparisons", "noise", "predictions", "curves", "missing")]
    assert counts == [24, 20, 4, 20, 0, 0]


def test_a_result_has_its_cell_side_by_side_and_numbers_as_numbers() -> None:
    result = data(complete_run())["results"][1]

    assert list(result)[: len(STEP_KEY)] == list(STEP_KEY)
    assert {name: result[name] for name in ("width", "layers", "autocast", "compiled", "dtype", "optimizer")} == {
        "width": 256,
        "layers": 4,
        "autocast": None,
        "compiled": False,
        "dtype": "fp32",
        "optimizer": "adamw",
    }
    assert (result["implementation"], result["op"], result["status"]) == ("eager-rmsnorm", "rmsnorm", "ok")
    assert result["step_s"] == pytest.approx(0.1087)
    assert result["step_low_s"] < result["step_s"] < result["step_high_s"]
    assert result["forward_s"] == pytest.approx(0.3 * 0.1087)
    assert result["tokens_per_s"] == pytest.approx(2048 / 0.1087)
    assert result["norms_share"] == pytest.approx(0.1 * 1.87 / 1.087)
    assert result["flags"] == ["drifted"]


def test_a_comparison_says_both_how_much_faster_and_how_much_longer() -> None:
    found = data(make_step_run())["comparisons"][1]

    assert (found["candidate"], found["outcome"], found["reason"]) == (
        *("eager-rmsnorm", "slower", "interval_excludes_1"),
    )
    assert found["as_long"] == pytest.approx(1.087)
    assert found["speedup"] == pytest.approx(1 / 1.087)
    assert found["as_long_low"] == pytest.approx(1 / found["speedup_high"])
    assert found["as_long_high"] == pytest.approx(1 / found["speedup_low"])


def test_a_prediction_has_seconds_and_its_gap() -> None:
    found = data(complete_run())["predictions"][4]

    assert found["predicted"]["value_s"] == pytest.approx(-0.003)
    assert found["measured"]["value_s"] == pytest.approx(-0.006)
    assert (found["gap"], found["gap_s"], found["norms"]) == ("less", pytest.approx(-0.003), 9)


def test_whatever_has_no_time_has_none_for_it_and_its_reason() -> None:
    result = data(failed_run())["results"][0]

    assert (result["step_s"], result["tokens_per_s"], result["norms_share"]) == (None, None, None)
    assert (result["status"], result["reason"]) == ("out_of_memory", "because")


def test_training_has_every_point_and_the_verdict() -> None:
    found = data(training_run())

    assert found["curves"][0]["points"][-1]["by_corpus"] == [pytest.approx(2.2), pytest.approx(2.4)]
    quality = {each["candidate"]: each for each in found["quality"]}
    assert quality["nn-rmsnorm"]["outcome"] == "same"
    assert quality["nn-rmsnorm"]["difference"] == pytest.approx(0.0012667, abs=1e-6)
    assert quality["nn-rmsnorm"]["noise"] == pytest.approx(0.04)


def test_what_is_missing_is_listed() -> None:
    found = data(empty_run())

    assert found["complete"] is False
    assert [(cell["width"], cell["compiled"]) for cell in found["missing"]] == [
        *((256, False), (512, False), (256, True), (512, True)),
    ]


def test_there_is_no_number_that_json_has_not() -> None:
    for run in (complete_run(), failed_run(), empty_run(), training_run()):
        json.dumps(as_dictionary(run), allow_nan=False)
