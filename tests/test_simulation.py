"""The statistics hold on a simulated machine whose true times are known; the engine is the real one."""

from __future__ import annotations

import pytest

from benchmarks.simulation import PROCESS_BIAS, SCENARIOS, Scenario, compare_once, study, table
from normbench.records import Outcome, Precision

DEFAULT = Precision()
QUIET = SCENARIOS[0]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_identical_implementations_are_covered_and_a_true_5_percent_is_found(scenario: Scenario) -> None:
    found = study(scenario, 40, DEFAULT, slower_trials=10)

    assert found.coverage >= 0.9
    assert found.false_alarms == 0
    assert found.found == 1


@pytest.mark.parametrize(("processes", "least", "most"), [(1, 0.0, 0.7), (5, 0.9, 1.0), (10, 0.9, 1.0)])
def test_what_a_process_has_in_common_is_covered_by_fresh_processes_alone(
    processes: int, least: float, most: float
) -> None:
    found = study(PROCESS_BIAS, 60, Precision(processes=processes), slower_trials=0)

    assert least <= found.coverage <= most


@pytest.mark.slow
@pytest.mark.parametrize("processes", [5, 10])
def test_two_thousand_comparisons_over_fresh_processes_are_covered_as_often_as_they_say(processes: int) -> None:
    found = study(PROCESS_BIAS, 2000, Precision(processes=processes), workers=2, slower_trials=0)

    assert found.coverage >= 0.93
    assert found.false_alarms <= (0.02 if processes == 5 else 0.01), "five values know little: the documents say so"


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_two_thousand_comparisons_are_covered_as_often_as_they_say(scenario: Scenario) -> None:
    found = study(scenario, 2000, DEFAULT, workers=2)

    assert found.coverage >= 0.93
    assert found.false_alarms <= 0.01
    assert found.found >= 0.95


def test_the_same_seed_gives_the_same_result() -> None:
    assert compare_once(QUIET, 1.0, DEFAULT, 7) == compare_once(QUIET, 1.0, DEFAULT, 7)
    assert compare_once(QUIET, 1.0, DEFAULT, 7) != compare_once(QUIET, 1.0, DEFAULT, 8)


def test_a_clock_that_drops_half_way_is_no_difference() -> None:
    """Measured one after the other, the second would be 17.6 % slower."""
    drop = Scenario(name="drop", placement=0, sample=0, machine=0, drop_after=0.2)
    trial = compare_once(drop, 1.0, Precision(target=1e-9, max_seconds=1.0), 0)

    assert trial.outcome is Outcome.SAME
    assert trial.half_width < 1e-3


def test_an_interval_over_one_placements_rounds_would_be_far_too_narrow() -> None:
    """Why placements are the unit: with their bias alone, every round of a placement agrees."""
    biased = Scenario(name="bias", placement=0.03, sample=0, machine=0)
    found = study(biased, 30, DEFAULT, slower_trials=0)

    assert found.half_width > 0.01
    assert found.coverage >= 0.9


def test_the_table_has_a_row_a_scenario() -> None:
    text = table([study(QUIET, 2, DEFAULT, slower_trials=1)])

    assert len(text.splitlines()) == 3
    assert "| quiet | 1 | 2 |" in text
