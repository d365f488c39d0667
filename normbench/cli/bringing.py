"""``--impls``: names of what there is, and what the user brings; from both the catalog of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from normbench.cli import options
from normbench.errors import UsageError
from normbench.implementations import Catalog, Implementation, catalog
from normbench.records import Brought, ImplementationInfo, Operation, Source
from normbench.sources import asked_for, formula, is_spec, parts


@dataclass(frozen=True, kw_only=True)
class Impls:
    """What ``--impls`` says.

    Args:
        names: Of all that are named, brought or there.
        brought: Those that the user brings.
    """

    names: tuple[str, ...] = ()
    brought: tuple[Brought, ...] = ()


def impls(option: str, values: Sequence[str], there: Sequence[str]) -> Impls:
    """What the values of ``--impls`` name.

    Args:
        option: The option, for errors.
        values: What stands there.
        there: The names that there are without anything brought.

    Raises:
        UsageError: There is no such implementation, or a name is there twice.
    """
    names: list[str] = []
    brought: list[Brought] = []
    for value in parts(option, values) if values else ():
        if is_spec(value):
            one = asked_for(option, value, [*there, *(other.name for other in brought)])
            brought.append(one)
            names.append(one.name)
        else:
            names.append(options.one_of(option, there, value, "implementation"))
    return Impls(names=options.unique(names), brought=tuple(brought))


def norms(option: str, values: Sequence[str], there: Sequence[str]) -> Impls:
    """The same for commands that have no residual to add; ``there`` are the norms alone.

    Raises:
        UsageError: Also where something computes a residual add and norm: it says where that can be measured.
    """
    for value in parts(option, values) if values else ():
        refuse_adds(option, value, catalog())
    named = impls(option, values, there)
    for one in named.brought:
        if formula(one).adds:
            raise no_norm_alone(option, str(one))
    return named


def baseline(value: str, there: Catalog, chosen: Impls) -> str:
    """The name of a baseline, which may be brought and is no floor."""
    names = [*(one.name for one in there.candidates), *(one.name for one in chosen.brought)]
    return options.one_of("--baseline", names, value, "implementation")


def refuse_adds(option: str, value: str, there: Catalog) -> None:
    """A UsageError where a name is of a residual add and norm, for commands that have no residual to add."""
    if value in there.of(Operation.ADD_NORM).names:
        raise no_norm_alone(option, value)


def no_norm_alone(option: str, value: str) -> UsageError:
    """The error where a residual add and norm is named and a norm alone is wanted; says where it can be measured."""
    what = f"{Operation.ADD_NORM}, a {Operation.ADD_NORM.words}"
    return UsageError(
        f"{option}: {value} is of {what}: norms alone are taken here",
        hint=f"normbench sweep --impls {value}, or profile",
    )


def at_commits(brought: Sequence[Brought], found: Sequence[ImplementationInfo]) -> tuple[Brought, ...]:
    """The same, each revision by the commit at which the code was found: a branch may have moved since."""
    sources = {info.name: info.source for info in found}
    return tuple(_at_commit(one, sources.get(one.name)) for one in brought)


def _at_commit(one: Brought, source: Source | None) -> Brought:
    return replace(one, revision=source.commit) if one.revision and source else one


@contextmanager
def catalog_with(brought: Sequence[Brought]) -> Iterator[Catalog]:
    """What there is together with what is brought, for as long as the context lasts."""
    from normbench.sources.locating import located

    with located(brought) as found:
        yield catalog().with_brought(found)


def loaded(implementations: Sequence[Implementation]) -> tuple[Implementation, ...]:
    """The same, and everybody's code imported into this process before anybody's is built."""
    return tuple(one.loaded() for one in implementations)
