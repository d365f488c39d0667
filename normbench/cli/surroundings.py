"""Device and software that a run began with beside those that are here now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from normbench import units
from normbench.records import DeviceInfo, ImplementationInfo, RunHeader, StepHeader

Header: TypeAlias = RunHeader | StepHeader
_DIGITS = 10

_DIGITS = 10
"""Of a digest: enough to see that a file is another one."""


def differences(began: Header, now: Header) -> tuple[str, ...]:
    """What is not as it was, a sentence each: ``torch was 2.12.0, is 2.13.0``."""
    before, after = _values(began), _values(now)
    return tuple(
        f"{name} was {before.get(name, units.ABSENT)}, is {after.get(name, units.ABSENT)}"
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    )


def _values(header: Header) -> dict[str, str]:
    """Everything by its name, absent values left out; each package is a thing of its own."""
    software = {k: v for k, v in vars(header.environment).items() if k != "packages"}
    found = {**_named(header.device), **software, **dict(header.environment.packages), **_kinds(header)}
    return {name: " ".join(_texts(value)) for name, value in found.items() if value not in (None, ())}


def _named(device: DeviceInfo) -> dict[str, object]:
    """The fields of a device, named so that they say whose they are."""
    plain = {name: value for name, value in vars(device).items() if name != "slug"}
    return {("device" if name == "name" else name): value for name, value in plain.items()}


def _kinds(header: Header) -> dict[str, object]:
    """What each implementation computes, whether it is compiled, and whose code it is: it may be another now."""
    return {info.name: ", ".join(_kind(info)) for info in header.implementations}


def _kind(info: ImplementationInfo) -> Iterator[str]:
    yield str(info.op)
    if info.compiled:
        yield "compiled"
    if info.source is not None:
        yield str(info.source)
        if info.source.digest is not None:
            yield f"SHA-256 {info.source.digest[:_DIGITS]}"


def _texts(value: object) -> Iterator[str]:
    yield from (str(part) for part in value) if isinstance(value, tuple) else (str(value),)
