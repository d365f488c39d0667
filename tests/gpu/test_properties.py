"""Every property can be asked of everybody on the device."""

from __future__ import annotations

from normbench.checking import examine
from normbench.device import CudaDevice
from normbench.records import CheckPlan, DType, Mark, Property
from tests.gpu.sizes import Sizes


def test_every_property_can_be_asked_on_the_device_and_ordinary_values_pass(gpu: CudaDevice, sizes: Sizes) -> None:
    plan = CheckPlan(properties=tuple(Property), dtypes=(DType.BF16,), widths=(1000,), eps=1e-6, seed=0)
    checks = list(examine(gpu, plan, [one for one in sizes.norms if not one.compiled]))
    mixed = [check.reason or "" for check in checks if "same device" in (check.reason or "")]
    ordinary = [check for check in checks if check.property is Property.NORMAL_VALUES]

    assert mixed == []
    assert {check.mark for check in ordinary} == {Mark.PASS}
    assert {check.property for check in checks} == set(Property)
