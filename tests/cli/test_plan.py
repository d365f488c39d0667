from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normbench.cli.plan import Request, command, plan_for
from normbench.cli.step_plan import StepRequest, step_plan
from normbench.errors import UsageError
from normbench.implementations import catalog, names_of
from normbench.implementations.compiled import COMPILE_MODES
from normbench.optional import OPTIONAL
from normbench.records import Cache, DType, Mode, Operation, Plan, Precision
from tests import stand_ins
from tests.cli.command import normbench
from tests.runs import make_device

CPU = make_device()
GPU = make_device(kind="cuda", name="NVIDIA H200", capability=(9, 0))
TURING = make_device(kind="cuda", name="Tesla T4", capability=(7, 5), native_bf16=False)


NAMES = names_of(Operation.NORM)


def plan(device: object = CPU, **asked: object) -> Plan:
    request = Request(**asked)  # type: ignore[arg-type]
    return plan_for(request, device, names_of(request.operation or Operation.NORM))  # type: ignore[arg-type]


def parsed(words: Sequence[str]) -> Plan:
    """The plan that the command line makes of these words."""
    found: list[Plan] = []

    def note(*args: object) -> Plan:
        found.append(plan_for(*args))  # type: ignore[arg-type]
        return found[-1]

    with patch("normbench.cli.beginning.plan_for", note):
        done = normbench(*words, "--dry-run")
    assert done.code == 0, done.err
    return found[-1]


def some(values: Sequence[object], least: int = 1) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(st.sampled_from(values), min_size=least, unique=True).map(tuple)


sizes = st.lists(st.integers(1, 2**20), min_size=1, max_size=4, unique=True).map(tuple)
above_zero = st.floats(min_value=1e-300, max_value=1e9)
fractions = st.floats(min_value=0, max_value=1, exclude_min=True, exclude_max=True)
precisions = st.builds(
    Precision,
    placements=st.integers(5, 1000),
    processes=st.just(1) | st.integers(5, 40),
    target=fractions,
    max_seconds=above_zero,
    total_seconds=st.none() | st.floats(min_value=1e-300, max_value=1e9),
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    operation = draw(st.sampled_from(Operation))
    floor, *candidates = names = names_of(operation)
    baseline = draw(st.sampled_from(candidates))
    chosen = draw(some(names))
    profile = draw(st.booleans())
    return Plan(
        widths=draw(sizes),
        rows=draw(sizes),
        dtypes=draw(some(tuple(DType))),  # type: ignore[arg-type]
        parameter_dtypes=draw(some((None, *DType))),  # type: ignore[arg-type]
        autocasts=draw(some((None, DType.BF16, DType.FP16))),  # type: ignore[arg-type]
        modes=draw(some(tuple(Mode))),  # type: ignore[arg-type]
        caches=draw(some(tuple(Cache))),  # type: ignore[arg-type]
        operation=operation,
        implementations=tuple(name for name in names if name in (floor, baseline, *chosen)),
        baseline=baseline,
        floor=floor,
        eps=draw(above_zero),
        compile_mode=draw(st.sampled_from(COMPILE_MODES)),
        profile=profile,
        counters=profile and draw(st.booleans()),
        seed=draw(st.integers(-(2**63), 2**63)),
        precision=draw(precisions),
    )


@given(plans())
def test_the_command_of_a_plan_says_all_of_it(wanted: Plan) -> None:
    assert parsed(command(wanted, "cpu")[1:]) == wanted


def test_the_command_of_a_plan_is_short_where_a_number_is() -> None:
    words = command(replace(plan(), eps=1e-5), "cuda:0")

    assert words[:4] == ("normbench", "sweep", "--device", "cuda:0")
    assert " --eps 1e-05 " in " ".join(words)
    assert " --max-seconds 10" in " ".join(words)
    assert "--total-seconds" not in words


def test_a_silent_request_on_a_cpu_is_a_small_warm_grid_of_everything() -> None:
    assert plan() == Plan(
        widths=(256, 1024, 4096),
        rows=(512,),
        dtypes=(DType.FP32, DType.BF16),
        modes=(Mode.FORWARD, Mode.BACKWARD),
        caches=(Cache.WARM,),
        implementations=NAMES,
        precision=Precision(processes=5),
    )


def test_on_a_gpu_those_of_installed_packages_are_measured_along_and_others_where_they_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_ins.uninstall_all(monkeypatch)
    everyone, named = catalog().of(Operation.NORM).names, ("quack-rmsnorm", "flashinfer-rmsnorm")
    for device in (GPU, CPU):
        assert plan_for(Request(), device, everyone).implementations == NAMES
        chosen = plan_for(Request(implementations=named), device, everyone).implementations
        assert chosen == ("copy", "nn-layernorm", *named)
    monkeypatch.undo()
    for package in OPTIONAL:
        stand_ins.install(monkeypatch, tmp_path, package)

    assert plan_for(Request(), GPU, everyone).implementations == everyone
    assert plan_for(Request(), CPU, everyone).implementations == NAMES


def test_steps_take_nobody_whose_package_is_missing_unless_named(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins.uninstall_all(monkeypatch)

    assert step_plan(StepRequest(), GPU, catalog()).implementations == NAMES[1:]
    named = step_plan(StepRequest(implementations=("liger-rmsnorm",)), GPU, catalog())
    assert named.implementations == ("nn-layernorm", "liger-rmsnorm")


def test_a_silent_request_on_a_gpu_covers_256_to_16384_at_4096_rows_with_a_cold_cache() -> None:
    found = plan(GPU)

    assert found.widths == (256, 512, 1024, 2048, 4096, 8192, 16384)
    assert (found.rows, found.caches) == ((4096,), (Cache.COLD,))
    assert set(found.dtypes) == {DType.BF16, DType.FP32}
    assert found.implementations == NAMES


def test_where_bfloat16_is_emulated_float16_takes_its_place() -> None:
    assert plan(TURING).dtypes == (DType.FP32, DType.FP16)
    assert plan(TURING, quick=True).dtypes == (DType.FP16,)
    assert plan(TURING, dtypes=(DType.BF16,)).dtypes == (DType.BF16,)


@pytest.mark.parametrize(("device", "dtype"), [(CPU, DType.FP32), (GPU, DType.BF16)])
def test_a_quick_plan_has_two_widths_one_dtype_and_less_time(device: object, dtype: DType) -> None:
    quick, full = plan(device, quick=True), plan(device)

    assert (quick.widths, quick.dtypes) == ((256, 1024), (dtype,))
    assert quick.precision.max_seconds < full.precision.max_seconds
    assert (quick.implementations, quick.modes, quick.rows) == (full.implementations, full.modes, full.rows)


def test_what_is_asked_for_goes_before_what_quick_means() -> None:
    found = plan(quick=True, widths=(77,), max_seconds=0.5)

    assert (found.widths, found.dtypes, found.precision.max_seconds) == ((77,), (DType.FP32,), 0.5)


def test_floor_and_baseline_come_along_in_the_order_of_reports() -> None:
    assert plan(implementations=("nn-rmsnorm", "eager-rmsnorm")).implementations == (
        "copy",
        "eager-rmsnorm",
        "nn-layernorm",
        "nn-rmsnorm",
    )
    other = plan(implementations=("nn-rmsnorm",), baseline="compile-layernorm")
    assert (other.implementations, other.baseline) == (
        ("copy", "nn-rmsnorm", "compile-layernorm"),
        "compile-layernorm",
    )


def test_the_order_of_the_axes_is_that_of_the_request() -> None:
    found = plan(widths=(512, 64), modes=(Mode.BACKWARD, Mode.FORWARD), dtypes=(DType.FP16, DType.FP32))

    assert (found.widths, found.modes) == ((512, 64), (Mode.BACKWARD, Mode.FORWARD))
    assert found.dtypes == (DType.FP16, DType.FP32)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"widths": tuple(range(1, 60_000))}, "cases are more than 200000: ask for fewer sizes or implementations"),
        ({"seed": 2**64}, "the seed has 64 bits"),
    ],
)
def test_a_plan_that_cannot_be_is_bad_usage_and_no_fault(asked: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        plan(**asked)
