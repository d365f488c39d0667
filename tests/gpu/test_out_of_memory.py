"""What no GPU has memory for costs its own row or cell, and what comes after it is measured and right."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import torch

from normbench.device import CudaDevice
from normbench.implementations import by_name, eager
from normbench.records import CellRecords, Op, Status
from tests.fakes import THREE, fake_sweep, row
from tests.helpers import own

IMPOSSIBLE = 2**50
"""Columns of float32, or bytes."""


def reasons(records: CellRecords) -> set[str]:
    """Why nobody in a cell has a time."""
    assert {(r.status, r.timing) for r in records.results} == {(Status.OUT_OF_MEMORY, None)}
    return {result.reason or "" for result in records.results}


def assert_all_right(cells: Iterable[CellRecords]) -> None:
    """Everybody was checked, timed, and checked again."""
    for records in cells:
        assert {(r.status, r.reason) for r in records.results} == {(Status.OK, None)}


def test_a_size_beyond_all_memory_is_not_attempted_and_says_how_much_there_is(gpu: CudaDevice) -> None:
    before, huge, after = fake_sweep(widths=(64, IMPOSSIBLE, 128), device=gpu).run()
    (reason,) = reasons(huge)
    assert reason.startswith("estimated ")
    assert reason.endswith(": not attempted")
    assert_all_right((before, after))


def test_so_it_is_where_it_was_attempted_and_refused(gpu: CudaDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "free_bytes", lambda: 2**80)
    before, huge, after = fake_sweep(widths=(64, IMPOSSIBLE, 128), device=gpu).run()
    assert all("memory" in reason for reason in reasons(huge))
    assert_all_right((before, after))


def test_one_that_asks_for_more_than_there_is_costs_its_own_row(gpu: CudaDevice) -> None:
    def greedy(x: torch.Tensor, gain: torch.Tensor | None, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        torch.empty(IMPOSSIBLE, dtype=torch.uint8, device=x.device)
        return eager.rmsnorm(x, gain, bias, eps)

    first, second = fake_sweep((*THREE, own(Op.RMSNORM, greedy)), widths=(64, 32), device=gpu).run()
    for records in (first, second):
        result = row(records, "own-rmsnorm")
        assert (result.status, result.timing) == (Status.OUT_OF_MEMORY, None), result.reason
        assert "memory" in (result.reason or "")
        assert {row(records, one.name).reason for one in THREE} == {None}


def test_one_that_runs_out_of_memory_only_while_it_is_timed_costs_its_own_row(gpu: CudaDevice) -> None:
    sweep = fake_sweep((by_name("copy"), by_name("nn-layernorm")), device=gpu)

    def greedy(x: torch.Tensor, gain: torch.Tensor | None, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        if sweep.clock.log:
            torch.empty(IMPOSSIBLE, dtype=torch.uint8, device=x.device)
        return eager.rmsnorm(x, gain, bias, eps)

    late = own(Op.RMSNORM, greedy)
    (records,) = fake_sweep((*sweep.implementations, late), device=gpu, clock=sweep.clock).run()
    result = row(records, late.name)
    assert (result.status, result.timing) == (Status.OUT_OF_MEMORY, None), result.reason
    assert {row(records, one.name).reason for one in sweep.implementations} == {None}
