"""A run's gate: what its samples say of its threshold, and the exit code that this asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from normbench.errors import IncompleteError, RegressionError, StorageError

if TYPE_CHECKING:
    from normbench.records import Run
    from normbench.run_gate import Ratios, RunGate


def judged(folder: Path, run: Run) -> RunGate | None:
    """What the run's own gate finds; None where it has none."""
    from normbench import run_gate

    threshold = run.header.plan.fail_on
    return None if threshold is None else run_gate.examine(run, threshold, _ratios(folder, run))


def _ratios(folder: Path, run: Run) -> Ratios | None:
    from normbench.storage.samples import logarithms

    try:
        return logarithms(folder, run, relative=True)
    except StorageError:  # a report says so of the samples, and of the gate that it can't be judged without
        return None


def refuse_regression(gate: RunGate | None) -> None:
    """A RegressionError where the gate fails."""
    from normbench.reporters.gate import message

    if gate is not None and gate.fails:
        raise RegressionError(message(gate))


def refuse_unjudged(gate: RunGate | None, folder: Path) -> None:
    """An IncompleteError where anything could not be judged."""
    from normbench.reporters.gate import message

    if gate is not None and not gate.passes:
        raise IncompleteError(message(gate), hint=f"{folder}/verdict.md says of each cell why")
