"""The command line in this process: words in, exit code and both streams out."""

from __future__ import annotations

import csv
import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from normbench.cli import main

TINY = (
    *("--device", "cpu", "--rows", "32", "--dtype", "fp32", "--modes", "forward"),
    *("--placements", "5", "--no-isolate", "--max-seconds", "0.05"),
)
"""A sweep of a few milliseconds a cell in this process, widths and implementations not yet said."""

PLAIN = ("--impls", "nn-layernorm", "eager-rmsnorm")
"""Nothing that is compiled; floor and baseline come along."""

NAMES = ("copy", "eager-rmsnorm", "nn-layernorm")
"""Who is measured with ``PLAIN``, in the order of reports."""


@dataclass(frozen=True, kw_only=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


def normbench(*words: str | Path) -> Done:
    """Run ``normbench`` with these words."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "argv", ["normbench", *map(str, words)]):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    assert isinstance(code, int)
    return Done(code=code, out=out.getvalue(), err=err.getvalue())


def sweep(*words: str | Path) -> Done:
    """Run a tiny ``normbench sweep`` with these words."""
    return normbench("sweep", *TINY, *PLAIN, *words)


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, as text."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def statuses(folder: Path) -> list[tuple[int, str, str]]:
    """Width, implementation and status of every result in a run folder."""
    return [(int(row["width"]), row["implementation"], row["status"]) for row in rows(folder / "results.csv")]
