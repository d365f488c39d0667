"""How a folder was made, as its header says it: when, by which command, and on which device that names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime


def now_utc() -> str:
    """The time as headers hold it: ``2026-01-02T03:04:05Z``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def command_line(name: str, device: str, options: Mapping[str, Iterable[object]]) -> tuple[str, ...]:
    """A command with all its options and their values; a flag has none."""
    words = [word for option, values in options.items() for word in (option, *map(str, values))]
    return ("normbench", name, "--device", device, *words)


def device_of(command: Sequence[str]) -> str | None:
    """The device that a command names; None where it names none."""
    at = command.index("--device") + 1 if "--device" in command else len(command)
    return command[at] if at < len(command) else None
