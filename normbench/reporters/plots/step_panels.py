"""What pictures of steps share: which cells have a panel, how implementations look, and who is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normbench import units
from normbench.records import ImplementationInfo, Part, Status, StepCell, StepRun
from normbench.reporters.plots import styles
from normbench.reporters.plots.figure import width_of, wrapped
from normbench.reporters.plots.styles import Style
from normbench.reporters.statements import clipped

MOST_PANELS = 12
"""More panels than this make a picture that nobody reads."""

_SIZE = 9.0


def styles_of(run: StepRun) -> Mapping[str, Style]:
    """The style of each implementation of a run, by name."""
    return styles.of_implementations(run.header.implementations)


def kind(cell: StepCell) -> str:
    """What a panel's cells share, in few words: ``eager model, fp32``."""
    autocast = f", autocast {cell.autocast}" if cell.autocast else ""
    return f"{'compiled' if cell.compiled else 'eager'} model, {cell.dtype}{autocast}"


def title(cell: StepCell) -> str:
    """A panel of one cell: ``width 256, eager model, fp32``."""
    return f"width {cell.shape.width}, {kind(cell)}"


def missing(run: StepRun, cells: Iterable[StepCell]) -> str:
    """Who has no time in some cells: ``without a time: nn-rmsnorm (incorrect)``; empty where everybody has one."""
    found: dict[str, list[str]] = {}
    several = len(list(cells := tuple(cells))) > 1
    for cell in cells:
        results = run.results_by_cell.get(cell, {})
        for name in run.header.plan.implementations:
            result = results.get(name)
            if result is None or result.times.get(Part.STEP) is None:
                status = Status.NOT_RUN if result is None else result.status
                where = f" at {cell.shape.width}" if several else ""
                found.setdefault(f"{name} ({status})", []).append(where)
    said = "; ".join(f"{clipped(who)}{units.join(where) if any(where) else ''}" for who, where in found.items())
    return f"without a time: {said}" if said else ""


def label(axis: Axes, text: str, missing: str) -> None:
    """What stands under a panel: what it shows, and who is missing there."""
    figure = axis.get_figure(root=True)
    assert isinstance(figure, Figure)
    lines = [text]
    if missing:
        lines += wrapped(figure, missing, _SIZE, "normal", width_of(axis))
    axis.set_xlabel("\n".join(lines), size=_SIZE)


def left_out(count: int) -> str:
    """What is said of cells that have no panel; nothing where all have one."""
    return f" - {units.count(count, 'cell')} not drawn" if count > 0 else ""


def subtitle(run: StepRun, cells: Sequence[StepCell]) -> str:
    """Of what: the model's other sizes, and the device."""
    shape = cells[0].shape
    sizes = f"{units.count(shape.layers, 'layer')}, {shape.batch}×{shape.context} tokens"
    return f"{sizes} - {clipped(run.header.device.name)}"


def candidates(run: StepRun) -> list[ImplementationInfo]:
    """The implementations that are compared with the baseline."""
    return [info for info in run.header.implementations if info.name != run.header.plan.baseline]
