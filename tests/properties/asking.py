"""Asks properties of implementations on the CPU, and sorts what is found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from normbench.checking import examine
from normbench.device import CpuDevice
from normbench.implementations import Implementation, Setting
from normbench.properties import QUESTIONS, Found, Subject
from normbench.properties.subject import cell_of
from normbench.records import Check, CheckPlan, DType, Mark, Mode, Output, Property, Spot
from tests.helpers import CPU, EPS

ALL = tuple(Property)
WIDTHS = (1, 3, 64)


def spot(width: int = 64, dtype: DType = DType.FP32, **changes: Any) -> Spot:
    """Five rows, parameters of x's format."""
    return Spot(**{"rows": 5, "width": width, "dtype": dtype, "parameter_dtype": dtype, **changes})


def subject(implementation: Implementation, at: Spot | None = None, *, eps: float = EPS, seed: int = 0) -> Subject:
    """An implementation, built for a spot."""
    at = at or spot()
    setting = Setting(cell=cell_of(at, Mode.FORWARD_BACKWARD), eps=eps)
    bind = implementation.build(setting)
    return Subject(implementation=implementation, bind=bind, spot=at, eps=eps, seed=seed, device=CPU)


def asked(one: Property, of: Subject) -> dict[Output | None, Found]:
    """What a property finds, by output."""
    return {found.output: found for found in QUESTIONS[one].ask(of)}


def plan(**changes: Any) -> CheckPlan:
    """Every property in float32, at three widths."""
    fields: dict[str, Any] = {"properties": ALL, "dtypes": (DType.FP32,), "widths": WIDTHS, "eps": EPS, "seed": 0}
    return CheckPlan(**{**fields, **changes})


def examined(implementations: Sequence[Implementation], **changes: Any) -> list[Check]:
    """Everything that is found of implementations."""
    return list(examine(CpuDevice(), plan(**changes), implementations))


def failing(checks: Iterable[Check]) -> set[Property]:
    """The properties that do not hold somewhere."""
    return {check.property for check in checks if check.mark is Mark.FAIL}


def applicable(checks: Iterable[Check]) -> set[Property]:
    """The properties that are asked somewhere."""
    return {check.property for check in checks if check.mark is not Mark.NOT_APPLICABLE}
