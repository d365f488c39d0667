"""A real browser for tests: headless Chromium through Playwright, found on PATH or named by NORMBENCH_CHROMIUM.

Where there is none its tests are skipped, unless NORMBENCH_REQUIRE_BROWSER=1 says that there must be one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
MERMAID = Path(__file__).parent / "mermaid" / "node_modules" / "mermaid" / "dist" / "mermaid.min.js"
ARGUMENTS = ["--no-sandbox", "--disable-gpu"]


def chromium() -> str:
    """The program."""
    path = os.environ.get("NORMBENCH_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    return path or missing("needs Chromium: install it, or name it in NORMBENCH_CHROMIUM")


def mermaid() -> Path:
    """The script that draws mermaid's charts."""
    path = Path(os.environ.get("NORMBENCH_MERMAID") or MERMAID)
    if not path.exists():
        missing("needs mermaid: npm ci --prefix tests/mermaid, or name its script in NORMBENCH_MERMAID")
    return path


def missing(reason: str) -> NoReturn:
    """Skip the test, or fail it where a browser is required."""
    if os.environ.get("NORMBENCH_REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("needs Playwright: pip install playwright")
    path = chromium()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started
        started.close()
