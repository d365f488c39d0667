"""Puts a verdict on a pull request: one comment, updated each time. Standard library and the GitHub CLI only.

    comment.py report/verdict.md

Reads ``PULL_REQUEST`` (its number) and ``COMMIT``, and what GitHub sets: ``GITHUB_REPOSITORY``,
``GITHUB_SERVER_URL``, ``GITHUB_RUN_ID``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

MARKER = "<!-- normbench-report -->"
# Whoever else writes the marker keeps their comment: the token could edit it.
AUTHOR = "github-actions[bot]"
# GitHub refuses a longer comment.
MOST_CHARACTERS = 65_536


def body_of(verdict: str, commit: str, run_url: str) -> str:
    """The comment: where the run folder is, the recommendation open, the tables folded.

    What is said of a cut stands on top, where nothing that the cut leaves open can hide it.
    """
    head = f"{MARKER}\n**normbench** of {commit[:12]} ([run folder and log]({run_url}))"
    text, _, tables = verdict.strip().partition("\n## ")
    closing = "\n"
    if tables:
        text = f"{text.strip()}\n\n<details><summary>The whole verdict</summary>\n\n## {tables}"
        closing = "\n\n</details>\n"
    whole = f"{head}\n\n{text}{closing}"
    if len(whole) <= MOST_CHARACTERS:
        return whole
    cut = f"{head}\n\n_Cut to fit a comment: verdict.md is whole in [the run folder]({run_url})._\n\n{text}"
    return cut[: MOST_CHARACTERS - len(closing)].rpartition("\n")[0] + closing


def api(*arguments: str, payload: object = None) -> str:
    """What ``gh api`` prints; the payload goes through stdin, so that no shell and no argument list sees it."""
    command = ["gh", "api", *arguments, *(["--input", "-"] if payload is not None else [])]
    sent = json.dumps(payload) if payload is not None else None
    return subprocess.run(command, input=sent, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True).stdout


def own_comment(repository: str, pull_request: str) -> int | None:
    """The id of the comment that an earlier run left, if any."""
    pages = json.loads(
        api("--paginate", "--slurp", f"repos/{repository}/issues/{pull_request}/comments?per_page=100")
    )
    for comment in (comment for page in pages for comment in page):
        if comment["user"]["login"] == AUTHOR and comment["body"].startswith(MARKER):
            return int(comment["id"])
    return None


def main(path: str) -> None:
    """Update the comment that is there, or write the first."""
    environment = os.environ
    repository, pull_request = environment["GITHUB_REPOSITORY"], environment["PULL_REQUEST"]
    run_url = f"{environment['GITHUB_SERVER_URL']}/{repository}/actions/runs/{environment['GITHUB_RUN_ID']}"
    body = body_of(Path(path).read_text(encoding="utf-8"), environment["COMMIT"], run_url)
    there = own_comment(repository, pull_request)
    if there is None:
        api("--method", "POST", f"repos/{repository}/issues/{pull_request}/comments", payload={"body": body})
    else:
        api("--method", "PATCH", f"repos/{repository}/issues/comments/{there}", payload={"body": body})


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(f"gh exited with {error.returncode}; what it said stands above")
