"""What every test shares: hypothesis without a deadline, since the machine's speed is no property of the code.

And nothing with the developer's own sweeps: claims on devices lie in a folder of the tests' own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from normbench import locks, other_load

settings.register_profile("normbench", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("normbench")


@pytest.fixture(scope="session", autouse=True)
def own_claims(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder in which this session's claims lie, those of programs that it starts among them."""
    folder = tmp_path_factory.mktemp("claims") / "normbench"
    before = os.environ.get(locks.VARIABLE)
    os.environ[locks.VARIABLE] = str(folder)
    yield folder
    os.environ.pop(locks.VARIABLE)
    if before is not None:
        os.environ[locks.VARIABLE] = before


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a sweep in this process nobody looks what other programs do: it takes time, and they come and go."""
    monkeypatch.setattr(other_load, "other_cores", lambda _seconds: 0.0)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Torch computes with one thread: two that share a busy machine wait for each other far longer than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
