"""Runs a plan of steps, or of training, into a folder, and reports whatever the end is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from normbench.cli import against, step_estimate, surroundings
from normbench.cli.beginning import headed, header_of, refuse_existing, written_alone
from normbench.cli.bringing import catalog_with
from normbench.cli.heading import device_of
from normbench.cli.neighbours import Sharing, claimed
from normbench.cli.output import note
from normbench.cli.resuming import brought_again, refuse_new, refuse_unknown
from normbench.cli.site import Site
from normbench.cli.step_plan import StepRequest, norm_plan, step_command, step_plan
from normbench.cli.step_work import run_into
from normbench.errors import UsageError
from normbench.implementations import Catalog
from normbench.records import Brought, StepHeader, StepPlan

if TYPE_CHECKING:
    from normbench.device import Device
    from normbench.training.corpora import Text


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
    from normbench.training import corpora

    refuse_existing(out)
    found = corpora.texts(texts) if request.train else ()
    with catalog_with(request.brought) as catalog:
        request = replace(request, baseline=against.baseline(request.baseline, catalog))
        if dry_run:
            _estimate(request, found, device_name, catalog, as_json=as_json)
        else:
            _run(request, found, device_name, out, catalog, sharing, as_json=as_json, quiet=quiet)


def _estimate(
    request: StepRequest, texts: Sequence[Text], device_name: str | None, catalog: Catalog, *, as_json: bool
) -> None:
    from normbench.device import detect

    device = detect(device_name)
    plan = step_plan(request, device.info, catalog, [text.corpus for text in texts])
    norms = norm_plan(plan, device.info, catalog) if plan.cells else None
    step_estimate.show(plan, norms, device, catalog, as_json=as_json)


def _run(
    request: StepRequest,
    texts: Sequence[Text],
    device_name: str | None,
    out: Path | None,
    catalog: Catalog,
    sharing: Sharing,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from normbench.device import detect, find
    from normbench.storage import RunFolder, StepFolder, new_path
    from normbench.training import corpora

    with claimed(find(device_name), sharing) as neighbours:
        device = detect(device_name)
        plan = step_plan(request, device.info, catalog, [text.corpus for text in texts])
        if plan.training is not None:
            if plan.training.steps != request.train:
                note(f"--quick: {plan.training.steps} training steps instead of {request.train}", quiet=quiet)
            corpora.require_length(texts, plan.training.shape.context)
        folder = StepFolder.create(out or new_path(device.info.slug), _header(plan, device, catalog))
        if plan.cells:
            RunFolder.create(folder.alone, header_of(norm_plan(plan, device.info, catalog), device, catalog))
        with written_alone(folder.path):
            run_into(
                folder,
                Site(device=device, catalog=catalog, neighbours=neighbours),
                texts,
                as_json=as_json,
                quiet=quiet,
            )


def resume(
    path: Path,
    files: Sequence[Path],
    sharing: Sharing,
    brought: Sequence[Brought],
    *,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Measure or train what is missing in a folder.

    Args:
        path: The folder.
        files: Where the run's texts are, if they are files.
        sharing: What is done where another run holds the device.
        brought: Where code of the run lies now.
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
    refuse_new(brought, header.plan.implementations)
    with catalog_with(brought_again(header.plan.brought, brought, header.implementations)) as catalog:
        refuse_unknown(header.plan.implementations, catalog, "step.json")
        if dry_run:
            step_estimate.show_left(load_steps(path), as_json=as_json)
            return
        name = device_of(header.command)
        with claimed(find(name), sharing) as neighbours, written_alone(path):
            device = detect(name)
            _refuse_other_surroundings(header, _header(header.plan, device, catalog))
            run = load_steps(path)
            texts = corpora.texts(files) if run.untrained else ()
            if header.plan.training and run.untrained:
                corpora.require_same(texts, header.plan.training.corpora)
            folder = StepFolder.reopen(path)
            if header.plan.cells and not (folder.alone / "run.json").exists():
                RunFolder.create(
                    folder.alone, header_of(norm_plan(header.plan, device.info, catalog), device, catalog)
                )
            run_into(
                folder,
                Site(device=device, catalog=catalog, neighbours=neighbours),
                texts,
                as_json=as_json,
                quiet=quiet,
            )


def _refuse_other_surroundings(began: StepHeader, now: StepHeader) -> None:
    found = surroundings.differences(began, now)
    if found:
        raise UsageError(f"--resume: not as the run began: {'; '.join(found)}", hint="start a new run")


def _header(plan: StepPlan, device: Device, catalog: Catalog) -> StepHeader:
    return headed(StepHeader, plan, step_command, device, catalog)
