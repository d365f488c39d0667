"""Builders of a small synthetic check, none of which needs torch: checks, headers, whole checks, folders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from pathlib import Path
from typing import Any

from normbench.records import (
    Allowance,
    Check,
    CheckHeader,
    CheckPlan,
    CheckRun,
    DType,
    Gap,
    Mark,
    Output,
    Property,
    Spot,
)
from tests.runs import make_device, make_environment, make_info

NAMES = ("eager-layernorm", "nn-rmsnorm", "naive-rmsnorm")
"""The implementations of a check, unless told."""

PROPERTIES = (Property.NORMAL_VALUES, Property.FP16_SQUARES_OVERFLOW, Property.ZERO_MEAN, Property.DETERMINISM)
WIDTHS = (3, 64)
DTYPES = (DType.FP32, DType.FP16)


def make_spot(**changes: Any) -> Spot:
    """Five rows of three float32; the parameters have x's dtype unless told."""
    fields: dict[str, Any] = {"rows": 5, "width": 3, "dtype": DType.FP32, **changes}
    fields.setdefault("parameter_dtype", fields["dtype"])
    return Spot(**fields)


def make_gap(ulp: float = 0.5, allowed_ulp: float = 5.0, relative: float | None = None) -> Gap:
    """So many ulp of float32."""
    of_allowed = ulp / allowed_ulp if allowed_ulp else (inf if ulp else 0.0)
    return Gap(ulp=ulp, relative=ulp * 2**-23 if relative is None else relative, of_allowed=of_allowed)


def make_check(
    name: str = "nn-rmsnorm",
    asked: Property = Property.NORMAL_VALUES,
    output: Output | None = Output.Y,
    mark: Mark = Mark.PASS,
    gap: Gap | None = None,
    **changes: Any,
) -> Check:
    """A check that passes by a tenth of what is allowed, unless told; what else is told is the spot's."""
    own = {key: changes.pop(key) for key in ("reason", "coarse", "out_dtype") if key in changes}
    if mark is not Mark.PASS:
        own.setdefault("reason", "because")
    if gap is None and mark is Mark.PASS and output is not None:
        gap = make_gap()
    return Check(
        implementation=name, property=asked, spot=make_spot(**changes), output=output, mark=mark, gap=gap, **own
    )


def make_check_plan(**changes: Any) -> CheckPlan:
    """Four properties, two formats, two widths."""
    fields: dict[str, Any] = {
        "properties": PROPERTIES,
        "dtypes": DTYPES,
        "widths": WIDTHS,
        "eps": 1e-6,
        "seed": 0,
    }
    return CheckPlan(**{**fields, **changes})


def make_check_header(names: Iterable[str] = NAMES, **changes: Any) -> CheckHeader:
    """The header of a check on some CPU."""
    fields: dict[str, Any] = {
        "created_utc": "2026-01-02T03:04:05Z",
        "command": ("normbench", "check", "--device", "cpu"),
        "plan": make_check_plan(),
        "implementations": tuple(make_info(name) for name in names),
        "device": make_device(),
        "environment": make_environment(),
    }
    return CheckHeader(**{**fields, **changes})


def checks_of(name: str) -> list[Check]:
    """What is found of an implementation: all well, but for what its name says."""
    found = []
    for dtype in DTYPES:
        for width in WIDTHS:
            at: dict[str, Any] = {"dtype": dtype, "width": width}
            found += [_normal(name, output, at) for output in (Output.Y, Output.DX, Output.DGAIN)]
            found += [_overflowing(name, output, at) for output in (Output.Y, Output.DX)]
            found.append(_zero_mean(name, at))
            found.append(make_check(name, Property.DETERMINISM, None, **at))
    return found


def _normal(name: str, output: Output, at: dict[str, Any]) -> Check:
    is_coarse = name.startswith("eager") and output is Output.DGAIN and at["dtype"] is DType.FP16
    gap = make_gap(40.0, 80.0) if is_coarse else make_gap(0.62)
    return make_check(name, Property.NORMAL_VALUES, output, gap=gap, coarse=is_coarse, **at)


def _overflowing(name: str, output: Output, at: dict[str, Any]) -> Check:
    if not name.startswith("naive") or at["dtype"] is not DType.FP16:
        return make_check(name, Property.FP16_SQUARES_OVERFLOW, output, **at)
    reason = f"{output}[0, {at['width'] - 1}] is 0, not 1.{at['width']} (100% of the elements are wrong)"
    gap = make_gap(inf if output is Output.DX else 1e3 * at["width"], 4.5, inf if output is Output.DX else 1.0)
    return make_check(name, Property.FP16_SQUARES_OVERFLOW, output, Mark.FAIL, gap, reason=reason, **at)


def _zero_mean(name: str, at: dict[str, Any]) -> Check:
    if name.endswith("layernorm"):
        return make_check(name, Property.ZERO_MEAN, **at)
    reason = "RMSNorm takes no mean off"
    return make_check(name, Property.ZERO_MEAN, None, Mark.NOT_APPLICABLE, reason=reason, **at)


def make_check_run(
    checks: Sequence[Check] | None = None, *, seconds: float | None = 75.0, complete: bool = True, **changes: Any
) -> CheckRun:
    """A check of three implementations, of which the last fails what its name says."""
    header = make_check_header(**changes)
    if checks is None:
        checks = tuple(check for info in header.implementations for check in checks_of(info.name))
    return CheckRun(header=header, checks=tuple(checks), seconds=seconds, complete=complete)


ALLOWED = (Allowance(implementation="naive-rmsnorm", property=Property.FP16_SQUARES_OVERFLOW),)
"""Of the failure that ``make_check_run`` has."""


def write_check(path: Path, run: CheckRun | None = None) -> Path:
    """The folder of a check."""
    from normbench.storage import CheckFolder

    run = run or make_check_run()
    folder = CheckFolder.create(path, run.header)
    folder.write(run.checks)
    folder.finish(run.seconds, complete=run.complete)
    return path
