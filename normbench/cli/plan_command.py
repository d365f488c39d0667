"""A command that takes a plan: what the command line leaves out is looked up in files, and errors name the place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from normbench.cli import defaults
from normbench.cli.keys import Keys, keys_of
from normbench.cli.options import ListCommand
from normbench.cli.output import note
from normbench.cli.plan_file import Setting
from normbench.cli.saving import Saving
from normbench.errors import UsageError

_OPTION = re.compile(r"--([a-z][a-z-]*)")
_USED, _SUMMARY = "normbench.used", "normbench.summary"


class PlanCommand(ListCommand):
    """A command whose options may stand in ``--plan FILE`` and in pyproject.toml's ``[tool.normbench]``.

    What is said there takes the way of Click's ``default_map``, so that the command line goes before it.
    """

    def before_parsing(self, ctx: typer.Context, args: list[str]) -> None:
        """Look up what the command line does not say, unless it asks for help or goes on with a run."""
        given = self.make_parser(ctx).parse_args(list(args))[0]
        if given.get("help") or given.get("run") is not None:
            return
        file = given.get("plan")
        if given.get("resume") is not None:
            if file is not None:
                raise UsageError(
                    "--plan and --resume: a run that is gone on with has its plan",
                    hint="leave --plan out; what is to be another stands on the command line, with --force",
                )
            return
        read = _read(file, self._keys(ctx))
        used = defaults.beneath(given, read.values())
        ctx.default_map = {name: setting.value for name, setting in used.items()}
        ctx.meta[_USED], ctx.meta[_SUMMARY] = used, defaults.summary(used, read)

    def _keys(self, ctx: typer.Context) -> Keys:
        siblings = getattr(ctx.parent.command, "commands", {}) if ctx.parent else {}
        others = {n: c for n, c in siblings.items() if isinstance(c, PlanCommand) and c is not self}
        return keys_of(self, others)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Say where values come from, then run; an error that is about one of them names its place."""
        if said := ctx.meta.get(_SUMMARY):
            note(said, quiet=ctx.params.get("quiet", False))
        try:
            return super().invoke(ctx)
        except UsageError as error:
            raise placed(error, ctx.meta.get(_USED, {})) from error


def _read(file: str | None, keys: Keys) -> dict[str, dict[str, Setting]]:
    """What each file says, by its name; the first goes before the second."""
    read = {} if file is None else {file: defaults.of_file(Path(file), keys)}
    return {**read, defaults.IN_PYPROJECT: defaults.of_folder(Path(), keys)}


def placed(error: UsageError, used: Mapping[str, Setting]) -> UsageError:
    """An error that begins with an option, as one of the place that said it, where that was no command line."""
    names = {name: setting for setting in used.values() for name in (*setting.key.names, *setting.key.opposites)}
    found = _OPTION.match(error.message)
    if found is None or found[1] not in names:
        return error
    return UsageError(f"{names[found[1]].place}{error.message[found.end() :]}", hint=error.hint)


def saving_of(ctx: typer.Context, target: str | None, device: str | None) -> Saving | None:
    """Where the command's plan is to be written, if anywhere."""
    if target is None:
        return None
    assert isinstance(ctx.command, TyperCommand)
    return Saving(target=target, keys=keys_of(ctx.command), device=device)
