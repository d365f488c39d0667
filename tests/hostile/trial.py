"""One trial: a folder is read as the commands read it; either it is a run, or an error names the file at fault."""

from __future__ import annotations

import io
import json
import re
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from normbench.errors import NormbenchError
from normbench.records import CheckRun, Run
from normbench.storage import RunFolder, as_dictionary, holds_check, load, load_check, profiles_of, samples

LIMIT_S = 20
"""No folder of a few kilobytes takes longer to read and to render."""

_LINE = re.compile(
    r"\.(?:csv|gz): line \d+: .|can't be read: .|there is neither this file|have a time have no samples"
)
_FIELD = re.compile(r"(?:run|check)\.json: (?:schema is .|\S.*: .)")


class FaultError(AssertionError):
    """A folder was answered otherwise than it should be."""


def read(path: Path) -> Run | CheckRun:
    """Everything that the commands read of a folder; an error where any of it can't be."""
    if holds_check(path):
        return load_check(path)
    run = load(path)
    for relative in (False, True):
        samples.logarithms(path, run, relative=relative)
    cases = [result.case for result in run.results]
    samples.spreads(samples.chunks(path, cases), cases)
    return run


def render(run: Run | CheckRun, pictures: int = 0) -> None:
    """Everything that is made of a run, and the first pictures of it."""
    if isinstance(run, CheckRun):
        _render_check(run)
    else:
        _render_run(run, pictures)


def _render_check(run: CheckRun) -> None:
    from normbench import grades
    from normbench.cli.output import json_text
    from normbench.reporters import checks_data, checks_markdown, checks_table
    from normbench.reporters.console import console

    card = grades.of_run(run)
    json_text(checks_data.as_dictionary(card))
    checks_markdown.render(card)
    out = io.StringIO()
    checks_table.show(card, console(out, out))


def _render_run(run: Run, pictures: int) -> None:
    from normbench.reporters import document, html, markdown, plots
    from normbench.reporters.console import console, show
    from normbench.reporters.entries import Source

    json.dumps({**as_dictionary(run), **profiles_of(run)})
    shown = document.of_run(run)
    markdown.render_document(shown)
    drawn = [(name, plots.inline_svg(data, "p")) for name, data in plots.draw(run, pictures) if name.endswith("svg")]
    html.render(shown, [Source(run=run, spreads={})], drawn)
    out = io.StringIO()
    show(run, console(out, out))


def resume(path: Path) -> None:
    """What a resumption does before it measures."""
    RunFolder.reopen(path)
    load(path)


def outcome(path: Path, seen: Counter[str], *, resumes: bool = False, pictures: int = 0) -> str:
    """How a folder is answered: what kind of error, or that it is a run.

    Raises:
        FaultError: An exception that is none of the tool's, a message that names no file, line and field, or none
            in time.
    """
    try:
        with _within(LIMIT_S):
            run = read(path)
            render(run, pictures)
            if resumes and isinstance(run, Run):
                resume(path)
    except NormbenchError as error:
        _check_message(path, error)
        return kind(error, seen)
    except FaultError:
        raise
    except Exception as error:
        raise FaultError(f"{type(error).__name__}: {error}"[:500]) from error
    seen["a run"] += 1
    return "a run"


def kind(error: NormbenchError, seen: Counter[str]) -> str:
    """The message without what is particular in it."""
    text = re.sub(r"'[^']*'|\d[\d.e+-]*", "…", error.message.partition(": ")[2])[:60]
    seen[text] += 1
    return text


def _check_message(path: Path, error: NormbenchError) -> None:
    said = error.message
    if error.exit_code != 3:
        raise FaultError(f"exit code {error.exit_code}: {said[:300]}") from error
    if not said.startswith(f"{path}/") or not (_LINE.search(said) or _FIELD.search(said)):
        raise FaultError(f"names no file, line and field: {said[:300]}") from error
    if not (said.isprintable() and (error.hint or "").isprintable()):
        raise FaultError(f"is not printable: {said[:300]!r}") from error
    if len(said) > 1000:
        raise FaultError(f"is long: {said[:300]!r}") from error


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    def late(_signal: int, _frame: object) -> None:
        raise FaultError(f"takes longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
