"""What users bring: code of their own, by its place, as an implementation like any other."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from normbench.implementations.base import Bind, Implementation, Setting
from normbench.implementations.located import Located
from normbench.records import DeviceInfo


def implementation(located: Located) -> Implementation:
    """The implementation whose code lies there; nothing of it runs before it is loaded or built."""
    info = located.info
    return Implementation(
        name=info.name,
        op=info.op,
        provider=info.provider,
        summary=info.summary,
        build=partial(_build, located),
        load=partial(_load, located),
        unsupported=_needs_compiler if info.compiled else Implementation.unsupported,
        compiled=info.compiled,
        located=located,
    )


def _load(located: Located, implementation: Implementation) -> Implementation:
    """With what the code says of itself, where it is an ``Implementation``."""
    from normbench.implementations.loading import load

    found = load(located)
    if not isinstance(found, Implementation):
        return implementation
    return replace(
        implementation,
        unsupported=partial(_unsupported, found),
        observe=found.observe,
        mutates=found.mutates,
        reuses_output=found.reuses_output,
        unset=found.unset,
    )


def _unsupported(found: Implementation, setting: Setting, device: DeviceInfo) -> str | None:
    try:
        return found.unsupported(setting, device)
    except Exception as error:  # whoever wrote it has no say in how that is asked
        return f"asked whether it runs here it raised {type(error).__name__}"


def _build(located: Located, setting: Setting) -> Bind:
    from normbench.implementations.adapting import adapted
    from normbench.implementations.loading import load

    return adapted(load(located), located.info.op, setting)


def _needs_compiler(_setting: Setting, device: DeviceInfo) -> str | None:
    from normbench.compilation import missing_compiler

    return missing_compiler(device.kind)
