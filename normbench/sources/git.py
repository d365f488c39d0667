"""What git knows of a file: its repository, its commit, and the repository as it was at another one.

Nothing is ever written into the repository: no index, no list of worktrees, no branch; and no hook of it runs.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from normbench.errors import UsageError

_QUIETLY = (
    *("--literal-pathspecs", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "core.quotePath=false", "-c", "advice.graftFileDeprecated=false"),
)
"""No hook of the repository runs, the one that watches its files neither."""

_LOCATING = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"),
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE"),
    *("GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE", "GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS"),
    *("GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"),
)
"""Set inside a hook; they would lead to that hook's repository. ``safe.directory`` may come by others, which stay."""

_ALWAYS = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
"""``git status`` leaves the index as it is, nobody is asked for a password, and errors are in one language."""

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


class GitError(Exception):
    """What git said instead of doing it, on one line; or that there is no git."""


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A git repository.

    Args:
        root: Where its working tree begins; of a bare one, the repository itself.
    """

    root: Path

    def commit(self, revision: str) -> str:
        """The full hash of a revision's commit.

        Raises:
            UsageError: The repository knows no such revision, or the abbreviation stands for several.
        """
        try:
            found = self._said("rev-parse", "--verify", "--end-of-options", revision).strip()
            return self._said("rev-parse", "--verify", f"{found}^{{commit}}").strip()  # what a tag stands for
        except GitError as error:
            why = "stands for several commits there" if "is ambiguous" in str(error) else "has no such revision"
            raise UsageError(
                f"@{revision}: the git repository of that file {why}: {error}", hint=self._where_revisions_are()
            ) from error

    def _where_revisions_are(self) -> str:
        if self._asked("rev-parse", "--is-shallow-repository") == "true":
            return (
                "this clone is shallow and has its newest commits alone: git fetch --unshallow, or a checkout with "
                "fetch-depth: 0"
            )
        return "git fetch it first; git log and git branch --all say what there is"

    def head(self) -> str | None:
        """The full hash of the commit that is checked out; None before the first one."""
        return self._asked("rev-parse", "--verify", "--quiet", "HEAD^{commit}") or None

    def has_changes(self, file: Path) -> bool:
        """Whether the file is not committed, or any tracked file is not as it was committed, or git can't tell."""
        changes = self._asked("status", "--porcelain", "--untracked-files=no")
        return changes != "" or self._asked("ls-files", "--error-unmatch", "--", str(file)) is None

    def files(self, commit: str) -> tuple[str, ...]:
        """The paths of all files at a commit, from the root on."""
        return tuple(_parts(self._asked("ls-tree", "-r", "-z", "--full-tree", "--name-only", commit)))

    def former_path(self, within: str, commit: str) -> str | None:
        """Where a file of the working tree was at a commit, if it has been renamed since, as far as git sees that."""
        found = _parts(self._asked("diff", "--name-status", "--find-renames", "--diff-filter=R", "-z", commit, "--"))
        renamed = dict(zip(found[2::3], found[1::3], strict=False))
        return renamed.get(within)

    def write(self, commit: str, tree: Path, index: Path) -> None:
        """Write the files of a commit into an empty folder.

        By git's own rules of a checkout (line ends, filters such as Git LFS), but whole where the repository's own
        is sparse. Submodules are empty folders, as in a new clone.

        Args:
            commit: The full hash.
            tree: The folder.
            index: Where the list of files goes that git makes for it, in place of the repository's own.

        Raises:
            UsageError: It can't be written; says why.
        """
        own = {"GIT_WORK_TREE": str(tree), "GIT_INDEX_FILE": str(index)}
        words = ("read-tree", "--reset", "-u", "--no-sparse-checkout", "--no-recurse-submodules", commit)
        try:
            _git(self.root, *words, variables=own)
        except GitError as error:
            raise UsageError(
                f"@{commit[:10]}: git can't check it out: {error}", hint="git worktree add would say the same"
            ) from error

    def _said(self, *words: str) -> str:
        return _git(self.root, *words)

    def _asked(self, *words: str) -> str | None:
        """What git prints; None where it fails."""
        try:
            return self._said(*words).rstrip("\n")
        except GitError:
            return None


def repository_of(file: Path) -> Repository:
    """The repository that a file lies in, or would, if it were there.

    Raises:
        GitError: It lies in none, git is not there, or git does not trust whoever owns it.
    """
    folder = next(folder for folder in file.parents if folder.is_dir())
    try:
        return Repository(root=Path(_git(folder, "rev-parse", "--show-toplevel").removesuffix("\n")))
    except GitError:
        if _git(folder, "rev-parse", "--is-bare-repository").strip() != "true":
            raise
        return Repository(root=Path(_git(folder, "rev-parse", "--absolute-git-dir").removesuffix("\n")))


def is_lfs_pointer(file: Path) -> bool:
    """Whether Git LFS has not put the file's content in its place yet."""
    with file.open("rb") as opened:
        return opened.read(len(_LFS_POINTER)) == _LFS_POINTER


def same_name(path: str, others: tuple[str, ...]) -> list[str]:
    """Those of some paths that end in the same file name."""
    return [other for other in others if PurePosixPath(other).name == PurePosixPath(path).name]


def _parts(said: str | None) -> list[str]:
    return [part for part in (said or "").split("\0") if part]


def _git(folder: Path, *words: str, variables: Mapping[str, str] | None = None) -> str:
    """What git prints.

    Raises:
        GitError: It fails, or is not there.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _LOCATING}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *_QUIETLY, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
            env={**kept, **_ALWAYS, **(variables or {})},
        )
    except OSError as error:
        raise GitError(f"git can't be run: {error.strerror or error}") from error
    if done.returncode:
        raise GitError(_on_one_line(done.stderr) or f"git {words[0]} ended with {done.returncode}")
    return done.stdout


def _on_one_line(said: str) -> str:
    """What git says of a failure, without its hints where there is a reason."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    reasons = [line for line in lines if not line.startswith(("hint:", "warning:"))]
    words = " ".join(line.removeprefix("fatal: ").removeprefix("error: ") for line in reasons or lines)
    return words.rstrip(".")
