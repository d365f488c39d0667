from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Figure]]:
    """The figures that are drawn, as they are when they are done with."""
    seen: list[Figure] = []
    with monkeypatch.context() as patch:
        patch.setattr(plt, "close", seen.append)
        yield seen
    for figure in seen:
        plt.close(figure)
