"""Little git repositories with a norm in them, made with git itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

FAST = '''import torch


def rmsnorm(x, weight, eps):
    """RMSNorm in three ops."""
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight
'''
SLOW = '''import torch


def rmsnorm(x, weight, eps):
    """RMSNorm that takes its time."""
    for _ in range(20):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return x * scale * weight
'''
WRONG = FAST.replace("* weight\n", "* weight * 2\n")
FILE = "kernels/rms.py"


class Repository:
    """A repository, as a user has it.

    Args:
        folder: Where it is made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main", ".")
        self.git("config", "user.email", "someone@example.org")
        self.git("config", "user.name", "Someone")

    def git(self, *words: str | Path) -> str:
        """What git prints."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        done = subprocess.run(
            ["git", "-C", self.folder, *words], check=True, capture_output=True, text=True, env=clean, timeout=60
        )
        return done.stdout.strip()

    def write(self, text: str, name: str = FILE) -> Path:
        """A file as it lies there."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def commit(self, text: str, name: str = FILE, message: str = "a change") -> str:
        """A commit with a file; its full hash."""
        self.write(text, name)
        return self.commit_all(message)

    def commit_all(self, message: str = "a change") -> str:
        """A commit with whatever there is; its full hash."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    @property
    def state(self) -> dict[str, str]:
        """All that a user can see of it, and every file that git keeps, with the time of its last change."""
        seen = {
            words: self.git(*words.split())
            for words in ("status --porcelain", "worktree list", "stash list", "branch --all", "rev-parse HEAD")
        }
        return seen | dict(self._kept())

    def _kept(self) -> Iterator[tuple[str, str]]:
        # git status itself may write the index anew: it has done so by now, when what is seen comes first.
        for path in sorted((self.folder / ".git").rglob("*")):
            if path.is_file() and path.name != "index":
                yield str(path), str(path.stat().st_mtime_ns)
        yield "index", self.git("ls-files", "--stage")
