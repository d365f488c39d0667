"""A plan as the text of a plan file, every default spelled out and every key explained; and where it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from normbench.cli.keys import Key, Keys, Kind
from normbench.cli.output import emit, note
from normbench.cli.plan import options
from normbench.errors import UsageError
from normbench.records import Plan

_STDOUT = "-"
_WIDE = 100
_DEFAULT = re.compile(r"\s*\[[^\]]*\]$")
"""The end of an option's help, which says what is taken where nothing is said."""


@dataclass(frozen=True, kw_only=True)
class Saving:
    """Where a command's plan is written.

    Args:
        target: A new file, or ``-`` for stdout.
        keys: What the command's plans can say.
        device: The device, where it was named: a plan without one is for any.
    """

    target: str
    keys: Keys
    device: str | None

    @property
    def is_stdout(self) -> bool:
        """Whether it goes where results go."""
        return self.target == _STDOUT

    def refuse(self, *, dry_run: bool) -> None:
        """A UsageError where it can't be written, before anything is measured."""
        if self.is_stdout and not dry_run:
            raise UsageError("--save-plan -: stdout is for the results", hint="name a file, or add --dry-run")
        if not self.is_stdout and Path(self.target).exists():
            raise _exists(self.target)

    def write(self, plan: Plan, *, quiet: bool) -> None:
        """Write it.

        Raises:
            UsageError: The file exists, or can't be written.
        """
        text = rendered(plan, self.keys, self.device)
        if self.is_stdout:
            emit(text)
            return
        write_new(Path(self.target), text)
        note(f"plan written: {self.target}", quiet=quiet)


def write_new(path: Path, text: str) -> None:
    """Write a file that was not there.

    Raises:
        UsageError: It exists, or can't be written.
    """
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError as error:
        raise _exists(str(path)) from error
    except OSError as error:
        raise UsageError(
            f"--save-plan {path}: can't be written: {error.strerror or error}", hint="name another file"
        ) from error


def _exists(target: str) -> UsageError:
    return UsageError(f"--save-plan {target}: exists, and no plan is overwritten", hint="name a new file")


def rendered(plan: Plan, keys: Keys, device: str | None) -> str:
    """The text of a plan file that says all of a plan."""
    import tomlkit

    said = {name.removeprefix("--"): values for name, values in options(plan).items()}
    if device is not None:
        said["device"] = (device,)
    document = tomlkit.document()
    document.add(tomlkit.comment(f"A plan of normbench {keys.command}: what is measured, and how precisely."))
    document.add(tomlkit.comment(f"normbench {keys.command} --plan FILE takes what the command line does not say."))
    for key in keys.known:
        if (found := _said(key, said)) is not None:
            name, value = found
            document.add(tomlkit.nl())
            document.add(tomlkit.comment(_DEFAULT.sub("", key.help)))
            document.add(name, _item(value))
    return document.as_string()


def _said(key: Key, said: Mapping[str, tuple[str, ...]]) -> tuple[str, object] | None:
    """A key as it is written, and its value; None where the plan says nothing of it."""
    name = key.names[0]
    if key.kind is Kind.FLAG:
        return name, name in said
    if name not in said:
        return None
    if key.kind is Kind.LIST:
        return name, [_whole(word) for word in said[name]]
    (word,) = said[name]
    return name, _number(word)


def _whole(word: str) -> int | str:
    """A whole number where the word is one that reads the same again."""
    with suppress(ValueError):
        if str(int(word)) == word:
            return int(word)
    return word


def _number(word: str) -> int | float | str:
    with suppress(ValueError):
        return _whole(word) if isinstance(_whole(word), int) else float(word)
    return word


def _item(value: object) -> object:
    """A value for the document; a long list is broken into lines."""
    import tomlkit

    if not isinstance(value, Sequence) or isinstance(value, str):
        return value
    array = tomlkit.array()
    array.extend(value)
    return array.multiline(len(array.as_string()) > _WIDE)
