"""Which operation a command measures and who computes it: one a run; norms alone where there is no residual."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from normbench.cli import options
from normbench.errors import UsageError
from normbench.implementations import names_of
from normbench.records import Operation


def operation_of(named: str | None, implementations: Collection[str], baseline: str | None) -> Operation | None:
    """The one operation that is asked for; None where nothing says so.

    Raises:
        UsageError: Implementations of several operations, or of another than the one that is named.
    """
    wanted = None if named is None else options.choice("--operation", Operation, named)
    asked = options.unique([*implementations, *([baseline] if baseline is not None else [])])
    found = {o: own for o in Operation if (own := [name for name in asked if name in names_of(o)])}
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
            hint=f"of {wanted} there are: {', '.join(names_of(wanted))}",
        )
    return wanted or next(iter(found), None)


def candidate(option: str, value: str) -> str:
    """The name of an implementation of any operation that is no floor."""
    return options.one_of(option, [name for o in Operation for name in names_of(o)[1:]], value, "implementation")


def alone(option: str, names: Sequence[str], value: str) -> str:
    """The name of a norm, for commands that have no residual to add.

    Raises:
        UsageError: Another name; one of a residual add and norm is told where it can be measured.
    """
    if value in names_of(Operation.ADD_NORM):
        raise UsageError(
            f"{option}: {value} is of {Operation.ADD_NORM}, a {Operation.ADD_NORM.words}: norms alone are taken here",
            hint=f"normbench sweep --impls {value}, or profile",
        )
    return options.one_of(option, names, value, "implementation")
