"""What git knows of a file: its repository, its commit, and the repository as it was at another one."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from normbench.errors import UsageError

_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
_LOCATING = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_PREFIX")
"""Set inside a hook; they would lead to that hook's repository."""


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A git repository.

    Args:
        root: Where its working tree begins.
    """

    root: Path

    def commit(self, revision: str) -> str:
        """The full hash of a revision's commit.

        Raises:
            UsageError: The repository knows no such revision.
        """
        found = _git(self.root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if found is None:
            raise UsageError(
                f"@{revision}: the git repository of that file has no such revision",
                hint="git fetch it first; a shallow clone (fetch-depth: 1) has its own commit alone",
            )
        return found.strip()

    def head(self) -> str | None:
        """The full hash of the commit that is checked out; None before the first one."""
        found = _git(self.root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return found.strip() if found else None

    def has_changes(self, file: Path) -> bool:
        """Whether the file is not committed, or any tracked file is not as it was committed."""
        changes = _git(self.root, "status", "--porcelain", "--untracked-files=no")
        return bool(changes) or _git(self.root, "ls-files", "--error-unmatch", "--", str(file)) is None

    @contextmanager
    def checked_out(self, commit: str) -> Iterator[Path]:
        """A folder that holds the repository as it was at a commit, for as long as the context lasts."""
        folder = Path(tempfile.mkdtemp(prefix="normbench-"))
        tree = folder / self.root.name
        try:
            made = _run(self.root, *_NO_HOOKS, "worktree", "add", "--detach", "--quiet", str(tree), commit)
            if made.returncode:
                why = (made.stderr.strip().splitlines() or ["no reason given"])[-1]
                raise UsageError(f"@{commit[:10]}: git can't check it out: {why}", hint="see git worktree add")
            yield tree
        finally:
            _run(self.root, "worktree", "remove", "--force", str(tree))
            shutil.rmtree(folder, ignore_errors=True)
            _run(self.root, "worktree", "prune")


def repository_of(file: Path) -> Repository | None:
    """The repository that a file lies in; None where it lies in none, or git is not there."""
    folder = next(folder for folder in file.parents if folder.is_dir())
    found = _git(folder, "rev-parse", "--show-toplevel")
    return Repository(root=Path(found.rstrip("\n"))) if found else None


def _git(folder: Path, *words: str) -> str | None:
    """What git prints; None where it fails."""
    try:
        done = _run(folder, *words)
    except OSError:
        return None
    return None if done.returncode else done.stdout


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in _LOCATING}
    return subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, check=False, env=environment
    )
