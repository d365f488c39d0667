"""Every implementation that a run can name: the built-in ones, those of packages, and what a user brings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from normbench.implementations.base import Implementation
from normbench.implementations.brought import implementation
from normbench.implementations.located import Located
from normbench.records import Op


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """Implementations, in the order in which reports list them; no two have one name.

    Args:
        implementations: All of them.
        located: Where the code of those lies that a user brings, behind the others.
    """

    implementations: tuple[Implementation, ...]
    located: tuple[Located, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(one.name for one in self.implementations)

    @property
    def norms(self) -> tuple[Implementation, ...]:
        """All but the floor."""
        return tuple(one for one in self.implementations if one.op is not Op.COPY)

    def chosen(self, names: Collection[str]) -> tuple[Implementation, ...]:
        """Those that are named."""
        return tuple(one for one in self.implementations if one.name in names)

    def by_name(self, name: str) -> Implementation:
        """The one of that name; a KeyError where there is none."""
        for one in self.implementations:
            if one.name == name:
                return one
        raise KeyError(name)

    def with_brought(self, located: Sequence[Located]) -> Catalog:
        """The same, and behind them what a user brings."""
        found = (*self.implementations, *map(implementation, located))
        return Catalog(implementations=found, located=tuple(located))
