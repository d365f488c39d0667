"""The sentences and tables of a profile say what the numbers say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from normbench import bounds
from normbench.attribution import Cause, Explanation
from normbench.records import Case, Flag, KernelTime
from normbench.reporters import markdown, plots, traffic
from normbench.reporters.traffic import sentence
from tests.runs import around, make_plan, make_run, profiled_run

CELL = next(make_plan().cells())


def explanation(time: float, size: float, share: float | None, **changes: object) -> Explanation:
    fields = {
        "case": Case(cell=CELL, implementation="eager-rmsnorm"),
        "baseline": "nn-layernorm",
        "time_ratio": around(time),
        "byte_ratio": size,
        "launch_ratio": 6.0,
        "cause": Cause.TRAFFIC,
        "share": share,
    }
    return Explanation(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            explanation(7.8, 9.0, 1.07),
            "eager-rmsnorm moves 9.0 times the bytes of nn-layernorm and takes 7.8 times as long: "
            "traffic explains it",
        ),
        (
            explanation(4.0, 2.0, 0.5),
            "eager-rmsnorm moves 2.0 times the bytes of nn-layernorm and takes 4.0 times as long: "
            "traffic explains 50 % of it (of logarithms)",
        ),
        (
            explanation(2.0, 9.0, 3.2),
            "eager-rmsnorm moves 9.0 times the bytes of nn-layernorm and takes 2.0 times as long: "
            "less than the bytes would cost in memory: caches absorb some of them",
        ),
        (
            explanation(2.0, 1.0, 0.0),
            "eager-rmsnorm moves as many bytes as nn-layernorm and takes 2.0 times as long: "
            "not traffic: computing, threads or launches make the difference",
        ),
        (
            explanation(1.01, 1.0, None),
            "eager-rmsnorm moves as many bytes as nn-layernorm and takes as long (within 2 %): as expected",
        ),
        (
            explanation(5.5, 9.0, 1.05, cause=Cause.LAUNCHES),
            "eager-rmsnorm runs 6.0 times the kernels of nn-layernorm and takes 5.5 times as long: "
            "both are launch-bound, and the launches explain it",
        ),
    ],
    ids=["all of it", "half of it", "caches", "same bytes", "same time", "launches"],
)
def test_a_reader_is_told_bytes_time_and_whether_the_one_explains_the_other(found: Explanation, said: str) -> None:
    assert sentence(found, 0.02) == said


def test_a_cells_table_has_a_row_for_each_profile_and_absent_values_are_marked() -> None:
    run = profiled_run()
    (table,) = traffic.tables(run, bounds.flags(run))
    base, eager, rms = table.lines
    assert (base.name, base.op_bytes, base.launches, base.saved, base.peak) == (
        "nn-layernorm", "32.0 KiB", "3", "0 B", "1.00 MiB",
    )  # fmt: skip
    assert (eager.byte_ratio, eager.time_ratio, eager.explained) == ("2.00", "2.00", "100 %")
    assert (rms.op_bytes, rms.amplification, rms.launches, rms.byte_ratio) == ("-", "-", "-", "-")
    assert table.missing == (
        "eager-rmsnorm: a gradient was accumulated",
        "nn-rmsnorm: no op bytes: why not",
        "nn-rmsnorm: no kernels: no GPU events",
    )
    assert dict(table.kernels)["eager-rmsnorm"] == "2 × mul|x 3.00 µs (75 %), pow 1.00 µs (25 %)"


def test_the_verdict_has_the_profile_and_escapes_what_kernels_are_called() -> None:
    text = markdown.render(profiled_run())
    assert "## Where the bytes go" in text
    assert "traffic explains it." in text
    assert "mul\\|x" in text


def test_beside_other_programs_nothing_is_judged() -> None:
    run = profiled_run()
    busy = replace(run, results=tuple(replace(r, flags=(Flag.BUSY_MACHINE,)) for r in run.results))
    (table,) = traffic.tables(busy, bounds.flags(busy))
    (said,) = table.sentences
    assert said.startswith("Other programs ran")


def test_kernels_that_took_quite_another_time_than_the_case_are_warned_of() -> None:
    run = profiled_run()
    slow = replace(run.profiles[0], kernels=(KernelTime(name="mul", calls=1, seconds=1.0),))
    disturbed = replace(run, profiles=(slow, *run.profiles[1:]))
    (table,) = traffic.tables(disturbed, bounds.flags(disturbed))
    assert table.missing[0] == "nn-layernorm: its kernels took 1.00 s in the profile, 4.00 µs when it was timed"


def test_a_run_without_profiles_says_nothing_of_bytes() -> None:
    assert "Where the bytes go" not in markdown.render(make_run())
    assert traffic.tables(make_run(), {}) == []
    assert plots.planned(make_run()).drawn == ("speedup-forward", "time-forward", "bandwidth-forward")
