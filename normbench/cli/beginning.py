"""Begins a run: its plan, its device, its folder; or says what it would take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from normbench.cli import against, estimate
from normbench.cli.bringing import at_commits, catalog_with
from normbench.cli.heading import now_utc
from normbench.cli.neighbours import Sharing, claimed, warn
from normbench.cli.plan import Request, command, plan_for
from normbench.cli.running import run_into
from normbench.cli.site import Site
from normbench.errors import UsageError
from normbench.implementations import Catalog
from normbench.records import Operation, Plan, RunHeader, StepHeader, StepPlan

if TYPE_CHECKING:
    from normbench.cli.saving import Saving
    from normbench.device import Device
    from normbench.storage import RunFolder

P = TypeVar("P", Plan, StepPlan)
H = TypeVar("H", RunHeader, StepHeader)


def start(
    request: Request,
    device_name: str | None,
    out: Path | None,
    sharing: Sharing,
    *,
    saving: Saving | None = None,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> Path | None:
    """Make a plan of a request and run it into a new folder, or print what it will take; the folder, if any."""
    refuse_existing(out)
    if saving is not None:
        saving.refuse(dry_run=dry_run)
    with catalog_with(request.brought) as catalog:

        def ready() -> tuple[Device, Plan]:
            device, plan = planned(request, device_name, catalog)
            if saving is not None:
                saving.write(plan, quiet=quiet)
            return device, plan

        if dry_run:
            device, plan = ready()
            if saving is None or not saving.is_stdout:
                estimate.show(plan, list(plan.cells()), device, catalog, as_json=as_json)
            return None
        with begun(ready, device_name, catalog, out, sharing) as (folder, site):
            run_into(folder, site, as_json=as_json, quiet=quiet)
    return folder.path


@contextmanager
def begun(
    ready: Callable[[], tuple[Device, Plan]],
    device_name: str | None,
    catalog: Catalog,
    out: Path | None,
    sharing: Sharing,
) -> Iterator[tuple[RunFolder, Site]]:
    """A context in which a new run holds its device and its folder, and nothing is measured yet.

    Args:
        ready: The device and the plan, asked for once the device is held.
        device_name: Which that is.
        catalog: Every implementation that there is.
        out: The new folder; by default one in ``reports``.
        sharing: What is done where another run holds the device.

    Raises:
        BusyError: Another run holds it.
        UsageError: The folder exists, or can't be written.
    """
    from normbench.device import find
    from normbench.storage import RunFolder, new_path

    with claimed(find(device_name), sharing) as neighbours:
        device, plan = ready()
        folder = RunFolder.create(out or new_path(device.info.slug), header_of(plan, device, catalog))
        with written_alone(folder.path):
            yield folder, Site(device=device, catalog=catalog, neighbours=neighbours)


def planned(request: Request, device_name: str | None, catalog: Catalog) -> tuple[Device, Plan]:
    """The device, and the plan that answers a request there.

    Raises:
        UsageError: There is no such device, or no plan can be like that.
    """
    from normbench.device import detect

    device = detect(device_name)
    request = replace(request, baseline=against.baseline(request.baseline, catalog))
    plan = plan_for(request, device.info, catalog.of(request.operation or Operation.NORM).names)
    refuse_graphs(plan, device)
    return device, plan


def refuse_graphs(plan: Plan, device: Device) -> None:
    """A UsageError where CUDA graphs are asked for and there are none."""
    if plan.graphs and device.info.kind == "cpu":
        raise UsageError("--graphs: a CPU has no CUDA graphs", hint="leave it out, or name a GPU with --device")


def refuse_existing(out: Path | None) -> None:
    """A UsageError where something is where a new folder is to go."""
    try:
        exists = out is not None and out.exists()
    except OSError:  # too long a name, or a folder that may not be looked into: making it will say so
        return
    if exists:
        raise UsageError(f"--out {out}: exists, and no run is ever overwritten", hint="name a new folder")


@contextmanager
def written_alone(path: Path) -> Iterator[None]:
    """A context in which no other run writes the folder.

    Raises:
        BusyError: One does.
    """
    from normbench.storage import only_writer

    with only_writer(path) as is_sure:
        if not is_sure:
            warn(f"{path}: can't be locked where it is: a second --resume of it would go unnoticed")
        yield


def header_of(plan: Plan, device: Device, catalog: Catalog) -> RunHeader:
    """What ``run.json`` holds of a run of this plan on this device, which tells no path of it."""
    return headed(RunHeader, plan, command, device, catalog)


def headed(
    kind: Callable[..., H], plan: P, said: Callable[[P, str], tuple[str, ...]], device: Device, catalog: Catalog
) -> H:
    """What a folder's header holds of a plan on this device: no path of it, and each revision by its commit.

    Args:
        kind: The header's type.
        plan: The plan.
        said: The command that repeats a plan on a device.
        device: The device.
        catalog: Every implementation there is.
    """
    from normbench.device import environment

    infos = tuple(implementation.info for implementation in catalog.chosen(plan.implementations))
    brought = tuple(one.published for one in plan.brought)
    return kind(
        created_utc=now_utc(),
        command=said(replace(plan, brought=at_commits(brought, infos)), str(device.torch_device)),
        plan=replace(plan, brought=brought),
        device=device.info,
        environment=environment(device),
        implementations=infos,
    )
