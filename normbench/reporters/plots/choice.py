"""Which pictures a run has, the most informative first, and which of them are left out where they are many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from normbench.records import Cell, Run, Status

MOST = 12
"""How many pictures are drawn unless told: about five seconds of drawing, as long as they are not too full."""

MOST_POINTS = 12_000
"""How many points all pictures together have unless told: two thousand take about half a second."""

_RANKS = {"speedup": 0, "time": 0, "traffic": 0, "roofline": 1, "bandwidth": 2}
"""Kinds in the order of pictures that are equally informative, and how soon each may be left out, 2 first."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One picture: its file name without extension, its kind, and the cells it shows."""

    name: str
    kind: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """The names of the pictures that are drawn, and of those that are left out, the most informative first."""

    drawn: tuple[str, ...]
    left_out: tuple[str, ...]


def planned(run: Run, most: int | None = None) -> Planned:
    """What drawing at most ``most`` pictures of a run draws, and what it leaves out. Draws nothing."""
    every = pictures(run)
    count, names = _fitting(run, every, most), [picture.name for picture in every]
    return Planned(drawn=tuple(names[:count]), left_out=tuple(names[count:]))


def chosen(run: Run, most: int | None = None) -> list[Picture]:
    """The first ``most`` pictures; unless told as many as are drawn in about five seconds, and at least one."""
    every = pictures(run)
    return every[: _fitting(run, every, most)]


def _fitting(run: Run, every: Sequence[Picture], most: int | None) -> int:
    if most is not None:
        return max(most, 0)
    points = accumulate(_size(run, picture.cells)[0] for picture in every)
    return max(1, min(MOST, sum(count <= MOST_POINTS for count in points)))


def pictures(run: Run) -> list[Picture]:
    """Every picture of a run: speedup, time and bytes by op before bandwidth, larger sets of cells first.

    Kinds of the same rank take turns, so that a run of many sets has time and speedup of the largest of them.
    """
    sets = [*_sets(run).items()]
    sets.sort(key=lambda item: _size(run, item[1]), reverse=True)
    found = [
        (_RANKS[kind], turn, Picture(name=f"{kind}-{suffix}", kind=kind, cells=tuple(cells)))
        for kind in ("speedup", "time", "bandwidth")
        for turn, (suffix, cells) in enumerate(sets)
    ]
    for turn, mode in enumerate(dict.fromkeys(profile.case.cell.mode for profile in run.profiles)):
        profiled = tuple(dict.fromkeys(p.case.cell for p in run.profiles if p.case.cell.mode is mode))
        measured = tuple(cell for cell in run.results_by_cell if cell.mode is mode)
        for kind, cells in (("traffic", profiled), ("roofline", measured)):
            found.append((_RANKS[kind], turn, Picture(name=f"{kind}-{mode}", kind=kind, cells=cells)))
    order = list(_RANKS)
    found.sort(key=lambda item: (item[0], item[1], order.index(item[2].kind)))
    return [picture for _rank, _turn, picture in found]


def _sets(run: Run) -> dict[str, list[Cell]]:
    """Cells that share a picture, by its name: everything but dtype and width is the same, or follows the dtype.

    Only sets of which something was tried.
    """
    sets: dict[str, list[Cell]] = {}
    plan = run.header.plan
    for cell in plan.cells():
        parts = [str(cell.mode)]
        parts += [f"{cell.rows}rows"] if len(plan.rows) > 1 else []
        parts += [str(cell.cache)] if len(plan.caches) > 1 else []
        parts += [f"autocast-{cell.autocast or 'off'}"] if len(plan.autocasts) > 1 else []
        parts += [f"parameters-{cell.parameter_dtype}"] if len(plan.parameter_dtypes) > 1 else []
        sets.setdefault("-".join(parts), []).append(cell)
    return {
        name: cells
        for name, cells in sets.items()
        if any(r.status is not Status.NOT_RUN for cell in cells for r in run.results_by_cell.get(cell, ()))
    }


def _size(run: Run, cells: Sequence[Cell]) -> tuple[int, int]:
    """How many times a set has; of equals the one with the larger tensors says more about memory."""
    timed = sum(r.timing is not None for cell in cells for r in run.results_by_cell.get(cell, ()))
    return timed, max(cell.elements for cell in cells)
