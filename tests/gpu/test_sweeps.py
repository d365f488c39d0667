"""Cells of everybody, as a sweep measures them."""

from __future__ import annotations

import pytest

from normbench.device import CudaDevice
from normbench.records import Cache, DType, Flag, Mode, Operation, Status
from tests.fakes import quickly
from tests.gpu.figures import Figures
from tests.gpu.sizes import Sizes
from tests.gpu.sweeps import swept


@pytest.mark.parametrize("mode", [Mode.FORWARD, Mode.BACKWARD])
@pytest.mark.parametrize("operation", Operation)
def test_every_implementation_is_measured_in_a_cell(
    gpu: CudaDevice, sizes: Sizes, figures: Figures, operation: Operation, mode: Mode
) -> None:
    """Those that are compiled in one cell alone, since each takes seconds."""
    rows, width = sizes.middle
    is_compiled = (operation, mode) == (Operation.ADD_NORM, Mode.FORWARD)
    records = swept(
        gpu,
        sizes.of(operation) if is_compiled else sizes.uncompiled(operation),
        graphs=True,
        modes=(mode,),
        caches=(Cache.COLD,),
        dtypes=(DType.BF16,),
        rows=(rows,),
        widths=(width,),
        precision=quickly(max_seconds=sizes.max_seconds),
    )
    for result in records.results:
        assert (result.status, result.reason) == (Status.OK, None), result.case.implementation
        assert result.timing is not None
        assert result.timing.wall_s is not None
        placements = result.timing.placements
        figures.hold(placements >= 2, f"{result.case.implementation} was timed in {placements} placement")
        assert Flag.QUEUE_NOT_HELD not in result.flags
        figures.hold(Flag.COMPOSITE not in result.flags, f"{result.case.implementation} is a chain of ops")
