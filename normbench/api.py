"""What ``import normbench`` offers to a program: the commands as functions, which return records and raise errors."""

from __future__ import annotations

import io
import tempfile
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from normbench.cli import compare as comparing
from normbench.cli import gating, planning, rendering
from normbench.cli.beginning import begun, refuse_graphs
from normbench.cli.bringing import catalog_with
from normbench.cli.interrupts import Unheeded
from normbench.cli.neighbours import Sharing, warnings_told
from normbench.cli.running import completed, import_needed
from normbench.errors import UsageError
from normbench.implementations import Catalog
from normbench.records import Plan, Run

if TYPE_CHECKING:
    from normbench.changes import Changes
    from normbench.device import Device

_Path: TypeAlias = str | PathLike[str]


def plan(**keys: object) -> Plan:
    """A plan from the words of a plan file: ``plan(widths=[256, 512], dtypes="bf16", modes="forward")``.

    Args:
        keys: The long names of the options of ``normbench sweep``, with ``_`` for ``-``. What is not said is decided
            by the device, which ``device`` names.

    Raises:
        UsageError: A key that there is not, with the nearest, or a value that is not allowed, with what is.
    """
    return planning.of_keys(keys)


def read_plan(path: _Path, *, device: str | None = None) -> Plan:
    """The plan in a file.

    Args:
        path: The file.
        device: Decides what the file does not say, in the place of the device that it names.

    Raises:
        UsageError: Names file and key, and what is allowed.
    """
    return planning.of_file(Path(path), device)


def write_plan(plan: Plan, path: _Path, *, device: str | None = None) -> None:
    """Write a plan as a new plan file, every default spelled out.

    Args:
        plan: The plan.
        path: The file, which is not there yet.
        device: The device that the file is to name; None for any.

    Raises:
        UsageError: The file exists or can't be written, or the plan has what no option can ask for.
    """
    planning.write(plan, Path(path), device)


def sweep(
    plan: Plan,
    *,
    device: str | None = None,
    out: _Path | None = None,
    progress: Callable[[str], object] | None = None,
    share_device: bool = False,
    wait: bool = False,
) -> Run:
    """Measure a plan, as ``normbench sweep`` does, and return the run, complete or not.

    KeyboardInterrupt ends it at once: the worker processes are ended, and ``out`` holds each cell that was complete,
    to go on with by ``normbench sweep --resume``. No signal handler is installed. What makes results doubtful is said
    by ``warnings``, as RuntimeWarning.

    Args:
        plan: What to measure.
        device: ``cpu``, ``cuda`` or ``cuda:N``; the GPU if there is one.
        out: A new folder, into which the run and its reports are written; by default nothing stays on the disk, and
            samples are not kept.
        progress: Told in lines how it gets on: ``print``.
        share_device: Measure although another run of normbench is on the device, and flag the results.
        wait: Where another run of normbench is on the device, begin when it has ended.

    Raises:
        UsageError: The device or the folder can't be used, or the plan is not possible there; nothing has run.
        BusyError: Another run of normbench holds the device.
        NormbenchError: What ended the run; what was measured before is in ``out``.
    """
    sharing = Sharing(what="sweep", share=share_device, wait=wait)
    return _measured(plan, device, out, progress, sharing)


def profile(
    plan: Plan,
    *,
    device: str | None = None,
    out: _Path | None = None,
    progress: Callable[[str], object] | None = None,
    share_device: bool = False,
    wait: bool = False,
) -> Run:
    """Measure a plan and count bytes, kernels and memory of every case: the run's ``profiles``.

    Arguments and errors are those of :func:`sweep`; traces are in ``out`` alone.
    """
    sharing = Sharing(what="profile", share=share_device, wait=wait)
    return _measured(replace(plan, profile=True), device, out, progress, sharing)


def load(path: _Path) -> Run:
    """The run in a folder, as far as it got; needs no torch.

    Raises:
        StorageError: Names the file, the line and the field that can't be read.
    """
    from normbench.storage import load

    return load(Path(path))


def verdict_markdown(run: Run) -> str:
    """What a run says, as ``verdict.md`` has it; needs no torch."""
    from normbench.reporters import document, markdown

    return markdown.render_document(document.of_run(run))


def write_reports(run: Run, folder: _Path) -> None:
    """Write ``verdict.md``, ``report.html`` and ``plots/`` of a run into a folder, made where it is not there.

    Args:
        run: The run.
        folder: Where to; where it is the run's own, its samples are shown too.

    Raises:
        StorageError: It can't be written, or the samples in it can't be read.
    """
    from normbench.storage import make_folder

    target = Path(folder)
    if not target.is_dir():
        make_folder(target)
    rendering.write_reports(target, run, target, gate=gating.judged(target, run), quiet=True)


def compare(base: _Path, head: _Path, *, relative: bool = False) -> Changes:
    """What changed between the runs in two folders, case by case; needs no torch.

    Args:
        base: The folder of the run that is compared with.
        head: The folder of the run that is compared.
        relative: Compare each time ÷ its own run's baseline, which cancels the machine.

    Raises:
        StorageError: A file can't be read.
        IncompleteError: Their times are not comparable.
        UsageError: One is no folder of a sweep.
    """
    return comparing.compared(Path(base), Path(head), relative=relative)[0]


def _measured(
    plan: Plan,
    device_name: str | None,
    out: _Path | None,
    progress: Callable[[str], object] | None,
    sharing: Sharing,
) -> Run:
    from normbench.reporters.terminal import console

    import_needed()
    with ExitStack() as stack:
        stack.enter_context(warnings_told(_warn))
        path = Path(stack.enter_context(tempfile.TemporaryDirectory()), "run") if out is None else Path(out)
        ready = partial(_ready, plan, device_name)
        known = stack.enter_context(catalog_with(plan.brought))
        _refuse_unknown(plan, known)
        folder, site = stack.enter_context(begun(ready, device_name, known, path, sharing))
        shown = console(_Lines(progress))
        run, failure = completed(folder, site, Unheeded(), shown=shown, quiet=progress is None)
        if out is not None:
            rendering.write_reports(folder.path, run, folder.path, gate=gating.judged(folder.path, run), quiet=True)
    if failure is not None:
        raise failure
    return run


def _refuse_unknown(plan: Plan, known: Catalog) -> None:
    unknown = [name for name in plan.implementations if name not in known.names]
    if unknown:
        raise UsageError(
            f"there is no implementation {', '.join(map(repr, unknown))}",
            hint=f"there are {', '.join(known.names)}; others are brought: normbench.plan(impls=[...])",
        )


def _ready(plan: Plan, device_name: str | None) -> tuple[Device, Plan]:
    from normbench.device import detect

    device = detect(device_name)
    refuse_graphs(plan, device)
    return device, plan


def _warn(message: str, hint: str | None) -> None:
    warnings.warn(f"{message}; {hint}" if hint else message, RuntimeWarning, stacklevel=2)


class _Lines(io.StringIO):
    """A stream that tells each line that is written to it."""

    def __init__(self, told: Callable[[str], object] | None) -> None:
        super().__init__()
        self._told = told
        self._rest = ""

    def write(self, text: str, /) -> int:
        *lines, self._rest = f"{self._rest}{text}".split("\n")
        for line in lines:
            if self._told is not None:
                self._told(line)
        return len(text)
