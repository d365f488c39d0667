"""The browser that pages are opened in."""

from __future__ import annotations

from tests.browser import browser

__all__ = ["browser"]
