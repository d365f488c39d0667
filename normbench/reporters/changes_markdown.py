"""What changed between two runs, as markdown that fits into a comment or a job's summary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from normbench import units
from normbench.changes import Change
from normbench.records import Outcome
from normbench.reporters import changes as words
from normbench.reporters import changes_notes, statements
from normbench.reporters.differences import differences
from normbench.reporters.markdown import templates

LIMIT = 60_000
"""Characters: GitHub refuses a comment of more than 65,536."""

_MOST_LINES = 25
"""Of each list beside the cases; what is beyond is counted."""

_TITLES = {
    Outcome.SLOWER: "Slower in HEAD",
    Outcome.FASTER: "Faster in HEAD",
    Outcome.UNDECIDED: "Undecided",
    Outcome.SAME: "The same",
}


def render(report: words.Report, limit: int = LIMIT) -> str:
    """GitHub-flavoured markdown below ``limit`` characters: what got slower first, what is cut is named."""
    every = words.ordered(report.found.changes)
    least, most = 0, len(every)
    text = _render(report, every, most)
    while least < most and len(text) >= limit:  # the largest number of lines that fits
        middle = (least + most + 1) // 2
        if len(_render(report, every, middle)) < limit:
            least = middle
        else:
            most = middle - 1
    return text if len(text) < limit else _render(report, every, least)


def _render(report: words.Report, every: Sequence[Change], shown: int) -> str:
    found = report.found
    plan = found.base.header.plan
    environment = templates()
    environment.filters["short"] = words.clipped
    return environment.get_template("changes.md.j2").render(
        headline=changes_notes.headline(report),
        gate=changes_notes.gate_note(report.gate) if report.gate else None,
        mean=changes_notes.means_note(found.means),
        broken=_capped(words.lopsided_lines(found.broken, plan)),
        differences=_capped([str(each) for each in differences(found.base.header, found.head.header)]),
        notes=changes_notes.notes(report),
        sections=_sections(report, every[:shown]),
        left_out=_left_out(every[shown:]),
        unit=f"÷ {plan.baseline}" if found.relative else "time",
        others=_capped([*_lopsided(report), *words.only_lines(found)]),
        reasons=words.reason_lines(found),
        doubts=words.doubt_lines(found),
    )


def _sections(report: words.Report, shown: Iterable[Change]) -> list[dict[str, object]]:
    by_outcome: dict[Outcome, list[dict[str, str]]] = {}
    for change in shown:
        by_outcome.setdefault(change.outcome, []).append(_line(report, change))
    if report.found.floor:
        floor = [_line(report, change) for change in report.found.floor[:_MOST_LINES]]
        return [*_titled(by_outcome), {"title": "The floor", "lines": floor}]
    return _titled(by_outcome)


def _titled(by_outcome: dict[Outcome, list[dict[str, str]]]) -> list[dict[str, object]]:
    return [{"title": _TITLES[outcome], "lines": lines} for outcome, lines in by_outcome.items()]


def _line(report: words.Report, change: Change) -> dict[str, str]:
    cell = change.case.cell
    return {
        "name": words.clipped(change.case.implementation),
        "cell": f"{statements.describe_cell(cell)}, {cell.cache}",
        "before": words.value(report.found, change.before),
        "after": words.value(report.found, change.after),
        "speedup": words.estimate(change.speedup),
        "flags": words.flags_text(change),
    }


def _lopsided(report: words.Report) -> list[str]:
    pairs = [pair for pair in report.found.lopsided if not pair.is_broken]
    lines = words.lopsided_lines(pairs, report.found.base.header.plan)
    return [f"{what}, {where}: {why}" for what, where, why in lines]


def _left_out(changes: Sequence[Change]) -> str | None:
    """What did not fit, by outcome."""
    counts = [(outcome, sum(change.outcome is outcome for change in changes)) for outcome in words.ORDER]
    return units.join([f"{count} {outcome}" for outcome, count in counts if count]) if changes else None


def _capped(lines: Sequence[object]) -> dict[str, object]:
    """The first lines of a list, and how many more there are."""
    return {"lines": lines[:_MOST_LINES], "more": max(0, len(lines) - _MOST_LINES)}
