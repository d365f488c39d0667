"""Does the work of a run of steps, or of training, in its folder, and reports whatever the end is."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from normbench.cli.bringing import loaded
from normbench.cli.output import note
from normbench.cli.running import measured
from normbench.cli.site import Site
from normbench.errors import IncompleteError, NormbenchError
from normbench.records import StepHeader, StepRun

if TYPE_CHECKING:
    from normbench.checking import Piece
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


def run_into(
    folder: StepFolder,
    site: Site,
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
            work = partial(_work, folder, site, texts, interrupts, quiet=quiet)
            failure = interrupts.as_far_as_it_goes(work)
            run = folder.load()
            if run.is_complete and run.header.plan.cells:
                folder.compress_samples()
            report(folder.path, run, folder.path, as_json=as_json, quiet=quiet)
        except KeyboardInterrupt:
            tell_of_the_end(f"go on with: {to_go_on(folder.path, folder.header)}")
            raise
    if failure is not None:
        raise failure
    _finish(folder, run, interrupted=interrupts.is_asked_for)


def to_go_on(path: Path, header: StepHeader) -> str:
    """The command that goes on with a folder; texts that are files have to be named again, by their paths."""
    training = header.plan.training
    names = [corpus.name for corpus in training.corpora if corpus.is_file] if training else []
    return shlex.join(["normbench", "step", "--resume", str(path), *(["--text", *names] if names else [])])


def _work(
    folder: StepFolder,
    site: Site,
    texts: Sequence[Text],
    interrupts: Interrupts,
    *,
    quiet: bool,
) -> None:
    if folder.header.plan.training is not None:
        _train(folder, site, texts, interrupts, quiet=quiet)
        return
    began = time.monotonic()
    failure = _norms_alone(folder, site, interrupts, quiet=quiet)
    if failure is not None:
        raise failure
    if not interrupts.is_asked_for:
        _time_steps(folder, site, interrupts, began, quiet=quiet)


def _norms_alone(
    folder: StepFolder,
    site: Site,
    interrupts: Interrupts,
    *,
    quiet: bool,
) -> NormbenchError | None:
    """The sweep of the norms by themselves: what their difference would be without a model around them."""
    from normbench.storage import RunFolder

    alone = RunFolder.reopen(folder.alone)
    failure = measured(alone, site, interrupts, quiet=quiet)
    if alone.load().is_complete:
        alone.compress_samples()
    return failure


def _time_steps(
    folder: StepFolder,
    site: Site,
    interrupts: Interrupts,
    began: float,
    *,
    quiet: bool,
) -> None:
    from normbench.cli.step_progress import StepWork
    from normbench.steps.timing import Steps

    plan, missing = folder.header.plan, folder.load().missing
    if not missing:
        return
    note(f"timing steps into {folder.path}/", quiet=quiet)
    total = plan.precision.total_seconds
    with _in_this_process(site.device, "run", quiet=quiet) as told:
        steps = Steps(
            plan=plan,
            implementations=loaded(site.catalog.chosen(plan.implementations)),
            device=site.device,
            observer=StepWork(told=told, plan=plan, cells=missing),
            interruption=interrupts,
            deadline=None if total is None else began + total,
        )
        for records in steps.run([cell for cell in plan.cells if cell not in missing]):
            with interrupts.put_off():
                folder.write(site.neighbours.marked(records, site.device))


def _train(
    folder: StepFolder,
    site: Site,
    texts: Sequence[Text],
    interrupts: Interrupts,
    *,
    quiet: bool,
) -> None:
    from normbench.cli.step_progress import training_piece
    from normbench.training.trainer import Trainer

    plan, left = folder.header.plan, set(folder.load().untrained)
    assert plan.training is not None
    done = [(seed, name) for seed in plan.training.seeds for name in plan.implementations if (seed, name) not in left]
    if not left:
        return
    note(f"training into {folder.path}/", quiet=quiet)
    with _in_this_process(site.device, "training", quiet=quiet) as told:
        trainer = Trainer(
            plan=plan,
            implementations=loaded(site.catalog.chosen(plan.implementations)),
            device=site.device,
            texts=tuple(texts),
            told=lambda made: told(training_piece(made)),
            interruption=interrupts,
            checkpoint=folder.checkpoint,
        )
        for curve in trainer.run(done):
            with interrupts.put_off():
                folder.write_curve(curve)


@contextmanager
def _in_this_process(device: Device, what: str, *, quiet: bool) -> Iterator[Callable[[Piece], None]]:
    """A context for code that is not ours, whose pieces of work are shown: it neither prints nor ends the program."""
    from normbench.cli.foreign import ends_are_errors, kept_from_stdout
    from normbench.cli.progress import PieceProgress
    from normbench.device import fix_threads
    from normbench.reporters.terminal import console

    fix_threads(device.info.threads)
    doing = ""
    with (
        ends_are_errors(lambda: doing, what),
        PieceProgress(console(sys.stderr), quiet=quiet) as progress,
        kept_from_stdout(),
    ):

        def told(piece: Piece) -> None:
            nonlocal doing
            doing = piece.what
            progress.told(piece)

        yield told


def _finish(folder: StepFolder, run: StepRun, *, interrupted: bool) -> None:
    again = to_go_on(folder.path, folder.header)
    if interrupted:
        note(f"interrupted; go on with: {again}")
        raise KeyboardInterrupt
    if not run.is_complete:
        raise IncompleteError("the run is incomplete", hint=again)
    if not run.has_figures:
        raise IncompleteError(
            "nothing could be measured", hint="the reasons are in the table above and in the folder"
        )
