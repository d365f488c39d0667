"""How whole a run is: which cells are missing, and what changed while it was made."""

from __future__ import annotations

from collections.abc import Iterator

from normbench.records import Resumption, Run
from normbench.reporters import statements

_MOST_PLACES = 12
"""More places than this, each cells that differ in their width alone, are counted."""


def notes(run: Run) -> list[str]:
    """What must be known of a run that is incomplete, or that was gone on with by force."""
    return [*resumption_notes(run), *_missing(run)]


def resumption_notes(run: Run) -> list[str]:
    """Which cells were measured on something else than the run began with, and where its plan was changed."""
    return [*_elsewhere(run), *(_replanned(resumption) for resumption in run.header.resumed if resumption.plan)]


def _missing(run: Run) -> list[str]:
    if run.is_complete:
        return []
    cells = len(run.done) + len(run.missing)
    places = statements.where(run.header.plan, run.missing)
    more = [f"{len(places) - _MOST_PLACES} more such places"] if len(places) > _MOST_PLACES else []
    return [
        f"This run is incomplete: {len(run.missing)} of {cells} cells lack a final status: "
        f"{'; '.join([*places[:_MOST_PLACES], *more])}."
    ]


def _elsewhere(run: Run) -> Iterator[str]:
    resumed = run.header.resumed
    ends = [*(resumption.cells for resumption in resumed[1:]), len(run.done)]
    for resumption, end in zip(resumed, ends, strict=False):
        count = end - resumption.cells
        if resumption.differences and count > 0:
            cells = "The cell" if count == 1 else f"The {count} cells"
            yield (
                f"{cells} measured from {resumption.created_utc} on, {_place(resumption)}, ran on something else "
                f"than the run began with (--force): {'; '.join(resumption.differences)}. Compare times within one "
                "cell only; each speedup was taken within one."
            )


def _replanned(resumption: Resumption) -> str:
    changes = "; ".join(resumption.plan)
    return f"The plan of this run was changed at {resumption.created_utc}, {_place(resumption)} (--force): {changes}."


def _place(resumption: Resumption) -> str:
    """Where among the cells it came."""
    if not resumption.cells:
        return "before its first cell"
    return f"after its first {'cell' if resumption.cells == 1 else f'{resumption.cells} cells'}"
