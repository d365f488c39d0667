"""Which of torch's kernels run, as normbench predicts it."""

from __future__ import annotations

import pytest
import torch

from normbench.device import CudaDevice, runs_fused_rmsnorm
from normbench.native import runs_quack
from normbench.records import DType
from tests.gpu.seen import ran

pytestmark = pytest.mark.needs_the_device("its kernels")


@pytest.mark.parametrize("dtype", DType)
def test_rmsnorm_is_one_kernel_where_the_dtypes_are_equal(gpu: CudaDevice, dtype: DType) -> None:
    assert runs_fused_rmsnorm(gpu.torch_device, dtype, dtype) is True


def test_rmsnorm_is_a_chain_of_ops_where_the_parameters_have_another_dtype(gpu: CudaDevice) -> None:
    assert runs_fused_rmsnorm(gpu.torch_device, DType.BF16, DType.FP32) is False


def test_where_torch_runs_its_copy_of_quack_the_kernels_are_quack_s(gpu: CudaDevice) -> None:
    """N20: seen in the kernels' names."""
    if not runs_quack(gpu.torch_device, torch.bfloat16, torch.bfloat16, 1024):
        pytest.skip("torch replaces no RMSNorm kernel here")
    x = torch.randn(64, 1024, device=gpu.torch_device, dtype=torch.bfloat16)
    gain = torch.ones(1024, device=gpu.torch_device, dtype=torch.bfloat16)
    torch.nn.functional.rms_norm(x, (1024,), gain, 1e-6)
    names = [kernel.name for kernel in ran(gpu, lambda: torch.nn.functional.rms_norm(x, (1024,), gain, 1e-6))]
    assert any("quack" in name.lower() or "cutlass" in name.lower() for name in names), names
