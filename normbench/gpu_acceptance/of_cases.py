"""Lines by how parts and cases ended, and by what is left of them.

What the time was over for is not shown; what broke fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from normbench import units
from normbench.gpu_acceptance import limits
from normbench.gpu_acceptance.evidence import Evidence
from normbench.gpu_acceptance.lines import Found, NotShown
from normbench.records import Run, Status, StepRun
from normbench.reporters.statements import first_few

SUMMARIES = 2
"""Files that are written when everything is judged."""
_SHOWN = 3


def every_part(evidence: Evidence) -> Found:
    """How many parts of the command ended well, and what became of the others."""
    if not evidence.endings:
        raise NotShown("no part ran")
    bad = [ending for ending in evidence.endings if not ending.is_well]
    count = f"{len(evidence.endings) - len(bad)} of {len(evidence.endings)}"
    figure = "; ".join((count, *(f"{ending.name}: {ending.why}" for ending in bad)))
    if bad and all(ending.is_cut for ending in bad):
        raise NotShown(figure)
    return Found(figure=figure, holds=not bad)


def a_status_each(evidence: Evidence) -> Found:
    """How many cases the plans have, and how many lack a final status."""
    runs = _runs(evidence)
    planned = {name: _planned(run) for name, run in runs.items()}
    final = {name: sum(result.status.is_final for result in run.results) for name, run in runs.items()}
    absent = {name: why for name, why in evidence.unread.items() if name not in ("doctor", "tests")}
    figure = "; ".join(
        (f"{sum(final.values())} of {sum(planned.values())} cases", *(f"{n}: {why}" for n, why in absent.items()))
    )
    lacking = {name for name in runs if final[name] < planned[name]} | absent.keys()
    if not runs or (lacking and lacking <= _cut(evidence)):
        raise NotShown(figure)
    return Found(figure=figure, holds=not lacking)


def all_right(evidence: Evidence) -> Found:
    """How the cases ended: whatever does not run here is unsupported, and everything else ok."""
    ends = list(_ended(evidence))
    statuses = Counter(status for _, _, status, _ in ends)
    usual = (Status.OK, Status.UNSUPPORTED, Status.NOT_RUN)
    bad = [f"{name} at {where} is {status}: {reason}" for name, where, status, reason in ends if status not in usual]
    figure = "; ".join(
        (", ".join(f"{count} {status}" for status, count in statuses.most_common()), *first_few(bad, _SHOWN, "and "))
    )
    is_whole = not statuses[Status.NOT_RUN] and not evidence.unread.keys() - {"doctor", "tests"}
    if not bad and not (is_whole and statuses[Status.OK]):
        raise NotShown(figure or "no run can be read")
    return Found(figure=figure, holds=not bad)


def output(evidence: Evidence) -> Found:
    """What the command leaves: what is packed, and the two files of its summary."""
    if evidence.left is None:
        raise NotShown("it is not packed")
    files = evidence.left.files + SUMMARIES
    figure = "; ".join(
        (f"{units.size(evidence.left.bytes)} in {units.count(files, 'file')}", *evidence.left.problems)
    )
    is_small = evidence.left.bytes <= limits.MOST_BYTES and files <= limits.MOST_FILES
    return Found(figure=figure, holds=is_small and not evidence.left.problems)


def _runs(evidence: Evidence) -> Mapping[str, Run | StepRun]:
    return {**evidence.sweeps, **evidence.profiles, **evidence.steps}


def _planned(run: Run | StepRun) -> int:
    """Cases of a run's plan."""
    cells = run.header.plan.cells if isinstance(run, StepRun) else tuple(run.header.plan.cells())
    return len(cells) * len(run.header.plan.implementations)


def _cut(evidence: Evidence) -> set[str]:
    """The parts for which the time was over."""
    return {ending.name for ending in evidence.endings if ending.is_cut}


def _ended(evidence: Evidence) -> Iterator[tuple[str, str, Status, str]]:
    """Implementation, place, status and reason of every case."""
    for result in (result for run in evidence.runs for result in run.results):
        yield result.case.implementation, str(result.case.cell), result.status, result.reason or ""
    for one in (one for steps in evidence.steps.values() for one in steps.results):
        yield one.implementation, str(one.cell), one.status, one.reason or ""
