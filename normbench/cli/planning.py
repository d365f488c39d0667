"""Plans from keys and values, as a plan file holds them, and the file of a plan: what programs use."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from typer.core import TyperCommand
from typer.main import get_command

from normbench.cli import app, defaults
from normbench.cli.beginning import planned
from normbench.cli.bringing import catalog_with
from normbench.cli.keys import Keys, keys_of
from normbench.cli.plan import plan_for
from normbench.cli.plan_command import placed
from normbench.cli.plan_file import Setting, parsed, settings
from normbench.cli.request import request_for
from normbench.cli.saving import rendered, write_new
from normbench.errors import UsageError
from normbench.implementations import catalog
from normbench.records import DeviceInfo, Plan

_DEVICE = "device"
_ANY = DeviceInfo(kind="cpu", name="any", slug="any", memory_bytes=1)
"""For a plan that leaves nothing for a device to decide."""


def of_keys(said: Mapping[str, object]) -> Plan:
    """The plan that keys and values ask for.

    Raises:
        UsageError: Names the key, and what is allowed.
    """
    given = {name: _plain(value) for name, value in said.items() if value is not None}
    return _plan(settings(given, _sweep_keys(), ""), None)


def of_file(path: Path, device: str | None) -> Plan:
    """The plan in a file; ``device`` goes before the one that it names.

    Raises:
        UsageError: Names file and key, and what is allowed.
    """
    return _plan(defaults.of_file(path, _sweep_keys()), device)


def write(plan: Plan, path: Path, device: str | None) -> None:
    """Write a plan as a new file, from which the same plan is read.

    Raises:
        UsageError: The file exists or can't be written, or no file can say this plan.
    """
    text = rendered(plan, _sweep_keys(), device)
    _refuse_other(plan, text)
    write_new(path, text)


def _refuse_other(plan: Plan, text: str) -> None:
    """A UsageError where the text says another plan: a record can hold what no option asks for."""
    values = _values(settings(parsed(text.encode(), ""), _sweep_keys(), ""))
    values.pop(_DEVICE)
    asked = request_for(**values)
    read = plan_for(asked, _ANY, (*catalog().names, *(one.name for one in asked.brought)))
    lost = [each.name for each in fields(Plan) if getattr(plan, each.name) != getattr(read, each.name)]
    if lost:
        raise UsageError(
            f"a plan file can't say what this plan has: {', '.join(lost)}",
            hint="make it of normbench.plan, which takes what files can say",
        )


def _sweep() -> TyperCommand:
    command = get_command(app)
    sweep = command.commands["sweep"]  # type: ignore[attr-defined]
    assert isinstance(sweep, TyperCommand)
    return sweep


def _sweep_keys() -> Keys:
    return keys_of(_sweep())


def _plan(found: Mapping[str, Setting], device: str | None) -> Plan:
    values = _values(found)
    named = values.pop(_DEVICE)
    try:
        asked = request_for(**values)
        with catalog_with(asked.brought) as known:
            return planned(asked, device or named, known)[1]
    except UsageError as error:
        raise placed(error, found) from error


def _values(found: Mapping[str, Setting]) -> dict[str, Any]:
    """The parameters of the command, those of which nothing is said among them."""
    command = _sweep()
    assert command.callback is not None
    silent = inspect.signature(command.callback).parameters
    return {
        key.parameter: found[key.parameter].value if key.parameter in found else silent[key.parameter].default
        for key in keys_of(command).known
    }


def _plain(value: object) -> object:
    """A program's value as a file's: any collection is a list."""
    is_one = isinstance(value, str | Mapping) or not isinstance(value, Iterable)
    return value if is_one else list(value)  # type: ignore[call-overload]
