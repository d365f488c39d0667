"""Goes on with a run folder: refuses what would mix unlike things in it, and has what was forced written down."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from normbench.cli import estimate, revision, surroundings
from normbench.cli.beginning import header_of, written_alone
from normbench.cli.bringing import at_commits, catalog_with
from normbench.cli.heading import device_of, now_utc
from normbench.cli.neighbours import Sharing, claimed
from normbench.cli.output import note
from normbench.cli.plan import Request, command
from normbench.cli.revision import Change
from normbench.cli.running import run_into
from normbench.cli.site import Site
from normbench.errors import UsageError
from normbench.implementations import Catalog
from normbench.records import Brought, ImplementationInfo, Plan, Resumption, Run, RunHeader

if TYPE_CHECKING:
    from normbench.device import Device

_FORCE = "--force, which the run will say of itself"


def resume(
    path: Path,
    request: Request,
    device_name: str | None,
    sharing: Sharing,
    *,
    force: bool,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Measure what is missing in a run folder, or print what that will take.

    Raises:
        UsageError: What is asked for, the device or the software is not the run's; names every difference.
    """
    from normbench.storage import RunFolder, holds_check, holds_steps, read_header

    if holds_check(path):
        raise UsageError(
            f"--resume: {path} is the folder of a check, which is not resumed",
            hint="it takes minutes: ask again, with the command in its check.json",
        )
    if holds_steps(path):
        raise UsageError(f"--resume: {path} is the folder of steps", hint=f"normbench step --resume {path}")
    began = read_header(path)
    with catalog_with(brought_again(began.plan.brought, request.brought, began.implementations)) as catalog:
        if dry_run:
            run, header, device = _revised(path, request, device_name, catalog, force=force)
            missing = replace(run, header=header).missing
            estimate.show(header.plan, list(missing), device, catalog, as_json=as_json)
            return
        from normbench.device import find

        wanted = find(device_name or device_of(began.command))
        with claimed(wanted, sharing) as neighbours, written_alone(path):
            run, header, device = _revised(path, request, device_name, catalog, force=force)
            if header.resumed != run.header.resumed and not quiet:
                _tell(header.resumed[-1])
            folder = RunFolder.reopen(path, None if header == run.header else header)
            run_into(
                folder, Site(device=device, catalog=catalog, neighbours=neighbours), as_json=as_json, quiet=quiet
            )


def brought_again(
    had: Sequence[Brought], asked: Sequence[Brought], found: Sequence[ImplementationInfo]
) -> tuple[Brought, ...]:
    """What a run has brought, each at the commit at which it was found, and what is brought now besides.

    Raises:
        UsageError: A file of the run is not where it was, as seen from the current folder, and not brought now.
    """
    now = {one.name: one for one in asked}
    for one in had:
        if one.name not in now and one.location.endswith(".py") and not Path(one.location).is_file():
            raise UsageError(
                f"--resume: {one.name} was brought from {one.location}, which is not here",
                hint=f"say where it is: --impls {_somewhere(one)}",
            )
    return tuple(({one.name: one for one in at_commits(had, found)} | now).values())


def _somewhere(one: Brought) -> Brought:
    return replace(one, target=f"path/to/{Path(one.location).name}:{one.attribute}")


def _revised(
    path: Path, request: Request, device_name: str | None, catalog: Catalog, *, force: bool
) -> tuple[Run, RunHeader, Device]:
    """The run as it stands, what it is from now on, and the device to go on with; refused where it can't be."""
    from normbench.device import detect
    from normbench.storage import load

    run = load(path)
    request = replace(request, brought=_as_the_run_says(run.header, request.brought, catalog))
    asked = revision.revised(run.header.plan, request, run.header.device)
    changes = revision.changes(run.header.plan, asked)
    refuse_changes(changes, force=force)
    refuse_unknown(run.header.plan.implementations, catalog, "run.json")
    device = detect(device_name or device_of(run.header.command))
    found = surroundings.differences(run.header, header_of(run.header.plan, device, catalog))
    refuse_differences(run.header, found, force=force or found == accepted(run.header))
    header = revised_header(run, asked if changes else run.header.plan, changes, found)
    return run, header, device


def _as_the_run_says(header: RunHeader, asked: Sequence[Brought], catalog: Catalog) -> tuple[Brought, ...]:
    """What is asked for, in the run's own words where it is the same commit: it may have said ``main``."""
    had = {one.name: one for one in header.plan.brought}
    exact = {one.name: one for one in at_commits(header.plan.brought, header.implementations)}
    now = at_commits(asked, [each.info for each in catalog.located])
    return tuple(
        had[one.name] if exact.get(one.name) == found.published else one
        for one, found in zip(asked, now, strict=True)
    )


def refuse_changes(changes: Sequence[Change], *, force: bool) -> None:
    """Refuse another plan than the run's, unless it is forced and leaves what is measured right and complete."""
    changes = [change for change in changes if not change.is_free]
    rigid = [change for change in changes if not change.is_possible]
    if not changes or (force and not rigid):
        return
    why = "; ".join(
        f"{change.option} has to keep {change.lost}" if change.lost else f"{change.option} can't change within a run"
        for change in rigid
    )
    raise UsageError(
        f"--resume: another plan: {'; '.join(map(str, changes))}",
        hint=f"leave these options out, or {f'start a new run: {why}' if rigid else _FORCE}",
    )


def refuse_differences(header: RunHeader, found: Sequence[str], *, force: bool) -> None:
    """Refuse another device or other software than the run began with, unless it is forced.

    Times of a GPU are of other clocks than those of a CPU: nothing puts the two into one run.
    """
    is_other_kind = any(difference.startswith("kind was ") for difference in found)
    if found and (is_other_kind or not force):
        why = f": this one's times are of a {header.device.kind}" if is_other_kind else f", or {_FORCE}"
        raise UsageError(f"--resume: not as the run began: {'; '.join(found)}", hint=f"start a new run{why}")


def refuse_unknown(names: Iterable[str], catalog: Catalog, file: str) -> None:
    """A UsageError where a run has implementations that are not here; its header is in ``file``."""
    unknown = [name for name in names if name not in catalog.names]
    if unknown:
        raise UsageError(
            f"--resume: the run has implementations that are not here: {' '.join(unknown)}",
            hint=f"go on with the normbench that began it, which {file} names, or start a new run",
        )


def refuse_new(brought: Sequence[Brought], names: Collection[str]) -> None:
    """A UsageError where something is brought that the run does not have."""
    new = [one.name for one in brought if one.name not in names]
    if new:
        raise UsageError(f"--resume: the run has no {' '.join(new)}", hint=f"it has: {' '.join(names)}")


def accepted(header: RunHeader) -> tuple[str, ...]:
    """With which differences from its beginning the run was last gone on with."""
    return header.resumed[-1].differences if header.resumed else ()


def revised_header(run: Run, plan: Plan, changes: Sequence[Change], found: tuple[str, ...]) -> RunHeader:
    """What the run is from now on: the same where nothing has changed since it was last gone on with."""
    header = run.header
    if changes:
        exact = replace(plan, brought=at_commits(plan.brought, header.implementations))
        again = command(exact, device_of(header.command) or header.device.kind)
        header = replace(header, plan=plan, command=again)
    said = tuple(change.sentence for change in changes if not change.is_free)
    if not said and found == accepted(header):
        return header
    resumption = Resumption(created_utc=now_utc(), cells=len(run.done), differences=found, plan=said)
    return replace(header, resumed=(*header.resumed, resumption))


def _tell(resumption: Resumption) -> None:
    said = "; ".join((*resumption.differences, *resumption.plan)) or "everything is as the run began"
    note(f"going on, and writing it down: {said}")
