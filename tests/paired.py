"""Runs of base and head, made without measuring: what each brings, and ratios by placement as samples give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log
from typing import Any

from normbench.records import Brought, Case, ImplementationInfo, Op, Plan, Run, Source
from normbench.run_gate import Ratios
from tests.runs import make_plan, make_run

COMMIT, OTHER = "1a2b3c4d5e" + "0" * 30, "6f7a8b9c0d" + "0" * 30
QUIET = (-0.002, -0.001, 0.0, 0.001, 0.002)
"""What placements add to a logarithm, on a quiet machine."""


def brought(name: str, attribute: str = "rmsnorm") -> Brought:
    return Brought(name=name, target=f"kernels/rms.py:{attribute}", revision="main" if name == "base" else None)


def paired_plan(**changes: Any) -> Plan:
    fields: dict[str, Any] = {
        "implementations": ("copy", "base", "head"),
        "brought": (brought("base"), brought("head")),
        "baseline": "base",
    }
    return make_plan(**{**fields, **changes})


def source(**changes: Any) -> Source:
    fields: dict[str, Any] = {"file": "kernels/rms.py", "line": 12, "commit": COMMIT, "digest": "ab" * 32}
    return Source(**{**fields, **changes})


def info(name: str, of: Source | None) -> ImplementationInfo:
    op = Op.COPY if name == "copy" else Op.RMSNORM
    return ImplementationInfo(name=name, op=op, provider=name, summary="a test's", source=of)


def paired_run(
    plan: Plan | None = None, base: Source | None = None, head: Source | None = None, **changes: Any
) -> Run:
    """A run of base and head, whose code lies there; the rest as of ``make_run``."""
    plan = plan or paired_plan()
    places = {"base": base or source(), "head": head or source(commit=OTHER, digest="cd" * 32)}
    infos = tuple(info(name, places.get(name)) for name in plan.implementations)
    made = make_run(plan, **changes)
    return replace(made, header=replace(made.header, implementations=infos))


def ratios_of(run: Run, noise: Sequence[float] = QUIET) -> Ratios:
    """Time ÷ baseline's of every case that has a time, with a placement's own deviation."""
    found = {}
    for cell, results in run.results_by_cell.items():
        times = {r.case.implementation: r.timing.time_s.value for r in results if r.timing}
        base = times.get(run.header.plan.baseline)
        for name, time in times.items() if base else ():
            logs = {(0, number): log(time / base) + each for number, each in enumerate(noise)}
            found[Case(cell=cell, implementation=name)] = logs
    return found
