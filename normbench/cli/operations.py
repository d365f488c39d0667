"""Which operation a run measures: one a run, named or told by its implementations."""

from __future__ import annotations

from normbench.cli import options
from normbench.cli.bringing import Impls
from normbench.errors import UsageError
from normbench.implementations import Catalog
from normbench.records import Operation
from normbench.sources import formula


def operation_of(named: str | None, chosen: Impls, baseline: str | None, there: Catalog) -> Operation | None:
    """The one operation that is asked for; None where nothing says so.

    Raises:
        UsageError: Implementations of several operations, or of another than the one that is named.
    """
    wanted = None if named is None else options.choice("--operation", Operation, named)
    found = _told(chosen, baseline, there)
    if len(found) > 1:
        each = "; ".join(f"{operation}: {' '.join(names)}" for operation, names in found.items())
        raise UsageError(
            f"--impls, --baseline: one run measures one operation, and these are of {len(found)}: {each}",
            hint="run a sweep for each, with a baseline of its own",
        )
    if wanted is not None and found.keys() - {wanted}:
        ((other, names),) = found.items()
        raise UsageError(
            f"--operation {wanted}: {' '.join(names)} {'is' if len(names) == 1 else 'are'} of {other}",
            hint=f"of {wanted} there are: {', '.join(there.of(wanted).names)}",
        )
    return wanted or next(iter(found), None)


def _told(chosen: Impls, baseline: str | None, there: Catalog) -> dict[Operation, list[str]]:
    """The operations of everybody who is named, in order, and who that is."""
    known = {one.name: one.op.operation for one in there.implementations}
    known |= {one.name: formula(one).operation for one in chosen.brought}
    asked = options.unique([*chosen.names, *([baseline] if baseline is not None else [])])
    return {o: own for o in Operation if (own := [name for name in asked if known[name] is o])}
