from __future__ import annotations

from typing import Any

import pytest

from normbench.records import Precision, RunHeader
from normbench.reporters.differences import differences
from tests.runs import make_device, make_environment, make_header, make_plan

SAME = make_header()


def found(head: RunHeader) -> list[tuple[str, str, str]]:
    return [(each.what, each.base, each.head) for each in differences(SAME, head)]


@pytest.mark.parametrize(
    ("changes", "what", "base", "head"),
    [
        ({"device": make_device(name="Other CPU")}, "device", "Some CPU", "Other CPU"),
        ({"device": make_device(threads=4)}, "threads", "-", "4"),
        ({"device": make_device(fused_rmsnorm=False)}, "fused RMSNorm in torch", "-", "no"),
        ({"device": make_device(native_bf16=False)}, "native bfloat16", "yes", "no"),
        ({"environment": make_environment(torch="2.14.0")}, "torch", "2.13.0", "2.14.0"),
        ({"environment": make_environment(python="3.12.1")}, "Python", "3.11.0", "3.12.1"),
        ({"environment": make_environment(normbench="1")}, "normbench", "0", "1"),
        ({"environment": make_environment(cuda="13.0")}, "CUDA", "-", "13.0"),
        ({"environment": make_environment(driver="580")}, "driver", "-", "580"),
        ({"environment": make_environment(triton="3.7")}, "Triton", "-", "3.7"),
        ({"environment": make_environment(packages=(("liger-kernel", "0.6"),))}, "liger-kernel", "-", "0.6"),
        ({"environment": make_environment(native_dsls=("cutedsl",))}, "kernel languages of torch", "-", "cutedsl"),
        ({"plan": make_plan(seed=7)}, "seed", "0", "7"),
        ({"plan": make_plan(eps=1e-5)}, "eps", "1e-06", "1e-05"),
        ({"plan": make_plan(compile_mode="max-autotune")}, "compile mode", "default", "max-autotune"),
        ({"plan": make_plan(precision=Precision(processes=5))}, "processes", "1", "5"),
        ({"plan": make_plan(precision=Precision(margin=0.05))}, "margin", "2 %", "5 %"),
        ({"plan": make_plan(baseline="nn-rmsnorm")}, "baseline", "nn-layernorm", "nn-rmsnorm"),
    ],
)
def test_what_differs_is_named_with_both_values(changes: dict[str, Any], what: str, base: str, head: str) -> None:
    assert found(make_header(**changes)) == [(what, base, head)]


def test_another_kind_of_device_is_another_clock() -> None:
    assert found(make_header(device=make_device(kind="cuda"))) == [
        ("kind of device", "cpu", "cuda"),
        ("clock", "wall time", "device time by CUDA events"),
    ]


def test_another_time_other_widths_and_another_precision_are_no_difference() -> None:
    plan = make_plan(widths=(128,), precision=Precision(max_seconds=1.0, target=0.5))

    assert found(make_header(plan, created_utc="2027-01-01T00:00:00Z")) == []
