"""Pages of reports as files, and what tests ask of them in a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from normbench import spread
from normbench.records import Cell, DType, Flag, Mode, Run, Status
from normbench.reporters import document, html, merged, plots
from normbench.reporters.entries import Source
from tests.runs import Times, make_device, make_environment, make_plan, make_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("copy", "nn-layernorm", "nn-rmsnorm", "eager-rmsnorm", "compile-rmsnorm")
PLAN = make_plan(
    widths=(64, 128, 256, 8192),
    dtypes=(DType.FP32, DType.BF16),
    modes=(Mode.FORWARD, Mode.BACKWARD),
    implementations=NAMES,
)

HOSTILE = (
    '<script>alert(1)</script>"><img src=x onerror=alert(2)></style><svg onload=alert(3)>{{7*7}}'
    "<a href='javascript:alert(4)' onfocus=alert(5) autofocus>"
)
"""A name that would run something or make elements, if it were read as markup."""

LUMINANCE = """
const parts = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
const linear = (part) => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
const luminance = (colour) => {
  const [r, g, b] = parts(colour).map(linear);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (one, other) => {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
"""


def times(cell: Cell) -> Times:
    """One is undecided at the widest cells, one slower, one has no time, all over nine to a thousand microseconds."""
    unit = cell.width * 1e-7
    same = 0.999 if cell.width == 8192 else 0.5
    return {
        "copy": 0.3 * unit,
        "nn-layernorm": 1.5 * unit,
        "nn-rmsnorm": 1.5 * same * unit,
        "eager-rmsnorm": 1.484 * 3 * unit,
        "compile-rmsnorm": Status.UNSUPPORTED if cell.dtype is DType.BF16 else 1.5 * unit,
    }


def made(name: str = "Some CPU", of: Any = times, **changes: Any) -> Run:
    """A run with flags and with results that have no time."""
    run = make_run(PLAN, of, device=make_device(name=name), spread=0.03, **changes)
    results = [replace(r, flags=(Flag.DRIFTED,)) if r.case.cell.width == 64 and r.timing else r for r in run.results]
    return replace(run, results=tuple(results))


def source(run: Run, label: str = "") -> Source:
    """A run whose samples lie around its times."""
    shape = np.array([0.5, 0.95, 0.98, 1.0, 1.0, 1.02, 1.1, 3.0])
    timed = [(r.case, r.timing.time_s.value) for r in run.results if r.timing]
    return Source(run=run, label=label, spreads={case: spread.of_seconds(shape * time) for case, time in timed})


def pictures(run: Run, prefix: str) -> list[tuple[str, str]]:
    """Two pictures of a run."""
    files = enumerate(plots.draw(run, 2))
    return [(name, plots.inline_svg(data, f"{prefix}{n}")) for n, (name, data) in files if name.endswith(".svg")]


def page_of_one(run: Run) -> str:
    """The page of a run."""
    return html.render(document.of_run(run), [source(run)], pictures(run, "p"))


def page_of_several(runs: Sequence[Run]) -> str:
    """The page of several runs."""
    shown = merged.of_runs(runs)
    sources = [source(run, label) for run, label in zip(runs, shown.labels, strict=True)]
    return html.render(shown, sources, pictures(runs[0], "a") + pictures(runs[1], "b"))


@dataclass
class Seen:
    """What a page did while it was open."""

    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


@contextmanager
def opened(browser: Browser, path: Path, width: int = 1280, **options: Any) -> Iterator[tuple[Page, Seen]]:
    """A page in a window of its own, and what it does."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    page, seen = context.new_page(), Seen()
    page.on("console", lambda message: seen.complaints.append(message.text))
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("dialog", lambda dialog: seen.dialogs.append(dialog.message))
    page.on("dialog", lambda dialog: dialog.dismiss())
    page.goto(path.as_uri())
    yield page, seen
    context.close()


def column(page: Page, title: str) -> list[str]:
    """The texts of a column of the results, of the rows that are shown."""
    found = page.evaluate(
        """(title) => {
          const table = document.querySelector("#results table");
          const place = Array.from(table.tHead.rows[0].cells, (head) => head.textContent).indexOf(title);
          const rows = Array.from(table.tBodies[0].rows).filter((row) => row.checkVisibility());
          return rows.map((row) => row.cells[place].textContent);
        }""",
        title,
    )
    return [str(text) for text in found]


def contrast(page: Page, selector: str, kind: str = "color") -> float:
    """How the text, or the fill, of what a selector finds stands out from the page: the least of all."""
    return float(
        page.evaluate(
            f"""([selector, kind]) => {{
              {LUMINANCE}
              const page = getComputedStyle(document.body).backgroundColor;
              const found = Array.from(document.querySelectorAll(selector));
              return Math.min(...found.map((element) => contrast(getComputedStyle(element)[kind], page)));
            }}""",
            [selector, kind],
        )
    )


def other_times(cell: Cell) -> Times:
    """Another winner than with ``times``, at the two narrow widths."""
    found = dict(times(cell))
    if cell.width < 200:
        found["nn-rmsnorm"], found["eager-rmsnorm"] = found["eager-rmsnorm"], found["nn-rmsnorm"]
    return found


def hostile() -> tuple[str, str]:
    """Pages of one run and of several in which everything from outside is hostile."""
    run = made(
        HOSTILE,
        lambda cell: {**times(cell), "eager-rmsnorm": Status.FAILED},
        reason=HOSTILE,
        environment=make_environment(torch=HOSTILE, packages=((HOSTILE, HOSTILE),)),
        command=("normbench", HOSTILE),
    )
    return page_of_one(run), page_of_several([run, made("Other")])
