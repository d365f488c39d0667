"""Runs a plan of steps, or of training, into a folder, and reports whatever the end is."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from normbench.cli import step_estimate, surroundings
from normbench.cli.neighbours import Neighbours, Sharing, claimed
from normbench.cli.output import note
from normbench.cli.running import header_of, measured, refuse_existing, written_alone
from normbench.cli.step_plan import StepRequest, norm_plan, step_command, step_plan
from normbench.errors import IncompleteError, NormbenchError, UsageError
from normbench.implementations import NAMES, chosen
from normbench.records import StepHeader, StepPlan, StepRun

if TYPE_CHECKING:
    from normbench.cli.interrupts import Interrupts
    from normbench.device import Device
    from normbench.storage import StepFolder
    from normbench.training.corpora import Text

_NEEDED = (
    "normbench.cli.measuring",
    "normbench.cli.progress",
    "normbench.cli.step_progress",
    "normbench.cli.step_rendering",
    "normbench.steps.timing",
    "normbench.storage.samples",
    "normbench.training.trainer",
)
"""Imported before an interrupt may be an exception, which many libraries do not survive while they are imported."""


def start(
    request: StepRequest,
    texts: Sequence[Path],
    device_name: str | None,
    out: Path | None,
    sharing: Sharing,
    *,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Make a plan of a request and run it into a new folder, or print what it will take."""
    from normbench.device import detect, find
    from normbench.training import corpora

    refuse_existing(out)
    found = corpora.texts(texts) if request.train else ()
    if dry_run:
        device = detect(device_name)
        plan = step_plan(request, device.info, [text.corpus for text in found])
        norms = norm_plan(plan, device.info) if plan.cells else None
        step_estimate.show(plan, norms, device, as_json=as_json)
        return
    from normbench.storage import RunFolder, StepFolder, new_path

    with claimed(find(device_name), sharing) as neighbours:
        device = detect(device_name)
        plan = step_plan(request, device.info, [text.corpus for text in found])
        if plan.training is not None:
            corpora.require_length(found, plan.training.shape.context)
        folder = StepFolder.create(out or new_path(device.info.slug), _header(plan, device))
        if plan.cells:
            RunFolder.create(folder.alone, header_of(norm_plan(plan, device.info), device))
        with written_alone(folder.path):
            _run_into(folder, device, neighbours, found, as_json=as_json, quiet=quiet)


def resume(path: Path, files: Sequence[Path], sharing: Sharing, *, dry_run: bool, as_json: bool, quiet: bool) -> None:
    """Measure or train what is missing in a folder.

    Args:
        path: The folder.
        files: Where the run's texts are, if they are files.
        sharing: What is done where another run holds the device.
        dry_run: Say what is left, and do nothing.
        as_json: Print the run for programs.
        quiet: No progress.

    Raises:
        UsageError: Device, software or corpora are not those that the run began with.
    """
    from normbench.device import detect, find
    from normbench.storage import RunFolder, StepFolder, load_steps, read_step_header
    from normbench.training import corpora

    header = read_step_header(path)
    unknown = [name for name in header.plan.implementations if name not in NAMES]
    if unknown:
        raise UsageError(f"--resume: implementations that are not here: {' '.join(unknown)}", hint="start a new run")
    name = header.command[header.command.index("--device") + 1] if "--device" in header.command else None
    with claimed(find(name), sharing) as neighbours, written_alone(path):
        device = detect(name)
        _refuse_other_surroundings(header, _header(header.plan, device))
        run = load_steps(path)
        texts = corpora.texts(files) if run.untrained else ()
        if header.plan.training and run.untrained:
            corpora.require_same(texts, header.plan.training.corpora)
        if dry_run:
            step_estimate.show_left(run, device, as_json=as_json)
            return
        folder = StepFolder.reopen(path)
        if header.plan.cells and not (folder.alone / "run.json").exists():
            RunFolder.create(folder.alone, header_of(norm_plan(header.plan, device.info), device))
        _run_into(folder, device, neighbours, texts, as_json=as_json, quiet=quiet)


def _refuse_other_surroundings(began: StepHeader, now: StepHeader) -> None:
    found = surroundings.differences(began, now)
    if found:
        raise UsageError(f"--resume: not as the run began: {'; '.join(found)}", hint="start a new run")


def _run_into(
    folder: StepFolder,
    device: Device,
    neighbours: Neighbours,
    texts: Sequence[Text],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Measure or train what is missing, write it as it comes, and report whatever the end is."""
    from normbench.cli.interrupts import Interrupts, tell_of_the_end

    for module in _NEEDED:
        import_module(module)
    from normbench.cli.step_rendering import report

    with Interrupts() as interrupts:
        try:
            work = partial(_work, folder, device, neighbours, texts, interrupts, quiet=quiet)
            failure = interrupts.as_far_as_it_goes(work)
            run = folder.load()
            if run.is_complete and run.header.plan.cells:
                folder.compress_samples()
            report(folder.path, run, folder.path, as_json=as_json, quiet=quiet)
        except KeyboardInterrupt:
            tell_of_the_end(f"go on with: normbench step --resume {folder.path}")
            raise
    if failure is not None:
        raise failure
    _finish(folder, run, interrupted=interrupts.is_asked_for)


def _work(
    folder: StepFolder,
    device: Device,
    neighbours: Neighbours,
    texts: Sequence[Text],
    interrupts: Interrupts,
    *,
    quiet: bool,
) -> None:
    if folder.header.plan.training is not None:
        _train(folder, device, texts, interrupts, quiet=quiet)
        return
    began = time.monotonic()
    failure = _norms_alone(folder, device, neighbours, interrupts, quiet=quiet)
    if failure is not None:
        raise failure
    if not interrupts.is_asked_for:
        _time_steps(folder, device, neighbours, interrupts, began, quiet=quiet)


def _norms_alone(
    folder: StepFolder, device: Device, neighbours: Neighbours, interrupts: Interrupts, *, quiet: bool
) -> NormbenchError | None:
    """The sweep of the norms by themselves: what their difference would be without a model around them."""
    from normbench.storage import RunFolder

    alone = RunFolder.reopen(folder.alone)
    failure = measured(alone, device, neighbours, interrupts, quiet=quiet)
    if alone.load().is_complete:
        alone.compress_samples()
    return failure


def _time_steps(
    folder: StepFolder,
    device: Device,
    neighbours: Neighbours,
    interrupts: Interrupts,
    began: float,
    *,
    quiet: bool,
) -> None:
    from normbench.cli.foreign import kept_from_stdout
    from normbench.cli.progress import PieceProgress
    from normbench.cli.step_progress import StepWork
    from normbench.device import fix_threads
    from normbench.reporters.terminal import console
    from normbench.steps.timing import Steps

    plan, missing = folder.header.plan, folder.load().missing
    if not missing:
        return
    note(f"timing steps into {folder.path}/", quiet=quiet)
    fix_threads(device.info.threads)
    total = plan.precision.total_seconds
    with PieceProgress(console(sys.stderr), quiet=quiet) as progress, kept_from_stdout():
        steps = Steps(
            plan=plan,
            implementations=chosen(plan.implementations),
            device=device,
            observer=StepWork(told=progress.told, plan=plan, cells=missing),
            interruption=interrupts,
            deadline=None if total is None else began + total,
        )
        for records in steps.run([cell for cell in plan.cells if cell not in missing]):
            with interrupts.put_off():
                folder.write(neighbours.marked_steps(records, device))


def _train(folder: StepFolder, device: Device, texts: Sequence[Text], interrupts: Interrupts, *, quiet: bool) -> None:
    from normbench.cli.foreign import kept_from_stdout
    from normbench.cli.progress import PieceProgress
    from normbench.cli.step_progress import training_piece
    from normbench.device import fix_threads
    from normbench.reporters.terminal import console
    from normbench.training.trainer import Trainer

    plan, left = folder.header.plan, set(folder.load().untrained)
    assert plan.training is not None
    done = [(seed, name) for seed in plan.training.seeds for name in plan.implementations if (seed, name) not in left]
    if not left:
        return
    note(f"training into {folder.path}/", quiet=quiet)
    fix_threads(device.info.threads)
    with PieceProgress(console(sys.stderr), quiet=quiet) as progress, kept_from_stdout():
        trainer = Trainer(
            plan=plan,
            implementations=chosen(plan.implementations),
            device=device,
            texts=tuple(texts),
            told=lambda made: progress.told(training_piece(made)),
            interruption=interrupts,
            checkpoint=folder.checkpoint,
        )
        for curve in trainer.run(done):
            with interrupts.put_off():
                folder.write_curve(curve)


def _finish(folder: StepFolder, run: StepRun, *, interrupted: bool) -> None:
    again = f"normbench step --resume {folder.path}"
    if interrupted:
        note(f"interrupted; go on with: {again}")
        raise KeyboardInterrupt
    if not run.is_complete:
        raise IncompleteError("the run is incomplete", hint=again)
    if not run.has_figures:
        raise IncompleteError(
            "nothing could be measured", hint="the reasons are in the table above and in the folder"
        )


def _header(plan: StepPlan, device: Device) -> StepHeader:
    from normbench.device import environment

    return StepHeader(
        created_utc=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        command=step_command(plan, str(device.torch_device)),
        plan=plan,
        device=device.info,
        environment=environment(device),
        implementations=tuple(implementation.info for implementation in chosen(plan.implementations)),
    )
