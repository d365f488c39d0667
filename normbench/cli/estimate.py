"""What a plan will take: the cells, their memory, the time. Printed by ``--dry-run``, used for the time left."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING

from normbench import traffic, units
from normbench.implementations import Catalog
from normbench.records import Cell, Plan

if TYPE_CHECKING:
    from normbench.device import Device

_COMPILE_S = 1.5
_FIRST_COMPILE_S = 15.0
_CHECK_S = 2.0
_RECHECK_S = 0.3
_PROFILE_S = 1.5
_PROCESS_S = 3.0


def compiled(names: Collection[str], catalog: Catalog) -> int:
    """How many of these implementations are compiled."""
    return sum(one.compiled for one in catalog.chosen(names))


def cell_seconds(plan: Plan, catalog: Catalog) -> float:
    """What a cell takes where it does not settle early."""
    compiling = _COMPILE_S * compiled(plan.implementations, catalog)
    return plan.precision.max_seconds + _apart_seconds(plan) + compiling


def _apart_seconds(plan: Plan) -> float:
    """What a cell takes besides measuring and compiling: checking, in each process, and profiling."""
    profiling = _PROFILE_S * len(plan.implementations) if plan.profile else 0.0
    return _CHECK_S + _RECHECK_S * (plan.precision.processes - 1) + profiling


def _start_seconds(plan: Plan) -> float:
    """What starting processes takes, several at a time."""
    processes = plan.precision.processes
    return _PROCESS_S * -(-processes // (os.cpu_count() or 1)) if processes > 1 else 0.0


def show(plan: Plan, cells: list[Cell], device: Device, catalog: Catalog, *, as_json: bool) -> None:
    """Print the cells, the memory each takes and the time they take together; measure nothing."""
    from normbench.cli.output import emit, json_text, results
    from normbench.limits import usable
    from normbench.reporters.terminal import say

    count, free = len(plan.implementations), device.free_bytes()
    needs = {cell: traffic.cell_bytes(cell, count) for cell in cells}
    fitting = [cell for cell in cells if traffic.cell_bytes(cell, count, shared=True) <= usable(free)]
    compiling = len(fitting) * compiled(plan.implementations, catalog) * _COMPILE_S
    seconds = len(fitting) * (plan.precision.max_seconds + _apart_seconds(plan)) + compiling
    seconds += _start_seconds(plan) if fitting else 0
    seconds += _FIRST_COMPILE_S if compiling else 0
    seconds = min(seconds, plan.precision.total_seconds or seconds)
    if as_json:
        listed = [{**vars(cell), "memory_bytes": need, "fits": cell in fitting} for cell, need in needs.items()]
        found = {"cells": listed, "available_bytes": free, "seconds": seconds, "compile_seconds": compiling}
        emit(json_text(found))
        return
    with results() as out:
        for cell, need in needs.items():
            beyond = "" if cell in fitting else ", more than there is: out_of_memory"
            say(out, f"{cell}: {units.size(need)}{beyond}")
        names, largest = ", ".join(plan.implementations), max(needs.values(), default=0)
        say(out, f"{len(cells)} cells × {count} implementations on {device.info.name}: {names}")
        say(out, f"memory: {units.size(largest)} for the largest cell, {units.size(free)} available")
        about = units.time_left(seconds)
        say(out, f"time: about {about} where no cell settles early, compiling and checking included")
