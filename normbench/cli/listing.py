"""``normbench list``: every implementation, whether it runs here, and if not, why and what to do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from normbench.device import Device
    from normbench.implementations import Implementation
    from normbench.records import DType, Mode

EXAMPLES = """\b
Examples:
  normbench list
  normbench list --device cuda --json
"""


def list_implementations(
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:N. [the GPU if there is one]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the implementations with formula, provider and availability on this device."""
    from normbench.cli.output import emit, json_text, note, results
    from normbench.device import detect
    from normbench.implementations import without_place
    from normbench.legible import one_line

    rows = _rows(detect(device))
    for one in without_place():
        note(one_line(str(one)))
    if as_json:
        emit(json_text(rows))
        return
    from normbench.reporters.sheet import Sheet, show

    names = [name for name in rows[0] if any(row[name] for row in rows)]
    wrapped = frozenset(names.index(name) for name in ("summary", "source", "reason") if name in names)
    sheet = Sheet(heads=tuple(names), rows=[tuple(row[name] for name in names) for row in rows], wrapped=wrapped)
    with results() as out:
        show(sheet, out)


def _rows(device: Device) -> list[dict[str, str]]:
    from normbench.implementations import catalog

    return [_row(implementation, device) for implementation in catalog().implementations]


def _row(implementation: Implementation, device: Device) -> dict[str, str]:
    from normbench.records import DType, Mode

    asked = partial(_why_not, implementation, device)
    reasons = {dtype: why for dtype in DType if (why := asked(dtype, dtype, Mode.FORWARD))}
    runs = len(reasons) < len(DType) or not all(asked(x, DType.FP32, Mode.INFERENCE) for x in DType)
    everywhere = len(reasons) == len(DType) and len(set(reasons.values())) == 1
    unlike = "; ".join(f"{dtype}: {reason}" for dtype, reason in reasons.items())
    return {
        "name": implementation.name,
        "op": str(implementation.op),
        "provider": implementation.provider,
        "available": "yes" if not reasons else "partly" if runs else "no",
        "summary": implementation.summary,
        "source": str(implementation.info.source or ""),
        "reason": next(iter(reasons.values())) if everywhere else unlike,
    }


def _why_not(
    implementation: Implementation, device: Device, dtype: DType, parameter_dtype: DType, mode: Mode
) -> str | None:
    """Why it can't run a narrow cell here, None where it can."""
    from normbench.implementations import Setting
    from normbench.records import Cache, Cell

    cell = Cell(mode=mode, rows=1, width=256, dtype=dtype, parameter_dtype=parameter_dtype, cache=Cache.WARM)
    setting = Setting(cell=cell, eps=1e-6, device=str(device.torch_device))
    return implementation.unsupported(setting, device.info)
