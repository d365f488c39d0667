"""Runs a check into a folder, check by check, and reports whatever the end is."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from normbench.cli.bringing import loaded
from normbench.cli.heading import command_line, now_utc
from normbench.cli.output import note
from normbench.cli.plan import number, words_of
from normbench.errors import FailedCheckError, IncompleteError, NormbenchError
from normbench.implementations import Implementation
from normbench.records import Allowance, Brought, Check, CheckHeader, CheckPlan, CheckRun

if TYPE_CHECKING:
    from normbench.checking import Piece
    from normbench.cli.interrupts import Interrupts
    from normbench.device import Device
    from normbench.grades import Card
    from normbench.storage import CheckFolder

_NEEDED = (
    "normbench.checking",
    "normbench.cli.progress",
    "normbench.reporters.checks_data",
    "normbench.reporters.checks_markdown",
    "normbench.reporters.checks_table",
)
"""Imported before an interrupt may be an exception, which many libraries do not survive while they are imported."""

_KEPT_S = 0.2
"""A kill loses what was found in so many seconds at most: writing each check by itself would take longer than it."""


class Style(StrEnum):
    """How a check is printed."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is to be checked.

    Args:
        plan: Properties, formats and widths.
        implementations: Of whom, in the order of reports.
        allowed: The failures that do not count.
        brought: Where those of them lie that the user brings.
    """

    plan: CheckPlan
    implementations: tuple[Implementation, ...]
    allowed: tuple[Allowance, ...]
    brought: tuple[Brought, ...] = ()


@dataclass(kw_only=True)
class _Keeper:
    """Writes what is found a moment later at most, and never a part of it; knows what is done, and whether all is."""

    folder: CheckFolder
    interrupts: Interrupts
    doing: str = ""
    complete: bool = False
    written_s: float = field(default_factory=time.monotonic)
    waiting: list[Check] = field(default_factory=list)

    def keep(self, check: Check) -> None:
        """Take a check; what is known of another implementation is written first, for this one may crash."""
        if self.waiting and self.waiting[-1].implementation != check.implementation:
            self.write()
        self.waiting.append(check)
        if time.monotonic() - self.written_s >= _KEPT_S:
            self.write()

    def write(self) -> None:
        """Write what has not been written."""
        with self.interrupts.put_off():
            waiting, self.waiting = self.waiting, []
            self.folder.write(waiting)
            self.written_s = time.monotonic()


def start(asked: Asked, device_name: str | None, out: Path | None, style: Style, *, quiet: bool) -> None:
    """Check into a new folder and report; every end but a good one is an error.

    Raises:
        FailedCheckError: A property fails that is not allowed to.
        IncompleteError: Nothing could be checked.
        KeyboardInterrupt: It was interrupted; what was found is written and reported.
    """
    from normbench.cli.capacity import refuse_too_large
    from normbench.cli.interrupts import Interrupts, tell_of_the_end
    from normbench.device import detect, fix_threads
    from normbench.storage import load_check, new_path

    device = detect(device_name)
    refuse_too_large(asked.plan, device)
    fix_threads(device.info.threads)
    for module in _NEEDED:
        import_module(module)
    path, header = out or new_path(device.info.slug), _header(asked, device)
    with Interrupts() as interrupts:
        folder = _created(path, header, interrupts)
        note(f"checking into {path}/", quiet=quiet)
        try:
            failure = _examined(folder, asked, device, interrupts, quiet=quiet)
            card = report(folder.path, load_check(folder.path), folder.path, style, quiet=quiet, named=path)
        except KeyboardInterrupt:
            tell_of_the_end(f"what was found: normbench report {path}")
            raise
    if failure is not None:
        raise failure
    _finish(card)


def _created(path: Path, header: CheckHeader, interrupts: Interrupts) -> CheckFolder:
    """The folder, by a path that stays right wherever the code that is checked goes to."""
    from normbench.storage import CheckFolder

    with interrupts.put_off():  # else half of it is left behind
        CheckFolder.create(path, header)
    return CheckFolder(path.absolute(), header)


def _examined(
    folder: CheckFolder, asked: Asked, device: Device, interrupts: Interrupts, *, quiet: bool
) -> NormbenchError | None:
    """Check as far as it goes, and keep what is found; what ended it, where that leaves something to report."""
    began = time.monotonic()
    keeper = _Keeper(folder=folder, interrupts=interrupts)
    try:
        return interrupts.as_far_as_it_goes(partial(_ask, asked, device, keeper, quiet=quiet))
    finally:
        keeper.write()
        with interrupts.put_off():
            folder.finish(time.monotonic() - began, complete=keeper.complete)


def _ask(asked: Asked, device: Device, keeper: _Keeper, *, quiet: bool) -> None:
    from normbench.checking import examine
    from normbench.cli.foreign import ends_are_errors, kept_from_stdout
    from normbench.cli.progress import PieceProgress
    from normbench.reporters.terminal import console

    def told(piece: Piece) -> None:
        keeper.doing = piece.what
        progress.told(piece)

    with (
        ends_are_errors(lambda: keeper.doing),
        PieceProgress(console(sys.stderr), quiet=quiet) as progress,
        kept_from_stdout(),
    ):
        for check in examine(device, asked.plan, loaded(asked.implementations), told):
            keeper.keep(check)
    keeper.complete = True


def report(
    folder: Path, run: CheckRun, target: Path, style: Style, *, quiet: bool, named: Path | None = None
) -> Card:
    """Write check.md and print a check; its grades.

    Args:
        folder: Where it was found.
        run: What was found.
        target: The folder that check.md is written into.
        style: How to print.
        quiet: Do not say where that is.
        named: What that folder is called to the reader, if not as it is written into.
    """
    from normbench import grades
    from normbench.cli.output import emit, json_text, results
    from normbench.reporters import checks_data, checks_markdown, checks_table
    from normbench.storage import write_text

    card = grades.of_run(run)
    text = checks_markdown.render(card)
    write_text(target / "check.md", text)
    if style is Style.JSON:
        emit(json_text({"folder": folder.resolve().name, **checks_data.as_dictionary(card)}))
    elif style is Style.MARKDOWN:
        emit(text)
    else:
        with results() as out:
            checks_table.show(card, out)
    note(f"written: {named or target}/ (read check.md first)", quiet=quiet)
    return card


def _finish(card: Card) -> None:
    from normbench.reporters import checks as words

    if not card.run.complete:
        note("interrupted: what was found is written, the rest was not asked")
        raise KeyboardInterrupt
    if any(grade.counts for grade in card.failing):
        failed = dict.fromkeys(str(grade.property) for grade in card.failing if grade.counts)
        raise FailedCheckError(words.headline(card), hint=f"--allow {' '.join(failed)} where that is known")
    if not card.has_verdict:
        raise IncompleteError("nothing could be checked", hint="the reasons are above and in check.csv")


def _header(asked: Asked, device: Device) -> CheckHeader:
    from normbench.device import environment

    return CheckHeader(
        created_utc=now_utc(),
        command=_command(asked, str(device.torch_device)),
        plan=asked.plan,
        implementations=tuple(implementation.info for implementation in asked.implementations),
        device=device.info,
        environment=environment(device),
        allowed=asked.allowed,
    )


def _command(asked: Asked, device: str) -> tuple[str, ...]:
    """The command that repeats a check, every default spelled out, and no path in it."""
    plan = asked.plan
    options: dict[str, tuple[object, ...]] = {
        "--impls": words_of([each.name for each in asked.implementations], [one.published for one in asked.brought]),
        "--properties": plan.properties,
        "--dtypes": plan.dtypes,
        "--widths": plan.widths,
        "--eps": (number(plan.eps),),
        "--seed": (plan.seed,),
        **({"--allow": asked.allowed} if asked.allowed else {}),
    }
    return command_line("check", device, options)
