"""``normbench explain``: what both norms compute of a few numbers, step by step."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from normbench.cli import axes
from normbench.cli.numbers import number, numbers
from normbench.errors import UsageError
from normbench.walkthrough import MOST_NUMBER, MOST_VALUES, Example, walk_through

if TYPE_CHECKING:
    from normbench.walkthrough import NormWalk, Step, Walkthrough

EXAMPLES = """\b
Examples:
  normbench explain 1 2 3
  normbench explain -1 2 -3.5 --shift 10 --scale 1e-3
  normbench explain --gain 1 2 0.5 --bias 0 0 1 -- 1 2 3
  normbench explain 1e-3 2e-3 3e-3 --eps 1e-5 --markdown
  normbench explain --html norms.html
"""

_VALUES = (-3.0, 1.0, 1.0, 3.0, 7.0, 9.0)
"""Mean 3, standard deviation 4 and root mean square 5: how the three hang together is seen without a calculator."""

_MARK = b'<meta name="generator" content="normbench explain">'
_HEAD_BYTES = 4096


def explain(
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="X",
            help=f"Up to {MOST_VALUES} numbers, one row of x. [-3 1 1 3 7 9: mean 3, standard deviation 4, "
            "root mean square 5]",
            show_default=False,
        ),
    ] = None,
    shift: Annotated[str, typer.Option(metavar="NUMBER", help="Added to x to see what that does.")] = "1",
    scale: Annotated[str, typer.Option(metavar="NUMBER", help="x is multiplied by it to see what that does.")] = "2",
    eps: Annotated[
        str, typer.Option(metavar="NUMBER", help="Added inside the root; with 0 a root of 0 divides.")
    ] = "1e-6",
    gain: Annotated[
        list[str], typer.Option("--gain", metavar="NUMBER...", help="One for all, or one for each x. [1]")
    ] = [],  # noqa: B006 - Typer copies it
    bias: Annotated[
        list[str], typer.Option("--bias", metavar="NUMBER...", help="The same, of LayerNorm alone. [0]")
    ] = [],  # noqa: B006 - Typer copies it
    markdown: Annotated[bool, typer.Option("--markdown", help="Print as markdown.")] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Also write a page in which all of these are sliders. It needs no network, and replaces no file but "
            "such a page.",
        ),
    ] = None,
    as_json: axes.AsJson = False,
    quiet: axes.Quiet = False,
) -> None:
    """Work out LayerNorm and RMSNorm of a few numbers in ten steps, and what a shift and a scale do to each.

    In float64, without torch. Numbers take spaces or commas, negative ones are numbers too. --gain and --bias take
    numbers until the next option: put -- before an X that follows.
    """
    example = _example(values or [], shift=shift, scale=scale, eps=eps, gain=gain, bias=bias)
    if markdown and as_json:
        raise UsageError("--markdown and --json are two ways to print", hint="choose one of them")
    target = None if html is None else _target(html)
    walk = walk_through(example)
    if html is not None and target is not None:
        _write_page(target, html, walk, quiet=quiet)
    _print(walk, markdown=markdown, as_json=as_json)


def _example(values: list[str], *, shift: str, scale: str, eps: str, gain: list[str], bias: list[str]) -> Example:
    row = _numbers("X", values) if values else _VALUES
    if len(row) > MOST_VALUES:
        raise UsageError(f"X: {len(row)} numbers", hint=f"allowed: up to {MOST_VALUES}")
    return Example(
        values=row,
        shift=number("--shift", shift, -MOST_NUMBER, MOST_NUMBER),
        scale=number("--scale", scale, -MOST_NUMBER, MOST_NUMBER),
        eps=number("--eps", eps, 0, MOST_NUMBER),
        gain=_for_each("--gain", gain or ["1"], row),
        bias=_for_each("--bias", bias or ["0"], row),
    )


def _numbers(name: str, texts: list[str]) -> tuple[float, ...]:
    return numbers(name, texts, -MOST_NUMBER, MOST_NUMBER)


def _for_each(name: str, texts: list[str], row: tuple[float, ...]) -> tuple[float, ...]:
    """A parameter: one number for all values, or one for each."""
    found = _numbers(name, texts)
    if len(found) not in (1, len(row)):
        allowed = "1" if len(row) == 1 else f"1, or {len(row)}"
        raise UsageError(
            f"{name}: {len(found)} numbers for {len(row)} of x",
            hint=f"allowed: {allowed}; where x follows {name}, put -- between",
        )
    return found if len(found) == len(row) else found * len(row)


def _target(path: Path) -> Path:
    """The file itself, where ``path`` is a link to it: a link is written through, and stays one.

    Only a page of this command may be overwritten: it can be made again.
    """
    target = Path(os.path.realpath(path))
    try:
        kind = _kind(path)
        folder = target.parent if path.is_symlink() else path.parent
        has_folder = folder.is_dir()
    except OSError as error:  # too long a name, links in a ring, a folder that may not be looked into
        raise UsageError(f"--html {path}: can't be written: {error.strerror}", hint="name another file") from error
    if not has_folder:
        raise UsageError(f"--html {path}: there is no folder {folder}", hint="make it, or name another file")
    if kind is not None and stat.S_ISDIR(kind):
        raise UsageError(f"--html {path}: is a folder", hint="name a file")
    if kind is not None and not (stat.S_ISREG(kind) and _is_page(target)):
        raise UsageError(
            f"--html {path}: exists, and is no page of this command", hint="name another file, or remove this one"
        )
    return target


def _kind(path: Path) -> int | None:
    """What a file is, links followed; None where there is none."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_page(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _MARK in file.read(_HEAD_BYTES)
    except OSError:
        return False


def _write_page(target: Path, path: Path, walk: Walkthrough, *, quiet: bool) -> None:
    from normbench.cli.output import note
    from normbench.reporters.walkthrough_page import render
    from normbench.storage import write_text

    write_text(target, render(walk))
    note(f"written: {path}", quiet=quiet)


def _print(walk: Walkthrough, *, markdown: bool, as_json: bool) -> None:
    from normbench.cli.output import emit, json_text, results

    if as_json:
        emit(json_text(as_dictionary(walk)))
        return
    from normbench.reporters.walkthrough import explained

    found = explained(walk)
    if markdown:
        from normbench.reporters.walkthrough_markdown import render

        emit(render(found))
        return
    from normbench.reporters.walkthrough_table import show

    with results() as out:
        show(found, out)


def as_dictionary(walk: Walkthrough) -> dict[str, Any]:
    """A walkthrough as a program reads it: what a norm does not compute is null, what is NaN a null in its list."""
    return {**vars(walk.example), "norms": {str(norm.op): _norm(norm) for norm in walk.norms}}


def _norm(norm: NormWalk) -> dict[str, Any]:
    return {
        "steps": {str(step.name): _step(step) for step in norm.steps},
        "output": norm.output,
        "shifted": {"after": norm.shifted.after, "largest_change": norm.shifted.largest_change},
        "scaled": vars(norm.scaled),
        "parameters": norm.parameters,
        "reductions": norm.reductions,
    }


def _step(step: Step) -> float | tuple[float, ...] | None:
    return step.figures[0] if step.figures and step.name.is_of_row else step.figures
