from __future__ import annotations

import pytest

from normbench.cli import revision
from normbench.cli.plan import Request, plan_for
from normbench.errors import UsageError
from normbench.implementations import NAMES
from normbench.records import Cache, DType, Mode, Plan, Precision
from tests.runs import make_device

CPU = make_device()
WIDTHS = (256, 1024)
PLAN = plan_for(Request(widths=WIDTHS), CPU, NAMES)


def found(plan: Plan = PLAN, **asked: object) -> list[str]:
    """The differences, as they are told."""
    revised = revision.revised(plan, Request(**asked), CPU)  # type: ignore[arg-type]
    return [str(change) for change in revision.changes(plan, revised)]


def possible(plan: Plan = PLAN, **asked: object) -> list[tuple[str, bool]]:
    """For each difference its option, and whether it can be made within the run."""
    revised = revision.revised(plan, Request(**asked), CPU)  # type: ignore[arg-type]
    return [(change.option, change.is_possible) for change in revision.changes(plan, revised)]


def test_a_silent_request_is_for_the_plan_that_is_there() -> None:
    assert revision.revised(PLAN, Request(), CPU) == PLAN


def test_all_that_made_a_plan_asks_for_that_plan_again() -> None:
    asked = Request(
        widths=WIDTHS,
        rows=(512,),
        dtypes=(DType.FP32, DType.BF16),
        parameter_dtypes=(None,),
        autocasts=(None,),
        modes=(Mode.FORWARD, Mode.BACKWARD),
        caches=(Cache.WARM,),
        implementations=NAMES,
        baseline="nn-layernorm",
        eps=1e-6,
        compile_mode="default",
        case_timeout_s=300.0,
        seed=0,
        placements=10,
        processes=5,
        target=0.01,
        max_seconds=10.0,
    )
    assert revision.revised(PLAN, asked, CPU) == PLAN


@pytest.mark.parametrize(
    "asked",
    [
        {"widths": (1024, 256)},
        {"dtypes": (DType.BF16, DType.FP32)},
        {"implementations": NAMES[::-1]},
        {"implementations": NAMES[1:]},
    ],
)
def test_another_order_and_who_comes_along_anyway_are_no_difference(asked: dict[str, object]) -> None:
    assert found(**asked) == []
    assert revision.revised(PLAN, Request(**asked), CPU) == PLAN  # type: ignore[arg-type]


def test_other_words_for_the_same_cells_are_no_difference() -> None:
    plan = plan_for(Request(widths=WIDTHS, dtypes=(DType.FP32,)), CPU, NAMES)

    assert found(plan, parameter_dtypes=(DType.FP32,)) == []
    assert found(PLAN, parameter_dtypes=(DType.FP32,)) == ["--param-dtypes: the run has same, asked for fp32"]


def test_every_difference_is_named_with_both_values() -> None:
    assert found(widths=(256, 512), seed=7, target=0.02, total_seconds=60.0, graphs=True) == [
        "--widths: the run has 256 1024, asked for 256 512",
        "--seed: the run has 0, asked for 7",
        "--target: the run has 0.01, asked for 0.02",
        "--graphs: the run has none, asked for it",
        "--total-seconds: the run has none, asked for 60",
    ]


@pytest.mark.parametrize(
    "asked",
    [
        {"widths": (256, 1024, 4096)},
        {"rows": (512, 64)},
        {"dtypes": (DType.FP32, DType.BF16, DType.FP16)},
        {"modes": (Mode.INFERENCE, Mode.FORWARD, Mode.BACKWARD)},
        {"caches": (Cache.WARM, Cache.COLD)},
        {"autocasts": (None, DType.BF16)},
        {"parameter_dtypes": (None, DType.FP32)},
        {"placements": 20},
        {"processes": 8},
        {"target": 0.005},
        {"max_seconds": 1.0},
        {"total_seconds": 60.0},
        {"case_timeout_s": 10.0},
    ],
)
def test_more_cells_and_another_precision_can_be_had_within_the_run(asked: dict[str, object]) -> None:
    assert [can for _, can in possible(**asked)] == [True]
    revised = revision.revised(PLAN, Request(**asked), CPU)  # type: ignore[arg-type]
    assert set(PLAN.cells()) <= set(revised.cells())
    assert next(revised.cells()) == next(PLAN.cells())


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        ({"widths": (256, 4096)}, ["--widths"]),
        ({"modes": (Mode.FORWARD,)}, ["--modes"]),
        ({"implementations": ("nn-rmsnorm",)}, ["--impls"]),
        ({"baseline": "eager-layernorm"}, ["--baseline"]),
        ({"eps": 1e-5}, ["--eps"]),
        ({"seed": 1}, ["--seed"]),
        ({"compile_mode": "max-autotune"}, ["--compile-mode"]),
        ({"graphs": True}, ["--graphs"]),
        ({"profile": True}, ["--profile"]),
        ({"profile": True, "counters": True}, ["--profile", "--counters"]),
    ],
)
def test_what_would_make_measured_cells_wrong_or_lost_cannot_be_had(
    asked: dict[str, object], options: list[str]
) -> None:
    assert possible(**asked) == [(option, False) for option in options]


def test_what_would_be_lost_is_named() -> None:
    revised = revision.revised(PLAN, Request(widths=(512,), seed=1), CPU)

    assert [change.lost for change in revision.changes(PLAN, revised)] == ["256 1024", ""]


def test_the_sentence_that_is_kept_says_what_was_and_what_is() -> None:
    (change,) = revision.changes(PLAN, revision.revised(PLAN, Request(widths=(256, 1024, 512)), CPU))

    assert change.sentence == "--widths was 256 1024, is 256 1024 512"


def test_the_seed_0_and_a_number_that_is_written_otherwise_are_compared_as_numbers() -> None:
    plan = plan_for(Request(widths=WIDTHS, seed=3), CPU, NAMES)

    assert found(plan, seed=0) == ["--seed: the run has 3, asked for 0"]
    assert found(PLAN, max_seconds=10, eps=0.000001) == []


def test_quick_asks_for_what_it_stands_for() -> None:
    quick = plan_for(Request(quick=True), CPU, NAMES)

    assert found(quick, quick=True) == []
    assert found(quick, quick=True, max_seconds=3.0) == []
    assert found(PLAN, quick=True) == [
        "--dtypes: the run has fp32 bf16, asked for fp32",
        "--processes: the run has 5, asked for 1",
        "--max-seconds: the run has 10, asked for 3",
    ]


def test_a_run_can_be_gone_on_with_in_one_process_and_come_back_from_it() -> None:
    assert found(no_isolate=True) == [
        "--processes: the run has 5, asked for 1",
        "--case-timeout: the run has 300, asked for none",
        "--no-isolate: the run has none, asked for it",
    ]
    alone = revision.revised(PLAN, Request(no_isolate=True), CPU)
    assert (alone.isolate, alone.case_timeout_s, alone.precision.processes) == (False, None, 1)
    assert found(alone, no_isolate=True) == found(alone) == []

    back = revision.revised(alone, Request(processes=5), CPU)
    assert (back.isolate, back.case_timeout_s, back.precision) == (True, 300.0, PLAN.precision)
    assert revision.revised(alone, Request(case_timeout_s=9.0), CPU).case_timeout_s == 9.0


def test_what_is_not_asked_for_stays() -> None:
    precision = Precision(placements=7, target=0.03, max_seconds=2.5, total_seconds=99.0, processes=6)
    plan = plan_for(Request(widths=WIDTHS, seed=3, eps=1e-3, compile_mode="max-autotune"), CPU, NAMES)
    plan = Plan(**{**vars(plan), "precision": precision, "case_timeout_s": 17.0})
    revised = revision.revised(plan, Request(widths=(256, 1024, 2048)), CPU)

    assert revised == Plan(**{**vars(plan), "widths": (256, 1024, 2048)})


def test_a_plan_that_cannot_be_is_bad_usage_and_no_fault() -> None:
    with pytest.raises(UsageError, match="--resume: the seed has 64 bits"):
        revision.revised(PLAN, Request(seed=2**64), CPU)
