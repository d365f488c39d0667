"""Where the code of an implementation lies that is not normbench's own."""

from __future__ import annotations

from dataclasses import dataclass

from normbench.records import ImplementationInfo


@dataclass(frozen=True, kw_only=True)
class Located:
    """Where an implementation's code lies on this machine, and what is known of it before it is run.

    Args:
        info: What reports say of it.
        attribute: The name of the function or class there; dots lead into classes.
        module: The dotted name under which it is imported.
        root: The folder from which that name is found; None for what Python finds by itself.
    """

    info: ImplementationInfo
    attribute: str
    module: str
    root: str | None = None
