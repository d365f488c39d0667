"""Base against head: what is brought by the name of base is what the others are measured against."""

from __future__ import annotations

from normbench.errors import UsageError
from normbench.implementations import Catalog
from normbench.records import BASE, HEAD
from normbench.units import join


def baseline(asked: str | None, catalog: Catalog) -> str | None:
    """The baseline: what was asked for, else what is brought as ``base``, or ``base-rmsnorm``; None where nothing is.

    Raises:
        UsageError: Several are base, or head computes another formula than base, and nobody said what is meant.
    """
    infos = [one.info for one in catalog.located]
    bases = [info for info in infos if info.provider == BASE]
    if asked is not None or not bases:
        return asked
    if len(bases) > 1:
        names = [info.name for info in bases]
        raise UsageError(f"--impls: {join(names)} are all base", hint="say which one: --baseline NAME")
    [base] = bases
    for info in infos:
        if info.provider == HEAD and info.op is not base.op:
            raise UsageError(
                f"--impls: {base.name} computes {base.op} and {info.name} {info.op}: no change of one code",
                hint=f"end both names in the same formula, as in {BASE}-{base.op} and {HEAD}-{base.op}, or say "
                "--baseline NAME",
            )
    return base.name
