"""What implementations that come from optional packages have in common: where they can't run, and why."""

from __future__ import annotations

from collections.abc import Callable

from normbench.implementations.base import Setting
from normbench.optional import Package
from normbench.records import DeviceInfo, DType, Mode

Limit = Callable[[Setting], str | None]
"""Why a kernel can't compute a cell, None where it can."""


def unsupported(package: Package, *limits: Limit) -> Callable[[Setting, DeviceInfo], str | None]:
    """Why a package's kernel can't run: not on this machine, or by the first limit that the cell is beyond."""

    def reason(setting: Setting, device: DeviceInfo) -> str | None:
        beyond = (why for limit in limits if (why := limit(setting)))
        return package.absent(device) or next(beyond, None)

    return reason


def inference_only(setting: Setting) -> str | None:
    """A kernel that has no backward."""
    return None if setting.cell.mode is Mode.INFERENCE else "inference only: it has no backward"


def equal_dtypes(setting: Setting) -> str | None:
    """A kernel that takes parameters of x's dtype alone."""
    cell = setting.cell
    alike = cell.parameter_dtype is cell.dtype
    return None if alike else f"takes parameters of x's dtype: {cell.dtype}, not {cell.parameter_dtype}"


def parameters_in(dtype: DType) -> Limit:
    """A kernel that takes parameters in one format alone."""

    def limit(setting: Setting) -> str | None:
        found = setting.cell.parameter_dtype
        return None if found is dtype else f"takes parameters in {dtype}, not {found} (--param-dtypes {dtype})"

    return limit


def widest(elements: int) -> Limit:
    """A kernel that holds a row at once, and none that has more elements."""

    def limit(setting: Setting) -> str | None:
        width = setting.cell.width
        return None if width <= elements else f"rows of at most {elements:,} elements, not {width:,}"

    return limit
