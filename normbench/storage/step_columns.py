"""The columns of a run of steps: what each holds, and how records become rows and rows records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter

from normbench.records import (
    STEP_KEY,
    ModelShape,
    Part,
    Spent,
    StepCell,
    StepComparison,
    StepNoise,
    StepRecords,
    StepResult,
)
from normbench.storage.cell_columns import SPENT
from normbench.storage.columns import CELL as _NORM_CELL
from normbench.storage.columns import (
    SAMPLES,
    Row,
    Values,
    as_row,
    estimate,
    estimate_values,
    sample_values,
    split_flags,
    text,
)
from normbench.storage.table import FieldError

STEP_CELL: dict[str, str] = {
    "width": "of the residual stream, and of every norm",
    "layers": "blocks, of two norms each",
    "heads": "of attention",
    "context": "tokens of a sequence",
    "batch": "sequences of a step",
    "vocabulary": "different tokens",
    "widening": "how many times as wide as the stream the MLP is",
    "tied": "`true` where the head is the transposed embedding",
    "dtype": "dtype of all parameters",
    "autocast": "autocast's dtype in the forward; empty where autocast is off",
    "compiled": "`true` where the model as a whole went through torch.compile",
    "optimizer": "`adamw` or `sgd`",
}

_WHAT = {
    Part.STEP: "seconds of one training step: forward, backward, clipping and update",
    Part.FORWARD: "seconds of the forward with the loss, by itself",
    Part.BACKWARD: "seconds of the backward, by itself, its forward outside the clock",
    Part.OPTIMIZER: "seconds of clipping and update, by themselves",
}

STEPS: dict[str, str] = {
    **STEP_CELL,
    "implementation": "of the norms: `provider-op`",
    "status": "`ok`, `incorrect`, `unsupported`, `out_of_memory`, `timed_out`, `failed` or `not_run`",
    "reason": "why the status is not `ok`; empty where it is",
    **{
        column: what
        for part in Part
        for column, what in (
            (f"{part}_s", _WHAT[part]),
            (f"{part}_low_s", "lower end of its interval"),
            (f"{part}_high_s", "upper end of its interval"),
        )
    },
    "tokens_per_s": "tokens of a step ÷ `step_s`",
    "samples": "samples that `step_s` rests on",
    "placements": "placements that `step_s` rests on",
    "parameters": "of the whole model",
    "norm_parameters": "of its norms",
    "compile_s": "seconds of the first step with empty caches; empty where nothing is compiled",
    "peak_memory_bytes": "the most allocated in a step above what model and optimizer keep; empty where not measured",
    "saved_bytes": "bytes that the forward keeps for the backward; empty where not measured",
    "max_rel_error": "largest error of any norm in the model against float64, relative to the terms of its element",
    "flags": "what is odd, separated by `;`",
}

STEP_COMPARISONS: dict[str, str] = {
    **STEP_CELL,
    "baseline": "what is compared with",
    "candidate": "what is compared",
    "speedup": "time of the baseline's step ÷ time of the candidate's: above 1 the candidate is faster",
    "speedup_low": "lower end of its interval",
    "speedup_high": "upper end of its interval",
    "outcome": "`faster`, `slower`, `same` or `undecided`",
    "reason": "reason code of the outcome",
}

STEP_CELLS: dict[str, str] = {
    **STEP_CELL,
    **SPENT,
    "noise_implementation": "who competed with itself: the baseline; empty where it has no time",
    "noise_ratio": "what was found where the truth is 1",
    "noise_low": "lower end of its interval",
    "noise_high": "upper end of its interval",
}

STEP_SAMPLES: dict[str, str] = {
    **STEP_CELL,
    "part": "what was timed: `step`, `forward`, `backward` or `optimizer`",
    **{name: what for name, what in SAMPLES.items() if name not in _NORM_CELL},
}

_SHAPE = tuple(name for name in STEP_KEY if name in ModelShape.__dataclass_fields__)
_RESULT = TypeAdapter(StepResult)
_COMPARISON = TypeAdapter(StepComparison)
_OPTIONAL = ("compile_s", "peak_memory_bytes", "saved_bytes", "max_rel_error")
_COUNTS = ("parameters", "norm_parameters")


@dataclass(frozen=True, kw_only=True)
class StepFindings:
    """Where a step cell's time went, and its A/A test."""

    cell: StepCell
    spent: Spent
    noise: StepNoise | None = None


_FINDINGS = TypeAdapter(StepFindings)


def cell_values(cell: StepCell) -> Values:
    """The columns of a step cell's key: the sizes of its model among its own fields."""
    fields = {**vars(cell.shape), **vars(cell)}
    return {name: fields[name] for name in STEP_KEY}


def result_row(result: StepResult) -> Row:
    """A row of ``step.csv``."""
    return as_row(result_values(result))


def result_values(result: StepResult) -> Values:
    """The columns of a result before they are text."""
    times = {
        column: value
        for part in Part
        for column, value in estimate_values(
            result.times.get(part), f"{part}_s", f"{part}_low_s", f"{part}_high_s"
        ).items()
    }
    ok = bool(result.times)
    return {
        **cell_values(result.cell),
        "implementation": result.implementation,
        "status": result.status,
        "reason": result.reason,
        **times,
        "tokens_per_s": result.tokens_per_s,
        "samples": result.samples if ok else None,
        "placements": result.placements if ok else None,
        **{name: getattr(result, name) for name in (*_COUNTS, *_OPTIONAL)},
        "flags": ";".join(result.flags),
    }


def comparison_row(comparison: StepComparison) -> Row:
    """A row of ``step-comparisons.csv``."""
    return as_row(comparison_values(comparison))


def comparison_values(comparison: StepComparison) -> Values:
    """The columns of a comparison before they are text."""
    return {
        **cell_values(comparison.cell),
        "baseline": comparison.baseline,
        "candidate": comparison.candidate,
        **estimate_values(comparison.speedup, "speedup", "speedup_low", "speedup_high"),
        "outcome": comparison.outcome,
        "reason": comparison.reason,
    }


def sample_rows(records: StepRecords) -> Iterator[Row]:
    """The rows of ``step-samples.csv`` for one cell."""
    for part, samples in records.samples.items():
        for sample in samples:
            yield as_row({**cell_values(records.cell), "part": part, **sample_values(sample)})


def findings_row(records: StepRecords) -> Row:
    """The row of ``step-cells.csv`` for one cell."""
    noise = records.noise
    return as_row(
        {
            **cell_values(records.cell),
            **{name: getattr(records.spent, name) for name in SPENT},
            "noise_implementation": noise.implementation if noise else None,
            **estimate_values(noise.ratio if noise else None, "noise_ratio", "noise_low", "noise_high"),
        }
    )


def result(row: Mapping[str, str]) -> StepResult:
    """A result from its row; pydantic's ValidationError where a field is not what it should be."""
    times = {part: estimate(row, f"{part}_s", f"{part}_low_s", f"{part}_high_s") for part in Part if row[f"{part}_s"]}
    found = _RESULT.validate_python(
        {
            "cell": cell(row),
            "implementation": row["implementation"],
            "status": row["status"],
            "reason": row["reason"] or None,
            "times": times,
            "samples": row["samples"] or 0,
            "placements": row["placements"] or 0,
            **{name: row[name] for name in _COUNTS},
            **{name: row[name] or None for name in _OPTIONAL},
            "flags": split_flags(row["flags"]),
        }
    )
    if row["tokens_per_s"] != (written := text(found.tokens_per_s)):
        raise FieldError("tokens_per_s", f"{row['tokens_per_s'][:40]!a} is not the tokens ÷ step_s: {written}")
    return found


def comparison(row: Mapping[str, str]) -> StepComparison:
    """A comparison from its row; pydantic's ValidationError where a field is not what it should be."""
    return _COMPARISON.validate_python(
        {
            "cell": cell(row),
            "baseline": row["baseline"],
            "candidate": row["candidate"],
            "speedup": estimate(row, "speedup", "speedup_low", "speedup_high"),
            "outcome": row["outcome"],
            "reason": row["reason"],
        }
    )


def findings(row: Mapping[str, str]) -> StepFindings:
    """What a row of ``step-cells.csv`` says; pydantic's ValidationError where a field is not what it should be."""
    where = cell(row)
    noise = {
        "cell": where,
        "implementation": row["noise_implementation"],
        "ratio": estimate(row, "noise_ratio", "noise_low", "noise_high"),
    }
    return _FINDINGS.validate_python(
        {
            "cell": where,
            "spent": {name: row[name] for name in SPENT},
            "noise": noise if row["noise_implementation"] else None,
        }
    )


def cell(row: Mapping[str, str]) -> dict[str, object]:
    """The fields of a row's cell, not yet validated."""
    fields: dict[str, object] = {name: row[name] or None for name in STEP_KEY if name not in _SHAPE}
    return {**fields, "shape": {name: row[name] for name in _SHAPE}}


def key(row: Mapping[str, str]) -> tuple[str, ...]:
    """The same as ``StepCell.key``, from a row."""
    return tuple(row[name] for name in STEP_KEY)
