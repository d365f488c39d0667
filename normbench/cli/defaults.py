"""What files say where the command line is silent: a plan file first, then the folder's pyproject.toml."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from normbench.cli.keys import Keys
from normbench.cli.plan_file import Setting, parsed, settings
from normbench.errors import UsageError

PYPROJECT = "pyproject.toml"
TABLE = "tool.normbench"
IN_PYPROJECT = f"{PYPROJECT} [{TABLE}]"
_MOST_BYTES = 2**20


def of_file(path: Path, keys: Keys) -> dict[str, Setting]:
    """What a plan file says.

    Raises:
        UsageError: It can't be read, is no TOML, or has a key or a value that a plan can't have.
    """
    try:
        text = _read(path)
    except OSError as error:
        raise UsageError(
            f"{path}: can't be read: {error.strerror or error}", hint="--plan names a file that --save-plan writes"
        ) from error
    return settings(parsed(text, str(path)), keys, str(path))


def of_folder(folder: Path, keys: Keys) -> dict[str, Setting]:
    """What the table ``[tool.normbench]`` of a folder's pyproject.toml says; nothing where there is none.

    A pyproject.toml that is broken is somebody else's business, unless it names normbench.

    Raises:
        UsageError: It can't be told what the table says, or it has a key or a value that a plan can't have.
    """
    path = folder / PYPROJECT
    if not path.is_file():
        return {}
    try:
        text = _read(path)
    except OSError as error:
        raise UsageError(f"{PYPROJECT}: can't be read: {error.strerror or error}", hint="make it readable") from error
    if b"normbench" not in text:
        return {}
    tools = parsed(text, PYPROJECT).get("tool")
    said = tools.get("normbench", {}) if isinstance(tools, Mapping) else {}
    if not isinstance(said, Mapping):
        raise UsageError(f"{PYPROJECT}: {TABLE} is no table", hint=f"a line [{TABLE}], and keys in those below it")
    return settings(said, keys, IN_PYPROJECT, serves_all=True)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise UsageError(f"{path}: larger than {_MOST_BYTES} bytes", hint="a plan takes some lines")
    return text


def beneath(given: Mapping[str, Any], layers: Iterable[Mapping[str, Setting]]) -> dict[str, Setting]:
    """What files add to what the command line has given; an earlier one goes before a later one.

    Args:
        given: The command's parameters that the command line gives, with their words.
        layers: What each file says.
    """
    said, found = dict(given), dict[str, Setting]()
    for layer in layers:
        lost = {*said, *_contradicted(said)}
        added = {name: setting for name, setting in layer.items() if name not in lost}
        found |= added
        said |= {name: setting.value for name, setting in added.items()}
    return found


def _contradicted(said: Mapping[str, Any]) -> Collection[str]:
    """The parameters that can't be had together with what has been said already, whatever a file says of them."""
    lost: set[str] = set()
    if said.get("no_isolate"):
        lost |= {"case_timeout", "processes"}
    if "case_timeout" in said or str(said.get("processes", 1)) != "1":
        lost.add("no_isolate")
    if said.get("profile") is False:
        lost.add("counters")
    if said.get("counters"):
        lost.add("profile")
    return lost


def summary(used: Mapping[str, Setting], read: Mapping[str, Mapping[str, Setting]]) -> str | None:
    """Which values come from files, in a line; None where none does.

    Args:
        used: What they add to the command line.
        read: What each file says, by its name.
    """
    said = [text for source, layer in read.items() if (text := _of_one(source, layer, used))]
    return f"plan: {'; '.join(said)}" if said else None


def _of_one(source: str, layer: Mapping[str, Setting], used: Mapping[str, Setting]) -> str | None:
    taken = [setting.written for setting in layer.values() if used.get(setting.key.parameter) is setting]
    passed = [setting.written for setting in layer.values() if setting.written not in taken]
    if source == IN_PYPROJECT:
        return f"{source}: {', '.join(taken)}" if taken else None
    return f"{source} without {', '.join(passed)}" if passed else source
