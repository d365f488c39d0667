from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
import torch

from normbench.torch_state import TorchState

CHANGES: list[tuple[Callable[[], object], str]] = [
    (lambda: torch.set_num_threads(torch.get_num_threads() + 1), "threads "),
    (lambda: torch.set_default_dtype(torch.float64), "default dtype float32 → float64"),
    (lambda: torch.set_default_device("meta"), "default device None → meta"),
    (lambda: torch.set_grad_enabled(mode=False), "gradients on → off"),
    (lambda: torch.autograd.set_detect_anomaly(mode=True), "anomaly detection off → on"),
    (lambda: torch.set_float32_matmul_precision("high"), "float32 matmul precision highest → high"),
    (lambda: torch.use_deterministic_algorithms(mode=True), "deterministic algorithms default → error"),
    (lambda: torch.set_flush_denormal(True), "flushing denormals off → on"),
    (lambda: torch.set_autocast_enabled("cpu", True), "autocast on a CPU off (bfloat16) → on (bfloat16)"),
    (lambda: torch.set_autocast_dtype("cpu", torch.float16), "autocast on a CPU off (bfloat16) → off (float16)"),
    (lambda: torch.set_autocast_enabled("cuda", True), "autocast on a GPU off (float16) → on (float16)"),
    (lambda: torch.compiler.set_stance("force_eager"), "torch.compile's stance default → force_eager"),
    (lambda: setattr(torch._dynamo.config, "disable", True), "torch.compile disabled off → on"),
    (lambda: setattr(time, "perf_counter", lambda: 0.0), "time.perf_counter replaced"),
    (lambda: setattr(torch.cuda, "synchronize", lambda: None), "torch.cuda.synchronize replaced"),
]


@pytest.mark.parametrize(("change", "said"), CHANGES, ids=[said for _, said in CHANGES])
def test_what_was_changed_is_said_and_put_back(change: Callable[[], object], said: str) -> None:
    before = TorchState.now()
    change()
    assert TorchState.now() != before
    assert (before.restore() or "").startswith(said)
    assert TorchState.now() == before
    assert before.restore() is None


def test_a_default_device_that_another_thread_has_set_is_put_back_too() -> None:
    """As a backward does on a GPU, which autograd runs in a thread of its own."""
    before = TorchState.now()
    thread = threading.Thread(target=torch.set_default_device, args=("meta",))
    thread.start()
    thread.join()
    assert before.restore() == "default device None → meta"
    assert before.restore() is None
    assert torch.empty(1).device.type == "cpu"


def test_several_changes_are_said_in_one_line() -> None:
    before = TorchState.now()
    torch.set_default_dtype(torch.float16)
    torch.set_grad_enabled(mode=False)
    assert before.restore() == "default dtype float32 → float16, gradients on → off"


def test_looking_does_not_initialise_cuda() -> None:
    was = torch.cuda.is_initialized()
    TorchState.now()
    assert torch.cuda.is_initialized() is was
