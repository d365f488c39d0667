from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from normbench import compilation
from normbench.failures import Failure
from normbench.records import Status
from normbench.watch import Watch


@pytest.fixture(autouse=True)
def _forget_graphs() -> Iterator[None]:
    compilation.reset()
    yield
    compilation.reset()


def add(x: torch.Tensor, number: float = 1.0) -> torch.Tensor:
    return x + number


def test_where_nothing_was_changed_there_is_nothing_to_say() -> None:
    watch = Watch()
    compiled = torch.compile(add, backend="eager")
    compiled(torch.ones(2))
    assert watch() is not None
    compiled(torch.ones(2))
    assert watch() is None, "the same graph once more"


def test_a_change_of_settings_is_said_once_and_put_back() -> None:
    watch = Watch()
    torch.set_default_dtype(torch.float64)
    assert watch() == Failure(
        status=Status.INCORRECT, reason="changed torch's settings: default dtype float32 → float64"
    )
    assert torch.get_default_dtype() is torch.float32
    assert watch() is None


def test_a_graph_is_said_once() -> None:
    watch = Watch()
    torch.compile(add, backend="eager", fullgraph=True)(torch.ones(2))
    found = watch()
    assert found is not None
    assert (found.status, found.reason) == (
        Status.FAILED,
        "torch.compile built another graph inside the timed region",
    )
    assert watch() is None


def test_the_call_that_meets_the_limit_of_recompilations_is_a_fallback() -> None:
    compiled = torch.compile(add, backend="eager", dynamic=False)
    compiled(torch.ones(2))
    watch = Watch()
    with torch._dynamo.config.patch(recompile_limit=1):
        compiled(torch.ones(3))
    found = watch()
    assert found is not None
    assert found.reason == "torch.compile fell back to eager inside the timed region"
