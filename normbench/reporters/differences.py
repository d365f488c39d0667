"""What differs between two runs besides their times: device, software, and how it was measured."""

from __future__ import annotations

from dataclasses import dataclass

from normbench import units
from normbench.records import RunHeader
from normbench.reporters import brought, method

WHEN = "when (UTC)"
CLOCKS = {"cpu": "wall time", "cuda": "device time by CUDA events"}


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing with its value in either run."""

    what: str
    base: str
    head: str

    def __str__(self) -> str:
        return f"{self.what}: {self.base} in BASE, {self.head} in HEAD"


def differences(base: RunHeader, head: RunHeader) -> list[Difference]:
    """Everything that differs and may change what is measured; when it was measured does not."""
    rows, others = _rows(base), _rows(head)
    return [
        Difference(what=what, base=rows.get(what, units.ABSENT), head=others.get(what, units.ABSENT))
        for what in dict.fromkeys([*rows, *others])
        if rows.get(what) != others.get(what)
    ]


def _rows(header: RunHeader) -> dict[str, str]:
    rows = {name: value for name, value in method.environment(header) if name != WHEN}
    code = {name: where for name, _what, where in brought.rows(header.implementations)}
    return {"kind of device": header.device.kind, **rows, **_ability_rows(header), **_plan_rows(header), **code}


def _ability_rows(header: RunHeader) -> dict[str, str]:
    device = header.device
    return {
        "clock": CLOCKS.get(device.kind, device.kind),
        "fused RMSNorm in torch": _yes_no(device.fused_rmsnorm),
        "native bfloat16": _yes_no(device.native_bf16),
        "kernel languages of torch": units.join(header.environment.native_dsls),
    }


def _plan_rows(header: RunHeader) -> dict[str, str]:
    plan = header.plan
    return {
        "baseline": plan.baseline,
        "floor": plan.floor,
        "seed": str(plan.seed),
        "eps": str(plan.eps),
        "compile mode": plan.compile_mode,
        "processes": str(plan.precision.processes),
        "margin": units.percent(plan.precision.margin),
    }


def _yes_no(value: object) -> str:
    return units.ABSENT if value is None else "yes" if value else "no"
