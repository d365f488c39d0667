"""Finds the code that was asked for: the file and its line, its commit, and the folder that it is imported from."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path, PurePosixPath

from normbench.errors import UsageError
from normbench.implementations import Located
from normbench.implementations.describing import contents, describe
from normbench.implementations.naming import op_of, provider_of
from normbench.implementations.packages import file_of
from normbench.records import Brought, ImplementationInfo, Op, Source
from normbench.sources.git import Repository, repository_of
from normbench.sources.words import unknown_formula


@contextmanager
def located(asked: Sequence[Brought]) -> Iterator[tuple[Located, ...]]:
    """Where everything lies that was asked for; what git had to check out for it is gone after the context.

    Raises:
        UsageError: Something is not there; names the file, the revision or the attribute, and what there is.
    """
    with ExitStack() as stack:
        trees = _Trees(stack=stack, trees={})
        yield tuple(_located(one, trees) for one in asked)


@dataclass(frozen=True, kw_only=True)
class _Trees:
    """Working trees at other commits, each made once."""

    stack: ExitStack
    trees: dict[tuple[Path, str], Path]

    def at(self, repository: Repository, commit: str) -> Path:
        key = (repository.root, commit)
        if key not in self.trees:
            self.trees[key] = self.stack.enter_context(repository.checked_out(commit))
        return self.trees[key]


@dataclass(frozen=True, kw_only=True)
class _Code:
    """A file or a module, before it is known what is taken from it."""

    module: str
    root: Path | None
    file: Path | None
    source: Source


def _located(asked: Brought, trees: _Trees) -> Located:
    code = _in_file(asked, trees) if asked.location.endswith(".py") else _in_module(asked)
    if code.file is not None:
        _refuse_missing(asked, code.file)
    said = describe(code.file, asked.attribute) if code.file else None
    op = _op(asked)
    info = ImplementationInfo(
        name=asked.name,
        op=op,
        provider=provider_of(asked.name, op),
        summary=(said.summary if said else None) or asked.target,
        compiled=bool(said and said.compiled),
        source=replace(code.source, line=said.line if said else None),
    )
    return Located(
        info=info, attribute=asked.attribute, module=code.module, root=None if code.root is None else str(code.root)
    )


def _op(asked: Brought) -> Op:
    """The formula: what its own name says, else the attribute's, else the file's."""
    op = op_of(asked.name, asked.attribute, PurePosixPath(asked.location).stem)
    if op is None:
        raise unknown_formula("--impls", str(asked), asked.attribute)
    return op


@dataclass(frozen=True, kw_only=True)
class _File:
    """A file, as it lies in a working tree of its repository, or in none."""

    path: Path
    tree: Path | None = None
    commit: str | None = None
    has_changes: bool = False


def _in_file(asked: Brought, trees: _Trees) -> _Code:
    path = Path(asked.location).absolute()
    repository = repository_of(path)
    if asked.revision is not None:
        file = _at_revision(asked, repository, path, trees)
    elif repository is not None and path.is_file():
        file = _File(
            path=path, tree=repository.root, commit=repository.head(), has_changes=repository.has_changes(path)
        )
    else:
        file = _File(path=path)
    if not file.path.is_file():
        at = f" at {asked.revision}" if asked.revision else ""
        raise UsageError(f"--impls: {asked}: there is no file {asked.location}{at}", hint="a path from this folder")
    root = _import_root(file.path)
    return _Code(
        module=".".join(file.path.relative_to(root).with_suffix("").parts),
        root=root,
        file=file.path,
        source=Source(
            file=_below(file.tree, file.path) or file.path.name,
            commit=file.commit,
            has_changes=file.has_changes,
            digest=_digest(file.path),
        ),
    )


def _at_revision(asked: Brought, repository: Repository | None, path: Path, trees: _Trees) -> _File:
    """The file in a working tree of that revision's commit."""
    within = None if repository is None else _below(repository.root, path)
    if repository is None or within is None:
        why = f"--impls: {asked}: {asked.location} is in no git repository"
        raise UsageError(why, hint="leave @ and what follows out")
    commit = repository.commit(asked.revision or "HEAD")
    tree = trees.at(repository, commit)
    return _File(path=tree / within, tree=tree, commit=commit)


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


def _in_module(asked: Brought) -> _Code:
    here = Path.cwd() / Path(*asked.location.split("."))
    for file in (here.with_suffix(".py"), here / "__init__.py"):
        if file.is_file():
            source = Source(file=asked.location, digest=_digest(file))
            return _Code(module=asked.location, root=Path.cwd(), file=file, source=source)
    found = file_of(asked.location)
    if found is None:
        raise UsageError(
            f"--impls: {asked}: there is no module {asked.location}",
            hint="pip install its package here, or name its file: path/to/file.py:attribute",
        )
    source = Source(file=asked.location, package=_package(asked.location.partition(".")[0]))
    return _Code(module=asked.location, root=None, file=found if found.suffix == ".py" else None, source=source)


def _package(top: str) -> str | None:
    for name in packages_distributions().get(top, ()):
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return None


def _refuse_missing(asked: Brought, file: Path) -> None:
    """A UsageError where the file certainly has no such name."""
    there, name = contents(file), asked.attribute.partition(".")[0]
    if there.is_complete and name not in there.names:
        nearest = difflib.get_close_matches(name, there.names, n=1)
        hint = f"did you mean {nearest[0]}? " if nearest else ""
        raise UsageError(
            f"--impls: {asked}: {asked.location} has no {name!r}",
            hint=f"{hint}it has: {', '.join(there.names) or 'nothing'}",
        )
