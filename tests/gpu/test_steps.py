"""Training steps of a small model on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from normbench.device import CudaDevice
from normbench.records import PRESETS, DType, Part, Precision, StepCell, StepPlan
from normbench.steps.timing import Steps
from tests.fakes import Watcher
from tests.gpu.figures import Figures
from tests.gpu.sizes import Sizes

UNCOMPILED = ("eager-layernorm", "eager-rmsnorm", "nn-layernorm", "nn-rmsnorm")


@pytest.mark.parametrize(
    ("autocast", "compiled", "names"),
    [
        (None, False, UNCOMPILED),
        (DType.BF16, False, UNCOMPILED),
        (DType.BF16, True, ("nn-layernorm",)),
    ],
    ids=["fp32", "autocast bf16", "autocast bf16, compiled"],
)
def test_a_step_of_a_norm_is_timed_in_place_on_the_device(
    gpu: CudaDevice,
    sizes: Sizes,
    figures: Figures,
    autocast: DType | None,
    names: Sequence[str],
    *,
    compiled: bool,
) -> None:
    """What is compiled, a whole model, takes many seconds."""
    if compiled and not sizes.everyone:
        pytest.skip("nothing is compiled in a rehearsal")
    shape = replace(PRESETS["tiny"], layers=1) if compiled else PRESETS["tiny"]
    shape = shape if sizes.everyone else replace(shape, layers=1, batch=1, context=16)
    cell = StepCell(shape=shape, dtype=DType.FP32, autocast=autocast, compiled=compiled)
    norms = [one for one in sizes.norms if one.name in names]
    names = tuple(one.name for one in norms)
    plan = StepPlan(
        cells=(cell,), implementations=names, precision=Precision(placements=5, max_seconds=sizes.max_seconds)
    )
    (records,) = Steps(plan=plan, implementations=norms, device=gpu, observer=Watcher()).run()

    assert {result.implementation: result.reason for result in records.results} == dict.fromkeys(names)
    for result in records.results:
        assert set(result.times) == set(Part)
        assert 0 < result.times[Part.FORWARD].value < result.times[Part.STEP].value < 1
        assert result.peak_memory_bytes
        assert result.saved_bytes
    assert records.noise is not None
    ratio = records.noise.ratio.value
    figures.say(f"{abs(ratio - 1):.2%}", "a step's baseline against itself")
    figures.hold(abs(ratio - 1) < 0.1, f"the baseline is {ratio:.3f} times itself")
