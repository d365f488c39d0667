"""Texts as a stranger's folder may hold them, and runs and checks in which every text is one of them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from normbench.records import CheckRun, Estimate, Mark, NoiseFloor, Property, Resumption, Run, Status
from tests.checked import ALLOWED, make_check, make_check_run
from tests.runs import TIMES, make_environment, make_plan, make_run, profiled_run

T = TypeVar("T")

MARKUP = {
    "a table": "a|b||c | - |",
    "emphasis": "*a* **b** _c_ __d__ ~~e~~",
    "code": "`a` ``b``",
    "a fence": "``` ~~~",
    "a heading": "# a",
    "a quotation": "> a",
    "a list": "- a",
    "a numbered list": "1. a",
    "a task": "- [x] a",
    "a rule": "--- ***",
    "a heading's line": "===",
    "a link": "[a](http://b) <http://c> [d][e]",
    "a script's link": "[a](javascript:alert(1)) javascript:alert(1)",
    "an image": "![a](http://b/c.png)",
    "a reference": "[a]: http://b",
    "a footnote": "[^1]: a [^1]",
    "a mention": "@octocat @github/team mail@host.example",
    "an issue": "#1 GH-2 gh-3 owner/name#4",
    "mathematics": "$a$ $$b$$ $`c`$ \\frac{ \\(d\\)",
    "an emoji": ":tada: :+1: :smile_cat:",
    "an entity": "&amp; &lt; &#64;octocat &#124;",
    "a backslash": "a\\ \\| \\",
    "an element": "<b>a</b> <img src=x onerror=alert(1)> <br>",
    "a script": "<script>alert(1)</script>",
    "a comment": "<!-- a --> <!--",
    "the end of an element": "</style></title></script></svg></details></td>-->",
    "an attribute": "\"' onmouseover='alert(1)' \" x=\"",
    "an SVG": '<svg onload="alert(1)"><text>a</text></svg>',
    "a template": "{{7*7}} {% raw %} {# a #}",
    "a style": "[red]a[/red] [bold",
    "a path in brackets": "[/data/x] [/]",
    "a link of rich": "[link=http://a]b[/link] [@click=c]d",
    "a chart": '"]; %%{init: {}}%% end; line [1, 2] #quot; x-axis',
    "a formula of a sheet": "=1+1",
    "a format": "%s %(a)s {0} ${HOME} $(id)",
    "a private name": "_a",
}
"""Texts of printable characters that one output or another would read as more than text."""

CONTROL = {
    "a colour": "\x1b[31ma",
    "a link of the terminal": "\x1b]8;;http://a\x07b\x1b]8;;\x07",
    "a title": "\x1b]0;a\x07",
    "a clear screen": "\x1b[2J\x1b[H",
    "a one-byte command": "\x9b31ma",
    "a carriage return": "safe\rhidden",
    "backspaces": "ab\b\bc",
    "a null": "a\x00b",
    "a bell": "a\ab",
    "vertical tabs": "a\v\fb",
    "a tab": "a\tb",
    "lines": "a\nb\r\nc\x85d\u2028e",
    "another direction": "a\u202eb \u2066c",
    "nothing to see": "a\u200bb\u00adc\ufeffd\u3164e\u034f",
    "tags": "a\U000e0041b",
    "half a character": "a\ud800b",
    "another blank": "a\u00a0b\u3000c",
}
"""Texts with characters that act, hide, or are no text."""

TEXTS = MARKUP | CONTROL
PLAIN = "harmless"


_DECIDE = ("kind", "clock")


def run_of_everything() -> Run:
    """A run that has something of all that reports speak of, in harmless words."""
    plan = make_plan(widths=(64, 128), profile=True)
    environment = make_environment(
        cuda="13.0", driver="580.1", triton="3.7.0", packages=(("some", "1.0"),), native_dsls=("triton",)
    )
    run = make_run(
        plan,
        lambda cell: {**TIMES, "eager-rmsnorm": Status.FAILED if cell.width == 128 else 8e-6},
        reason="because",
        environment=environment,
        resumed=(Resumption(created_utc="2026-01-03T00:00:00Z", cells=1, differences=("torch was 1, is 2",)),),
    )
    noise = NoiseFloor(
        cell=next(plan.cells()), implementation="nn-layernorm", ratio=Estimate(value=1.0, low=0.97, high=1.04)
    )
    return replace(run, profiles=profiled_run().profiles, noise=(noise,))


def check_of_everything() -> CheckRun:
    """A check that has something of all that reports speak of, in harmless words."""
    environment = make_environment(cuda="13.0", driver="580.1", triton="3.7.0", packages=(("some", "1.0"),))
    usual = make_check_run()
    more = [
        make_check("nn-rmsnorm", Property.DETERMINISM, None, Mark.FAIL, reason="because", rows=7),
        make_check("nn-rmsnorm", Property.NORMAL_VALUES, None, Mark.NOT_APPLICABLE, reason="not here", rows=7),
        make_check("gone-rmsnorm", Property.ZERO_MEAN, None, Mark.NOT_APPLICABLE, reason="needs a GPU"),
    ]
    names = (*(info.name for info in usual.header.implementations), "gone-rmsnorm")
    return make_check_run(
        (*usual.checks, *more), names=names, environment=environment, allowed=ALLOWED, complete=False
    )


def spoiled(record: T, text: str) -> T:
    """A record in which every text begins with this one, and those that were alike still are.

    What is no text but decides what else is said stays: the kind of a device and the clock of a sample.
    """
    return _spoiled(record, text)  # type: ignore[no-any-return]


def _spoiled(value: Any, text: str) -> Any:
    if type(value) is str:
        return f"{text} {value}"
    if isinstance(value, tuple):
        return tuple(_spoiled(part, text) for part in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    found = {f.name: _spoiled(getattr(value, f.name), text) for f in fields(value) if f.name not in _DECIDE}
    return replace(value, **found)


def hostile_run(text: str) -> Run:
    """A run in which every text begins with this one."""
    return spoiled(run_of_everything(), text)


def hostile_check(text: str) -> CheckRun:
    """A check in which every text begins with this one."""
    return spoiled(check_of_everything(), text)
