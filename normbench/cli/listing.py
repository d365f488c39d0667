"""``normbench list``: every implementation, whether it runs here, and if not, why and what to do."""

from __future__ import annotations

from typing import Annotated

import typer

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


def _rows(device: object) -> list[dict[str, str]]:
    from normbench.device import Device
    from normbench.implementations import Setting, catalog
    from normbench.records import Cache, Cell, DType, Mode

    found: Device = device  # type: ignore[assignment]
    rows = []
    for implementation in catalog().implementations:
        reasons = {}
        for dtype in DType:
            cell = Cell(mode=Mode.FORWARD, rows=1, width=256, dtype=dtype, parameter_dtype=dtype, cache=Cache.WARM)
            setting = Setting(cell=cell, eps=1e-6, device=str(found.torch_device))
            reason = implementation.unsupported(setting, found.info)
            if reason:
                reasons[str(dtype)] = reason
        unlike = [f"{dtype}: {reason}" for dtype, reason in reasons.items()]
        everywhere = len(reasons) == len(DType) and len(set(reasons.values())) == 1
        rows.append(
            {
                "name": implementation.name,
                "op": str(implementation.op),
                "provider": implementation.provider,
                "available": "no" if len(reasons) == len(DType) else "partly" if reasons else "yes",
                "summary": implementation.summary,
                "source": str(implementation.info.source or ""),
                "reason": next(iter(reasons.values())) if everywhere else "; ".join(unlike),
            }
        )
    return rows
