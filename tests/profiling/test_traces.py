"""Traces: packed, small, with the steps that were asked for and nothing private."""

from __future__ import annotations

import gzip
import json
import socket
from pathlib import Path

import pytest
import torch

from normbench.clock import Task
from normbench.profiling.traces import STEPS, name, scrubbed, trace


@pytest.fixture(scope="module")
def packed() -> bytes:
    x = torch.ones(64, 64)
    return trace(Task(name="it", prepare=lambda: lambda: x.mul(2), repeatable=True), on_gpu=False)


def test_a_trace_holds_its_steps_and_their_ops(packed: bytes) -> None:
    events = json.loads(gzip.decompress(packed))["traceEvents"]
    names = [event.get("name", "") for event in events]
    assert len({n for n in names if n.startswith("ProfilerStep#")}) == STEPS
    assert names.count("aten::mul") == STEPS


def test_a_trace_is_small(packed: bytes) -> None:
    assert len(packed) < 20_000


def test_nothing_private_is_in_a_trace(packed: bytes) -> None:
    text = gzip.decompress(packed).decode()
    assert str(Path.home()) + "/" not in text
    assert str(Path(torch.__file__).parent) not in text
    assert "traceName" not in json.loads(text)
    if len(socket.gethostname()) > 3:
        assert socket.gethostname() not in text


def test_folders_and_the_hosts_name_are_taken_out_of_any_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "workstation7")
    data = {"traceName": "/home/ann/x.json", "a": "/home/ann/kernels/k.py(12): run", "b": "on workstation7 3/4"}
    assert json.loads(scrubbed(json.dumps(data))) == {"a": "…/k.py(12): run", "b": "on host 3/4"}


def test_each_implementation_is_a_run_and_each_cell_a_worker_of_it() -> None:
    assert name("nn-rmsnorm", "64x256-fp32-forward-warm") == (
        "nn-rmsnorm/64x256-fp32-forward-warm.1.pt.trace.json.gz"
    )
