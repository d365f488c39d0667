"""How far a run of steps can be trusted."""

from __future__ import annotations

from dataclasses import replace

from normbench.records import Status
from normbench.reporters import steps_trust
from tests.step_runs import complete_run, failed_run, make_step_run, training_run

CELL = "width 256, 4 layers, 8×256 tokens, fp32, eager model"


def test_whoever_has_no_result_is_named_with_status_place_and_reason() -> None:
    assert steps_trust.unmeasured(failed_run())[0] == ("eager-layernorm: out_of_memory", CELL, "because")
    trained = training_run()
    lost = replace(trained.curves[0], status=Status.FAILED, reason="loss is NaN", points=())
    run = replace(trained, curves=(lost, *trained.curves[1:]))
    assert steps_trust.unmeasured(run) == [("eager-rmsnorm: failed", "seed 0", "loss is NaN")]


def test_the_noise_floor_of_each_cell_is_told_and_its_absence_too() -> None:
    run = make_step_run()

    assert steps_trust.noise_notes(run) == [
        f"Noise floor, {CELL}: nn-layernorm against itself gives 1.0004 (0.9970 to 1.0038): differences below 0.38 % "
        "cannot be told apart here."
    ]
    assert steps_trust.noise_notes(replace(run, noise=())) == [
        "No A/A test ran along: how far two equal steps differ here is not known."
    ]
    assert steps_trust.noise_notes(training_run()) == []


def test_each_flag_is_explained_once_with_whom_it_is_on() -> None:
    notes = steps_trust.flag_notes(complete_run())

    assert [note.partition(":")[0] for note in notes] == [
        *("composite (4 results", "drifted (4 results", "few_samples (4 results"),
    ]
    assert notes[1].startswith("drifted (4 results: eager-rmsnorm): times drifted by more than 10 %")
    assert steps_trust.flag_notes(make_step_run()) == []
