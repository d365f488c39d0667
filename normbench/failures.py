"""From an error to a status and a reason of one line which may be published."""

from __future__ import annotations

import re
from dataclasses import dataclass

from normbench.device import is_out_of_memory
from normbench.records import Status

_REASON_LENGTH = 300
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HOMES = re.compile(r"[/\\](?:home|Users)[/\\][^/\\\s'\":;,]+")
_TEMPORARY = re.compile(r"torchinductor_\w+")
_FOLDERS = re.compile(r"(?:[/\\][^/\\\s'\":;,]+)+[/\\]|~[/\\](?:[^/\\\s'\":;,]+[/\\])+")
"""The folders of an absolute path, up to its last part."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why something has no time. Unlike an exception it can be sent from one process to another."""

    status: Status
    reason: str


def failure(error: BaseException) -> Failure:
    """What ``error`` means for the case that raised it."""
    status = Status.OUT_OF_MEMORY if is_out_of_memory(error) else Status.FAILED
    return Failure(status=status, reason=describe(error))


def describe(error: BaseException) -> str:
    """An error in one line, of each path only its last part: reports are public.

    Where the first line ends in a colon, as torch's do when it wraps another's error, the next is its cause.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    text = _FOLDERS.sub("…/", _HOMES.sub("~", _CONTROL.sub(" ", text)))
    return _TEMPORARY.sub("torchinductor", text)[:_REASON_LENGTH]
