from __future__ import annotations

import os
from collections.abc import Iterator
from unittest.mock import patch

import pytest


@pytest.fixture
def undelayed() -> Iterator[None]:
    """Nothing waits for the disk: nobody pulls the plug here."""
    with patch.object(os, "fsync", lambda _file: None):
        yield
