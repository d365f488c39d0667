"""How a user names code: ``[NAME=]path/to/file.py:attribute[@REVISION]`` or ``[NAME=]package.module:attribute``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath

from normbench.errors import UsageError
from normbench.implementations.naming import NAME, called, op_of
from normbench.records import Brought

_SPEC = re.compile(
    r"(?:(?P<name>[^=:@/]*)=)?(?P<where>[^=]+?):(?P<attribute>[^\W\d]\w*(?:\.[^\W\d]\w*)*)(?:@(?P<revision>.+))?"
)
_MODULE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_REVISION = re.compile(r"[^\s-][^\s]*")
_FORMS = "allowed: [NAME=]path/to/file.py:attribute[@GIT_REVISION] or [NAME=]package.module:attribute"


def is_spec(value: str) -> bool:
    """Whether a value of ``--impls`` names code, and not an implementation that is there already."""
    return ":" in value or "=" in value or value.endswith(".py")


def asked_for(option: str, value: str, taken: Collection[str]) -> Brought:
    """What a value of ``--impls`` asks for.

    Args:
        option: The option, for errors.
        value: What stands there.
        taken: The names that there are already.

    Raises:
        UsageError: It has not that form; names the part that is wrong.
    """
    found = _SPEC.fullmatch(value)
    if found is None and value.endswith(".py"):
        raise UsageError(f"{option}: {value}: which function or class of it?", hint=f"say it: {value}:NAME")
    if found is None:
        raise UsageError(f"{option}: {value!r} names no code", hint=_FORMS)
    where, attribute, revision = found["where"], found["attribute"], found["revision"]
    is_file = where.endswith(".py")
    if not is_file and not _MODULE.fullmatch(where):
        raise UsageError(f"{option}: {where!r} is neither a .py file nor a module", hint=_FORMS)
    if revision is not None and not (is_file and _REVISION.fullmatch(revision)):
        why = "is no git revision" if is_file else "is of files in a git repository, not of modules"
        raise UsageError(f"{option}: @{revision}: {why}", hint=_FORMS)
    target = f"{_said(_path(option, where)) if is_file else where}:{attribute}"
    name = _named(option, value, found["name"], where, attribute)
    if name in taken:
        raise UsageError(
            f"{option}: {value}: there is an implementation {name!r} already",
            hint=f"another name: NAME={value.partition('=')[2] or value}",
        )
    return Brought(name=name, target=target, revision=revision)


def _named(option: str, value: str, name: str | None, where: str, attribute: str) -> str:
    if name is None:
        stem = PurePosixPath(where).stem if where.endswith(".py") else where.rpartition(".")[2]
        op = op_of(attribute, stem)
        if op is None:
            raise unknown_formula(option, value, attribute)
        return called(stem, attribute, op)
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{option}: {name!r} is no name", hint="allowed: letters, digits, and inside . _ -; up to 64"
        )
    return name


def unknown_formula(option: str, value: str, attribute: str) -> UsageError:
    """The error where nothing says of which formula the code is."""
    return UsageError(
        f"{option}: {value}: does {attribute} compute LayerNorm or RMSNorm? No name in it says so",
        hint=f"end its name in its formula: NAME-rmsnorm={value.partition('=')[2] or value}",
    )


def parts(option: str, values: Iterable[str]) -> list[str]:
    """The values of ``--impls``, at commas, spaces and repeats, where these are not of a file's path."""
    found = []
    for value in values:
        found += _split(option, value.strip(), ",")
    if not found:
        raise UsageError(f"{option}: no value", hint="give one or more, or leave the option out")
    return found


def _split(option: str, value: str, separators: str) -> list[str]:
    """A value at a separator, and its parts at spaces; whole where it names a file whose path has some."""
    spec = _SPEC.fullmatch(value)
    if spec is not None and "," not in (spec["name"] or "") and _is_file(_path(option, spec["where"])):
        return [value]
    if separators and separators in value:
        return [one for part in value.split(separators) for one in _split(option, part.strip(), "")]
    return value.split()


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # too long a name, or a folder that may not be looked into
        return False


def _path(option: str, where: str) -> Path:
    """The path, a home in its place.

    Raises:
        UsageError: There is no such home.
    """
    try:
        return Path(where).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{option}: {where}: there is no such home", hint="name the path itself") from error


def _said(path: Path) -> str:
    """The path as short as it can be: from the current folder where it is below that, or was given so."""
    if not path.is_absolute():
        return PurePosixPath(*path.parts).as_posix()
    below = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return below.as_posix()
