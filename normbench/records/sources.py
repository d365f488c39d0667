"""Where the code of an implementation lies that normbench does not bring: as asked for, and as found."""

from __future__ import annotations

from dataclasses import dataclass, replace

BASE, HEAD = "base", "head"
"""The providers by whose names two versions of one code are told apart: what it was, and what it is."""


@dataclass(frozen=True, kw_only=True)
class Brought:
    """An implementation that the user brings, as it is asked for: ``mine=kernels/rms.py:fused@main``.

    Args:
        name: What it is called in the run.
        target: ``path/to/file.py:attribute``, the path from the current folder or an absolute one, or
            ``package.module:attribute``.
        revision: The git revision that the file is taken from; None for the file as it lies there.
    """

    name: str
    target: str
    revision: str | None = None

    @property
    def location(self) -> str:
        """The file's path, or the module's dotted name."""
        return self.target.rpartition(":")[0]

    @property
    def attribute(self) -> str:
        """What is taken from it."""
        return self.target.rpartition(":")[2]

    @property
    def published(self) -> Brought:
        """The same as run folders hold it: of an absolute path its last part, since they are public."""
        location = self.location.rpartition("/")[2] if self.location.startswith("/") else self.location
        return replace(self, target=f"{location}:{self.attribute}")

    def __str__(self) -> str:
        return f"{self.name}={self.target}{f'@{self.revision}' if self.revision else ''}"


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where an implementation's code was found.

    Args:
        file: The file, from the root of its git repository where it is in one; for a module of an installed package
            its dotted name.
        line: Where the definition begins; None where that can't be told without running it.
        commit: The full hash of the commit that the file belongs to; None outside a repository.
        has_changes: Whether the file or others of its repository are not as in that commit.
        package: The installed package that it is of, and its version.
        digest: SHA-256 of the file; None where there is no file.
    """

    file: str
    line: int | None = None
    commit: str | None = None
    has_changes: bool = False
    package: str | None = None
    digest: str | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        of = f" of {self.package}" if self.package else ""
        if self.commit is None:
            return f"{place}{of}"
        return f"{place}{of} at commit {self.commit[:10]}{', with uncommitted changes' if self.has_changes else ''}"
