"""A case's profile: its kernels take as long as its device time says, and are as many as there should be."""

from __future__ import annotations

import pytest

from normbench.device import CudaDevice
from normbench.gpu_acceptance.limits import LEAST_SPAN_S, OFF_THE_PROFILER
from normbench.records import Cache, DType, Mode, Operation
from tests.fakes import quickly
from tests.gpu.figures import Figures
from tests.gpu.sizes import Sizes
from tests.gpu.sweeps import swept

ONE_KERNEL = ("copy", "nn-layernorm", "nn-rmsnorm")
LAUNCHES = {**dict.fromkeys(ONE_KERNEL, 1), "eager-rmsnorm": 8}
"""Forward: an op a kernel."""


@pytest.mark.needs_the_device("the profiler's kernels")
@pytest.mark.parametrize(
    ("operation", "mode"),
    [(Operation.NORM, Mode.FORWARD), (Operation.ADD_NORM, Mode.BACKWARD)],
)
def test_a_profiles_kernels_take_as_long_as_the_device_time_says(
    gpu: CudaDevice, sizes: Sizes, figures: Figures, operation: Operation, mode: Mode
) -> None:
    """Where one kernel is the whole call; between several there are gaps, which no kernel's time has in it."""
    rows, width = sizes.large
    records = swept(
        gpu,
        sizes.uncompiled(operation),
        modes=(mode,),
        caches=(Cache.WARM,),
        dtypes=(DType.BF16,),
        rows=(rows,),
        widths=(width,),
        precision=quickly(max_seconds=sizes.max_seconds),
        profile=True,
    )
    profiles = {profile.case: profile for profile in records.profiles}
    for result in records.results:
        assert result.timing is not None, result.reason
        profile, name = profiles[result.case], result.case.implementation
        assert (profile.kernels_reason, profile.findings) == (None, ())
        assert profile.kernel_seconds is not None
        if mode is Mode.FORWARD and name in LAUNCHES:
            assert profile.launches == LAUNCHES[name], name
        if profile.launches == 1 and result.timing.time_s.value > LEAST_SPAN_S:
            where = f"{name} {rows}x{width} bf16 {mode}, its kernel alone"
            figures.near(result.timing.time_s.value, profile.kernel_seconds, OFF_THE_PROFILER, where)
