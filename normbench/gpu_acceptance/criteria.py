"""Everything that is asked, in the order of the table."""

from __future__ import annotations

from functools import partial

from normbench import units
from normbench.gpu_acceptance import limits, of_bytes, of_cases, of_floor, of_tests
from normbench.gpu_acceptance.lines import Criterion

CRITERIA = (
    Criterion(what="parts of this command", asked="each ends well", judge=of_cases.every_part, needs_gpu=False),
    Criterion(what="tests marked gpu", asked="none fails", judge=of_tests.every_test, rehearsed=of_tests.rehearsal),
    Criterion(
        what="device time against the profiler's span of the kernels",
        asked=f"within {units.percent(limits.OFF_THE_PROFILER)} above {units.duration(limits.LEAST_SPAN_S, 2)}",
        judge=partial(of_tests.off_by, module="test_device_time", limit=limits.OFF_THE_PROFILER),
    ),
    Criterion(
        what="nn-layernorm in a sweep against triton's do_bench, same flush",
        asked=f"within {units.percent(limits.OFF_DO_BENCH)}",
        judge=partial(of_tests.off_by, module="test_do_bench", limit=limits.OFF_DO_BENCH),
    ),
    Criterion(
        what="floor in the largest cell",
        asked=f"at least {units.percent(limits.LEAST_OF_PEAK)} of the computed peak",
        judge=of_floor.bandwidth_of_the_largest,
    ),
    Criterion(
        what="floor in cold cells",
        asked=f"never above {units.percent(limits.MOST_OF_PEAK)} of the peak",
        judge=of_floor.no_bandwidth_beyond_the_peak,
    ),
    Criterion(what="A/A noise floor", asked=f"below {units.percent(limits.NOISE)}", judge=of_floor.noise),
    Criterion(
        what="op bytes of eager-rmsnorm, bf16 forward",
        asked=f"{limits.CHAIN_PASSES} times x's, {limits.CHAIN_OF_FLOOR} times the floor's",
        judge=of_bytes.bytes_of_the_chain,
        needs_gpu=False,
    ),
    Criterion(
        what="time of eager-rmsnorm ÷ nn-rmsnorm",
        asked=f"within {units.percent(limits.OFF_THE_BYTES)} of the ratio of their bytes",
        judge=of_bytes.time_by_the_bytes,
    ),
    Criterion(what="cases with a final status", asked="all", judge=of_cases.a_status_each, needs_gpu=False),
    Criterion(what="how cases ended", asked="ok or unsupported", judge=of_cases.all_right, needs_gpu=False),
    Criterion(
        what="wrong and cheating implementations",
        asked="all caught",
        judge=partial(of_tests.all_hold, module="test_cheats"),
    ),
    Criterion(
        what="out of memory at an impossible size",
        asked="contained, the next case right",
        judge=partial(of_tests.all_hold, module="test_out_of_memory"),
    ),
    Criterion(
        what="what the stand-in for CUDA assumes",
        asked="true of the device",
        judge=partial(of_tests.all_hold, module="test_stand_in"),
    ),
    Criterion(
        what="bytes by hardware counters ÷ op bytes",
        asked=f"{limits.LEAST_COUNTED} to {limits.MOST_COUNTED}, where permitted",
        judge=of_bytes.counted,
    ),
    Criterion(
        what="what this leaves",
        asked=f"at most {units.size(limits.MOST_BYTES)} in {limits.MOST_FILES} files",
        judge=of_cases.output,
        needs_gpu=False,
    ),
)
"""A line each."""
