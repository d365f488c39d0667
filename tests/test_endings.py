from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from normbench import endings
from normbench.endings import Ending, memory_kills, timed_out
from normbench.failures import Failure
from normbench.records import Status


def counting(*counts: int | None) -> Ending:
    """The end of a process, before and after which the system says that it has killed so many."""
    iterator: Iterator[int | None] = iter(counts)
    return Ending(lambda: next(iterator))


@pytest.mark.parametrize(
    ("exit_code", "reason"),
    [
        (-signal.SIGSEGV, "its process was ended by SIGSEGV (segmentation fault)"),
        (-signal.SIGBUS, "its process was ended by SIGBUS (bus error)"),
        (-signal.SIGKILL, "its process was ended by SIGKILL (killed)"),
        (-250, "its process was ended by signal 250"),
        (0, "its process ended by itself (exit code 0)"),
        (1, "its process ended by itself (exit code 1)"),
        (None, "its process ended by itself (exit code None)"),
    ],
)
def test_the_end_of_a_process_is_a_failure_that_says_how_it_ended(exit_code: int | None, reason: str) -> None:
    assert counting(3, 3).explain(exit_code) == Failure(status=Status.FAILED, reason=reason)


def test_a_process_that_the_system_killed_for_want_of_memory_was_out_of_it() -> None:
    why = counting(3, 4).explain(-signal.SIGKILL)
    assert why.status is Status.OUT_OF_MEMORY
    assert why.reason == "its process was killed by the system for want of memory"


@pytest.mark.parametrize(("before", "after"), [(None, 4), (3, None), (None, None), (3, 3)])
def test_what_is_not_known_to_be_a_want_of_memory_is_not_called_one(before: int | None, after: int | None) -> None:
    assert counting(before, after).explain(-signal.SIGKILL).status is Status.FAILED


def test_another_processs_want_of_memory_does_not_explain_a_crash() -> None:
    assert counting(3, 4).explain(-signal.SIGSEGV).status is Status.FAILED


def test_the_systems_counter_is_read_where_there_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    group, machine = tmp_path / "memory.events", tmp_path / "vmstat"
    monkeypatch.setattr(endings, "_COUNTERS", (group, machine))
    assert memory_kills() is None
    machine.write_text("nr_free_pages 5\noom_kill 7\nother 1\n", encoding="ascii")
    assert memory_kills() == 7
    group.write_text("low 0\noom 9\noom_kill 2\noom_group_kill 0\n", encoding="ascii")
    assert memory_kills() == 2, "the container's own comes first"


def test_who_takes_too_long_is_timed_out() -> None:
    assert timed_out(2.5) == Failure(
        status=Status.TIMED_OUT, reason="busy for over 2.5 s without a pause: its process was ended"
    )
