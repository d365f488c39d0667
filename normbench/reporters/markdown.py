"""``verdict.md``: the answer first, then the tables it rests on, then how and on what it was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import jinja2

from normbench import bounds, units, verdict
from normbench.records import Cache, Case, Cell, Flag, Outcome, Run, RunHeader
from normbench.reporters import statements, traffic, trust


def render(run: Run) -> str:
    """The verdict of a run as GitHub-flavoured markdown."""
    of_run, flags = verdict.of_run(run), bounds.flags(run)
    plan = run.header.plan
    template = templates().get_template("verdict.md.j2")
    return template.render(
        headline=statements.headline(run, of_run),
        notes=[*statements.device_notes(run), *statements.advice_notes(run, of_run)],
        placements=_placements(run),
        missing=len(run.missing),
        cells=len(list(plan.cells())),
        plan=plan,
        looks=plan.precision.looks[-1],
        margin=units.percent(plan.precision.margin),
        target=units.percent(plan.precision.target),
        groups=[_group(run, group, flags) for group in of_run.groups],
        standings=[_standing(standing) for standing in statements.standings(run)],
        unmeasured=statements.unmeasured(run),
        questions=statements.open_questions(run),
        flags=statements.flag_notes(flags),
        profiles=traffic.tables(run, flags),
        noise=trust.noise_notes(run),
        limits=trust.limits_note(run, flags),
        reaches=[_reach(reach) for reach in trust.reaches(run, flags)],
        throttled=trust.throttled_note(run),
        spent=trust.time_note(run.spent),
        processes=_processes(run),
        has_wall=run.header.device.kind != "cpu",
        has_graphs=plan.graphs,
        clock=_clock(run.header.device.kind),
        caches=", ".join(f"{cache} ({_CACHES[cache]})" for cache in plan.caches),
        environment=environment_rows(run.header),
        command=" ".join(run.header.command),
    )


_CACHES = {
    Cache.WARM: "one untimed call of the same kind just before",
    Cache.COLD: "the last-level cache is overwritten before each call, outside the clock",
}


def escape(text: object) -> str:
    """Text inside a markdown table or sentence: no pipe ends a cell, no markup is read out of data."""
    flat = " ".join(str(text).split())
    return flat.translate(_ESCAPES)


_ESCAPES = str.maketrans({**{c: f"\\{c}" for c in "\\|`*_[]~"}, "<": "&lt;", ">": "&gt;", "&": "&amp;"})


def escape_code(text: object) -> str:
    """Text inside a code span, which a backtick would end."""
    return " ".join(str(text).split()).replace("`", "'")


def environment_rows(header: RunHeader) -> list[tuple[str, str]]:
    """What the run was made on, as name and value; what is absent is left out."""
    device, software = header.device, header.environment
    rows: list[tuple[str, str | None]] = [
        ("device", device.name),
        ("memory", units.size(device.memory_bytes)),
        ("last-level cache", units.size(device.cache_bytes) if device.cache_bytes else None),
        ("compute capability", ".".join(map(str, device.capability)) if device.capability else None),
        (
            "bandwidth by its properties",
            units.bandwidth(device.peak_bytes_per_s) if device.peak_bytes_per_s else None,
        ),
        ("threads", str(device.threads) if device.threads else None),
        ("torch", software.torch),
        ("CUDA", software.cuda),
        ("driver", software.driver),
        ("Triton", software.triton),
        ("Python", software.python),
        ("platform", software.platform),
        *software.packages,
        ("normbench", software.normbench),
        ("when (UTC)", header.created_utc),
    ]
    return [(name, value) for name, value in rows if value is not None]


_OF_THE_CELL = (Flag.CACHE_RESIDENT, Flag.NEAR_CACHE_SIZE)
"""Flags that mostly hold for a whole cell: said below the tables, and in results.csv, not in every line."""


def _reach(reach: trust.Reach) -> dict[str, str]:
    shares = [f"{name} {units.percent(share)}" for name, share in sorted(reach.shares, key=lambda s: -s[1])]
    return {
        "where": f"{reach.cell.rows}×{reach.cell.width} {reach.cell.dtype} {statements.describe_rest(reach.cell)}",
        "floor": units.bandwidth(reach.floor_bytes_per_s),
        "shares": ", ".join(shares),
    }


def _processes(run: Run) -> str | None:
    """Over how many processes the placements were spread, as it was; None where it was one."""
    counts = sorted({result.timing.processes for result in run.results if result.timing is not None})
    if not counts or counts == [1]:
        return None
    return f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"


def _placements(run: Run) -> str:
    """How many placements the times rest on, as it was."""
    counts = sorted(result.timing.placements for result in run.results if result.timing is not None)
    if not counts:
        return "no placement"
    return f"{counts[0]} to {counts[-1]} placements" if counts[0] != counts[-1] else f"{counts[0]} placements"


@dataclass(frozen=True, kw_only=True)
class _Line:
    width: int
    name: str
    time: str
    wall: str
    graph: str
    floor: str
    speedup: str
    outcome: str
    flags: str


def _group(run: Run, group: verdict.Group, flags: Mapping[Case, Sequence[Flag]]) -> dict[str, Any]:
    first = group.first
    return {
        "title": statements.describe_group(first),
        "short": f"{first.dtype} {statements.describe_rest(first)}",
        "rows": first.rows,
        "cache": first.cache,
        "choices": _choices(group),
        "lines": [line for cell in group.cells for line in _lines(run, cell, flags)],
    }


def _choices(group: verdict.Group) -> list[dict[str, str]]:
    """What to use, neighbouring widths with the same answer in one row."""
    pairs = ((cell.width, statements.choice_text(choice)) for cell, choice in statements.group_choices(group))
    return [
        {"widths": ", ".join(str(width) for width, _text in same), "text": text}
        for text, same in groupby(pairs, key=lambda pair: pair[1])
    ]


def _lines(run: Run, cell: Cell, flags: Mapping[Case, Sequence[Flag]]) -> list[_Line]:
    lines = []
    for result in run.results_by_cell.get(cell, ()):
        name, timing = result.case.implementation, result.timing
        comparison = run.comparison(cell, name)
        speedup = comparison.speedup if comparison else None
        floor = timing.floor_ratio if timing else None
        lines.append(
            _Line(
                width=cell.width,
                name=name,
                time=units.duration(timing.time_s.value if timing else None),
                wall=units.duration(timing.wall_s if timing else None),
                graph=units.duration(timing.graph_s if timing else None),
                floor=units.ratio(floor.value) if floor else units.ABSENT,
                speedup=units.ratio(speedup.value, speedup.low, speedup.high) if speedup else units.ABSENT,
                outcome=_outcome(run, name, str(result.status), comparison.outcome if comparison else None),
                flags=", ".join(flag for flag in flags[result.case] if flag not in _OF_THE_CELL),
            )
        )
    return lines


def _outcome(run: Run, name: str, status: str, outcome: Outcome | None) -> str:
    if status != "ok":
        return status
    special = {run.header.plan.baseline: "baseline", run.header.plan.floor: "floor"}
    return special.get(name, str(outcome) if outcome else units.ABSENT)


def _standing(standing: statements.Standing) -> dict[str, Any]:
    speedups = units.ABSENT
    if standing.low is not None and standing.high is not None:
        speedups = statements.value_range([standing.low, standing.high])
    counts = {str(outcome): count for outcome, count in standing.counts.items()}
    return {"mode": standing.mode, "candidate": standing.candidate, "speedups": speedups, **counts}


def _clock(kind: str) -> str:
    if kind == "cpu":
        return "wall time with the thread count below"
    return "device time by CUDA events while the stream is held until everything is queued, launch gaps not in it"


def templates() -> jinja2.Environment:
    """The templates, with the filters that escape what is put into them."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("normbench.reporters"),
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["md"] = escape
    environment.filters["code"] = escape_code
    return environment
