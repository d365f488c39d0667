"""Kernels of installed packages are right where they say that they run."""

from __future__ import annotations

from itertools import product

import pytest

from normbench.device import CudaDevice
from normbench.entrants import Entrant, admit
from normbench.implementations import PACKAGED, Implementation, Setting
from normbench.inputs import draw
from normbench.records import DType, Mode
from tests.gpu.sizes import Sizes
from tests.helpers import cell_for

pytestmark = pytest.mark.needs_the_device("kernels for a GPU")


@pytest.mark.parametrize("dtype", DType)
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("implementation", PACKAGED, ids=lambda one: one.name)
def test_kernels_of_installed_packages_are_right_where_they_say_that_they_run(
    gpu: CudaDevice, sizes: Sizes, implementation: Implementation, mode: Mode, dtype: DType
) -> None:
    if why := implementation.absent(gpu.info):
        pytest.skip(why)
    rows, width = sizes.checked
    for parameter_dtype, eps in product({dtype, DType.FP32}, (1e-6, 0.3)):
        cell = cell_for(
            implementation, rows=rows, width=width, mode=mode, dtype=dtype, parameter_dtype=parameter_dtype
        )
        setting = Setting(cell=cell, eps=eps, device=str(gpu.torch_device))
        if implementation.unsupported(setting, gpu.info) is None:
            found = admit(implementation, setting, draw(cell, 0, gpu.torch_device), gpu)
            assert isinstance(found, Entrant), found
