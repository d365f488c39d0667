"""The browser that pages are opened in, and the pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import browser
from tests.reporters.pages import hostile, made, other_times, page_of_one, page_of_several

__all__ = ["browser"]


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of one run and of several, and the same with hostile texts."""
    folder = tmp_path_factory.mktemp("pages")
    bad_one, bad_several = hostile()
    pages = {
        "one": page_of_one(made()),
        "several": page_of_several([made("Alpha"), made("Beta", other_times)]),
        "hostile one": bad_one,
        "hostile several": bad_several,
    }
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in pages}


@pytest.fixture(params=["one", "several"])
def path(request: pytest.FixtureRequest, files: dict[str, Path]) -> Path:
    """The page of one run, then that of several."""
    return files[str(request.param)]
