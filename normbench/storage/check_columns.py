"""The columns of ``check.csv``: what each holds, how a check becomes a row and a row a check."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import TypeAdapter

from normbench.records import SPOT_KEY, Check, CheckHeader, Gap, Output, Property, Spot
from normbench.storage.columns import Row, Values, as_row, text
from normbench.storage.table import FieldError

CHECKS: dict[str, str] = {
    "implementation": "`provider-op`",
    "property": "what was asked; `docs/checks.md` says what each asks and allows",
    "rows": "rows of x; there may be none",
    "width": "columns of x: what is normalised over",
    "dtype": "dtype of x and dy: `fp32`, `bf16` or `fp16`",
    "parameter_dtype": "dtype of gain and bias",
    "autocast": "autocast's dtype; empty where autocast is off",
    "output": "what was looked at: `y`, `dx`, `dgain` or `dbias`; empty where it is the whole call",
    "mark": "`pass`, `fail` or `n.a.`: it can't be asked here",
    "reason": "why it does not pass; empty where it does",
    "max_ulp": "the largest distance from what is right, in units in the last place of the output's format at the "
    "size of the terms that the element is summed up from; `inf` where the output is no number, empty where nothing "
    "was compared",
    "max_rel_error": "the largest distance relative to the size of these terms",
    "max_of_allowed": "the largest distance as a multiple of what may be off with statistics and sums in float32: "
    "above 1 it fails, or passes coarsely",
    "coarse": "`true` where it passes only if statistics or sums may be kept in half precision",
    "out_dtype": "dtype of the output; empty where it is x's, or none of ours",
}

_CHECK = TypeAdapter(Check)
_GAP = {"max_ulp": "ulp", "max_rel_error": "relative", "max_of_allowed": "of_allowed"}


def row(check: Check) -> Row:
    """The row of a check: numbers unrounded, an infinite one as ``inf``."""
    return as_row(values(check))


def values(check: Check) -> Values:
    """The columns of a check before they are text."""
    return {
        "implementation": check.implementation,
        "property": check.property,
        **spot_values(check.spot),
        "output": check.output,
        "mark": check.mark,
        "reason": check.reason,
        **gap_values(check.gap),
        "coarse": check.coarse,
        "out_dtype": check.out_dtype,
    }


def spot_values(spot: Spot) -> Values:
    """The columns of a spot."""
    return {name: getattr(spot, name) for name in SPOT_KEY}


def gap_values(gap: Gap | None) -> Values:
    """The columns of a distance: None throughout where there is none."""
    return {column: None if gap is None else getattr(gap, name) for column, name in _GAP.items()}


def check(row: Mapping[str, str]) -> Check:
    """The check in a row; pydantic's ValidationError or a FieldError where a field is not what it should be."""
    absent = [column for column in _GAP if not row[column]]
    if absent and len(absent) < len(_GAP):
        raise FieldError(absent[0], f"is empty, and {next(c for c in _GAP if row[c])} is not")
    if row["coarse"] not in ("true", "false"):
        raise FieldError("coarse", f"{row['coarse'][:40]!a} is neither true nor false")
    found = _CHECK.validate_python(
        {
            "implementation": row["implementation"],
            "property": row["property"],
            "spot": {name: row[name] or None for name in SPOT_KEY},
            "output": row["output"] or None,
            "mark": row["mark"],
            "reason": row["reason"] or None,
            "gap": None if absent else {name: row[column] for column, name in _GAP.items()},
            "coarse": row["coarse"] == "true",
            "out_dtype": row["out_dtype"] or None,
        }
    )
    for name in SPOT_KEY:
        if row[name] != (written := text(getattr(found.spot, name))):
            raise FieldError(name, f"{row[name][:40]!a} is written as {written!r}")
    return found


class Checks:
    """The rows of ``check.csv``: each of the check that ``check.json`` describes, and each once.

    Args:
        header: What it holds.
    """

    def __init__(self, header: CheckHeader) -> None:
        self._names = {info.name for info in header.implementations}
        self._plan = header.plan
        self._seen: set[tuple[str, Property, Spot, Output | None]] = set()

    def __call__(self, row: Mapping[str, str]) -> Check:
        """The check in a row."""
        found = check(row)
        if found.implementation not in self._names:
            raise FieldError("implementation", _of_another(found.implementation))
        if found.property not in self._plan.properties:
            raise FieldError("property", _of_another(found.property))
        if found.spot.width not in self._plan.widths:
            raise FieldError("width", _of_another(str(found.spot.width)))
        if found.spot.dtype not in self._plan.dtypes:
            raise FieldError("dtype", _of_another(found.spot.dtype))
        key = (found.implementation, found.property, found.spot, found.output)
        if key in self._seen:
            what = " ".join(str(part) for part in key if part is not None)
            raise FieldError("row", f"{what} stands twice in this file")
        self._seen.add(key)
        return found


def _of_another(name: str) -> str:
    return f"{name[:40]!a} is not in check.json: the two are of different checks"
