"""What tests in a browser stand on: none passes for want of one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import browser


@pytest.mark.parametrize(
    ("find", "said"),
    [
        (browser.chromium, "needs Chromium: install it, or name it in NORMBENCH_CHROMIUM"),
        (browser.mermaid, "needs mermaid: npm ci --prefix tests/mermaid, or name its script in NORMBENCH_MERMAID"),
    ],
)
def test_what_is_missing_skips_saying_what_to_do_and_fails_where_it_is_required(
    find: Callable[[], object], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "MERMAID", tmp_path / "mermaid.min.js")
    for name in ("NORMBENCH_CHROMIUM", "NORMBENCH_MERMAID", "NORMBENCH_REQUIRE_BROWSER"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(pytest.skip.Exception, match=said):
        find()
    monkeypatch.setenv("NORMBENCH_REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match=said):
        find()


def test_what_is_named_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mine.js").write_text("", encoding="utf-8")
    monkeypatch.setenv("NORMBENCH_CHROMIUM", "/some/chromium")
    monkeypatch.setenv("NORMBENCH_MERMAID", str(tmp_path / "mine.js"))

    assert (browser.chromium(), browser.mermaid()) == ("/some/chromium", tmp_path / "mine.js")
