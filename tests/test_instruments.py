from __future__ import annotations

import pytest

from normbench import device
from normbench.device import CpuDevice
from normbench.instruments import instruments, names_beside
from tests.fake_cuda import FakeCuda


def test_a_cpu_has_no_clock_beside() -> None:
    assert names_beside("cpu") == instruments(CpuDevice()).names_beside == ()


@pytest.mark.parametrize("graphs", [False, True])
def test_the_clocks_beside_are_known_without_touching_the_gpu(
    monkeypatch: pytest.MonkeyPatch, *, graphs: bool
) -> None:
    monkeypatch.setattr(device, "runs_fused_rmsnorm", lambda *_: True)
    gpu = device.CudaDevice(0, FakeCuda())
    assert names_beside("cuda", graphs=graphs) == instruments(gpu, graphs=graphs).names_beside
    assert names_beside("cuda", graphs=graphs) == (("wall", "cuda-graph") if graphs else ("wall",))
