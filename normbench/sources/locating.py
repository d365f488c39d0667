"""Finds the code that was asked for: the file and its line, its commit, and the folder that it is imported from."""

from __future__ import annotations

import difflib
import hashlib
import os
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from normbench.errors import UsageError
from normbench.implementations import Located
from normbench.implementations.describing import contents, describe
from normbench.implementations.naming import provider_of
from normbench.implementations.packages import file_of
from normbench.records import Brought, ImplementationInfo, Source
from normbench.sources.git import GitError, Repository, is_lfs_pointer, repository_of, same_name
from normbench.sources.trees import checked_out
from normbench.sources.words import formula

_MOST_NAMES = 20
"""That are said of a file."""


@contextmanager
def located(asked: Sequence[Brought]) -> Iterator[tuple[Located, ...]]:
    """Where everything lies that was asked for; what git had to check out for it is gone after the context.

    Raises:
        UsageError: Something is not there; names the file, the revision or the attribute, and what there is.
    """
    with ExitStack() as stack:
        trees = _Trees(stack=stack, trees={})
        found = tuple(_found(one, trees) for one in asked)
        yield found


@dataclass(frozen=True, kw_only=True)
class _Trees:
    """Working trees at other commits, each made once."""

    stack: ExitStack
    trees: dict[tuple[Path, str], Path]

    def at(self, repository: Repository, commit: str) -> Path:
        key = (repository.root, commit)
        if key not in self.trees:
            self.trees[key] = self.stack.enter_context(checked_out(repository, commit))
        return self.trees[key]


@dataclass(frozen=True, kw_only=True)
class _Code:
    """A file or a module, before it is known what is taken from it."""

    module: str
    root: Path | None
    file: Path | None
    source: Source


def _found(asked: Brought, trees: _Trees) -> Located:
    try:
        return _located(asked, trees)
    except OSError as error:  # too long a name, a folder or a file that may not be read
        why = error.strerror or type(error).__name__
        raise UsageError(f"--impls: {asked}: can't be read: {why}", hint="a file that can be read") from error


def _located(asked: Brought, trees: _Trees) -> Located:
    code = _in_file(asked, trees) if asked.location.endswith(".py") else _in_module(asked, trees)
    if code.file is not None:
        _refuse_missing(asked, code.file)
    said = describe(code.file, asked.attribute) if code.file else None
    op = formula(asked)
    info = ImplementationInfo(
        name=asked.name,
        op=op,
        provider=provider_of(asked.name, op),
        summary=(said.summary if said else None) or asked.published.target,
        compiled=bool(said and said.compiled),
        source=replace(code.source, line=said.line if said else None),
    )
    return Located(
        info=info, attribute=asked.attribute, module=code.module, root=None if code.root is None else str(code.root)
    )


@dataclass(frozen=True, kw_only=True)
class _File:
    """A file, as it lies in a working tree of its repository, or in none."""

    path: Path
    tree: Path | None = None
    commit: str | None = None
    has_changes: bool = False


def _in_file(asked: Brought, trees: _Trees) -> _Code:
    path = Path(asked.location).absolute()
    file = _as_it_lies(asked, path) if asked.revision is None else _at_revision(asked, asked.revision, path, trees)
    if is_lfs_pointer(file.path):
        raise UsageError(
            f"--impls: {asked}: {asked.location} is kept in Git LFS, and only its pointer is here",
            hint="git lfs install, then git lfs pull",
        )
    root = _import_root(file.path)
    return _Code(
        module=_module(asked, file.path.relative_to(root)),
        root=None if _is_for_packages(root) else root,
        file=file.path,
        source=Source(
            file=_below(file.tree, file.path) or file.path.name,
            commit=file.commit,
            has_changes=file.has_changes,
            digest=_digest(file.path),
        ),
    )


def _as_it_lies(asked: Brought, path: Path) -> _File:
    """The file as it is, and of which commit where git knows that."""
    if not path.is_file():
        raise UsageError(f"--impls: {asked}: there is no file {asked.location}", hint="a path from this folder")
    try:
        repository = repository_of(path)
    except GitError:  # it is measured all the same
        return _File(path=path)
    return _File(path=path, tree=repository.root, commit=repository.head(), has_changes=repository.has_changes(path))


def _at_revision(asked: Brought, revision: str, path: Path, trees: _Trees) -> _File:
    """The file in a working tree of that revision's commit."""
    try:
        repository = repository_of(path)
    except GitError as error:
        why = f"--impls: {asked}: {asked.location} is in no git repository that can be used: {error}"
        raise UsageError(why, hint="leave @ and what follows out to take the file as it lies there") from error
    within = _below(repository.root, path)
    if within is None:
        why = f"--impls: {asked}: {asked.location} leads out of its git repository"
        raise UsageError(why, hint="name the file where it really is")
    commit = repository.commit(revision)
    tree = trees.at(repository, commit)
    if not (tree / within).is_file():
        raise _not_there(asked, repository, within, commit)
    return _File(path=tree / within, tree=tree, commit=commit)


def _not_there(asked: Brought, repository: Repository, within: str, commit: str) -> UsageError:
    """The error where a commit lacks the file, and where it is instead."""
    former = repository.former_path(within, commit)
    there = [former] if former else same_name(within, repository.files(commit))
    what = "it has been renamed since: " if former else ""
    hint = f"{what}{' or '.join(_again(asked, repository, each) for each in there[:3])}" if there else None
    return UsageError(
        f"--impls: {asked}: there is no file {asked.location} at {asked.revision} (commit {commit[:10]})",
        hint=hint or "name a revision that has it, or leave @ and what follows out",
    )


def _again(asked: Brought, repository: Repository, within: str) -> str:
    """What to ask for where the file is another one of the repository."""
    path = os.path.relpath(repository.root / within)
    return str(replace(asked, target=f"{path}:{asked.attribute}"))


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _below(folder: Path | None, path: Path) -> str | None:
    """The path from a folder on; None where it is not below it."""
    real = path.resolve()
    if folder is None or not real.is_relative_to(folder.resolve()):
        return None
    return real.relative_to(folder.resolve()).as_posix()


def _import_root(path: Path) -> Path:
    """The folder that the file is imported from: its own, or the one that holds the outermost package it is of."""
    root = path.parent
    while (root / "__init__.py").is_file() and root.parent != root:
        root = root.parent
    return root


def _module(asked: Brought, path: Path) -> str:
    """The dotted name of a file below the folder that it is imported from.

    Raises:
        UsageError: It can have none.
    """
    *above, stem = path.with_suffix("").parts
    names = above if above and stem == "__init__" else [*above, stem]
    if any("." in name for name in names):
        raise UsageError(f"--impls: {asked}: a name with a dot can't be imported: {path}", hint="rename or copy it")
    return ".".join(names)


def _is_for_packages(folder: Path) -> bool:
    """Whether Python's packages are installed there, which are not imported a second time."""
    return str(folder.resolve()) in {os.path.realpath(sysconfig.get_path(name)) for name in ("purelib", "platlib")}


def _in_module(asked: Brought, trees: _Trees) -> _Code:
    here = Path.cwd().joinpath(*asked.location.split("."))
    for file in (here / "__init__.py", here.with_name(f"{here.name}.py")):
        if file.is_file():
            in_file = replace(asked, target=f"{file}:{asked.attribute}")
            return replace(_in_file(in_file, trees), module=asked.location, root=Path.cwd())
    found = file_of(asked.location)
    if found is None:
        raise UsageError(
            f"--impls: {asked}: there is no module {asked.location}",
            hint="pip install its package here, or name its file: path/to/file.py:attribute",
        )
    source = Source(file=asked.location, package=_package(asked.location.partition(".")[0]))
    return _Code(module=asked.location, root=None, file=found if found.suffix == ".py" else None, source=source)


def _package(top: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, packages_distributions, version

    for name in packages_distributions().get(top, ()):
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return None


def _refuse_missing(asked: Brought, file: Path) -> None:
    """A UsageError where the file certainly has no such name."""
    there, name = contents(file), asked.attribute.partition(".")[0]
    is_module = file.name == "__init__.py" and any((file.parent / each).exists() for each in (name, f"{name}.py"))
    if there.is_complete and name not in there.names and not is_module:
        nearest = difflib.get_close_matches(name, there.names, n=1)
        hint = f"did you mean {nearest[0]}? " if nearest else ""
        has = [each for each in there.names if not each.startswith("__")][:_MOST_NAMES]
        raise UsageError(
            f"--impls: {asked}: {asked.location} has no {name!r}", hint=f"{hint}it has: {', '.join(has) or 'nothing'}"
        )
