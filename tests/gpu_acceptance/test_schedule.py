from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from normbench.gpu_acceptance import packages, running, schedule
from normbench.gpu_acceptance.parts import Kind, Part
from normbench.gpu_acceptance.running import Ending
from normbench.gpu_acceptance.schedule import in_turn

PARTS = (
    Part(kind=Kind.DOCTOR, name="doctor", most_s=50),
    Part(kind=Kind.TESTS, name="tests", most_s=100),
    Part(kind=Kind.SWEEP, name="sweep", most_s=80),
)
ENOUGH_S = 1000.0


class Ran:
    """Stands for running: writes down what was asked for, and ends at once."""

    def __init__(self, ends: Callable[[str], Ending] = lambda name: Ending(name=name, seconds=1.0, code=0)) -> None:
        self._ends = ends
        self.asked: dict[str, dict[str, Any]] = {}

    def __call__(self, name: str, words: object, **options: Any) -> Ending:
        self.asked[name] = {"words": words, **options}
        return self._ends(name)


def turns(
    monkeypatch: pytest.MonkeyPatch, folder: Path, ran: Ran, left_s: float = ENOUGH_S, *, quiet: bool = True
) -> dict[str, Ending]:
    monkeypatch.setattr(running, "run", ran)
    endings = in_turn(PARTS, folder, "cuda:0", time.monotonic() + left_s, quiet=quiet)
    return {ending.name: ending for ending in endings}


def test_each_part_runs_on_the_device_with_its_own_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran = Ran()
    found = turns(monkeypatch, tmp_path, ran)
    assert all(ending.is_well for ending in found.values())
    assert {name: one["most_s"] for name, one in ran.asked.items()} == {"doctor": 50, "tests": 100, "sweep": 80}
    assert ran.asked["doctor"]["results"] == tmp_path / "doctor.json"
    assert ran.asked["sweep"]["results"] is None
    assert "cuda:0" in ran.asked["sweep"]["words"]
    words = ran.asked["tests"]["words"]
    assert words[-3:] == ("--gpu", "cuda:0", str(schedule.TESTS))


def test_no_part_gets_more_time_than_is_left_for_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran = Ran()
    turns(monkeypatch, tmp_path, ran, left_s=running.GRACE_S + 60)
    assert ran.asked["doctor"]["most_s"] == 50
    assert 55 < ran.asked["tests"]["most_s"] <= 60


def test_what_there_is_no_time_for_is_not_begun_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran = Ran()
    found = turns(monkeypatch, tmp_path, ran, left_s=running.GRACE_S + 1)
    assert ran.asked == {}
    assert {(ending.code, ending.why) for ending in found.values()} == {(None, "not begun: the time was over")}


def test_after_an_interrupt_nothing_is_begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran = Ran(lambda name: Ending(name=name, code=130, why="interrupted", is_interrupted=True))
    found = turns(monkeypatch, tmp_path, ran)
    assert list(ran.asked) == ["doctor"]
    assert found["sweep"].why == "not begun: interrupted before it"


def test_an_interrupt_between_two_parts_is_one_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(_name: str) -> Ending:
        raise KeyboardInterrupt

    found = turns(monkeypatch, tmp_path, Ran(interrupted))
    assert found["doctor"].is_interrupted
    assert found["tests"].why == "not begun: interrupted before it"


def test_a_part_that_failed_costs_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran = Ran(lambda name: Ending(name=name, code=3, why="error: no"))
    turns(monkeypatch, tmp_path, ran)
    assert list(ran.asked) == ["doctor", "tests", "sweep"]


@pytest.mark.parametrize(("absent", "said"), [("pytest", "pytest"), ("hypothesis", "hypothesis")])
def test_without_what_the_tests_need_they_are_skipped_by_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, absent: str, said: str
) -> None:
    monkeypatch.setattr(packages, "is_here", lambda module: module != absent)
    ran = Ran()
    found = turns(monkeypatch, tmp_path, ran)
    assert (found["tests"].code, found["tests"].why) == (None, f"not run: {said} not installed")
    assert list(ran.asked) == ["doctor", "sweep"]


def test_where_the_package_is_installed_without_its_tests_that_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(schedule, "ROOT", tmp_path)
    found = turns(monkeypatch, tmp_path, Ran())
    assert found["tests"].why == "not run: the tests are not installed; run it in a checkout"


def test_each_part_is_told_as_it_begins_with_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turns(monkeypatch, tmp_path, Ran(), left_s=running.GRACE_S + 300.4, quiet=False)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "[1/3] doctor, at most 50 s; 5 min 00 s left for all"
    assert [line[:5] for line in said] == ["[1/3]", "[2/3]", "[3/3]"]
