"""The columns of the CSV files: what each holds, and how records become rows and rows records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import TypeAdapter

from normbench.records import (
    CELL_KEY,
    Advice,
    CaseResult,
    Cell,
    CellRecords,
    Comparison,
    Diagnosis,
    Estimate,
    ImplementationInfo,
    NoiseFloor,
    Run,
    RunHeader,
    Sample,
)
from normbench.traffic import floor_bytes

Row = dict[str, str]
"""A CSV row: text by column."""
Values = dict[str, object]
"""The same before it is text."""

CELL: dict[str, str] = {
    "operation": "what the cell computes: `norm`, or `add-norm`: a residual add and norm",
    "mode": "`forward`, `backward`, `inference` or `forward-backward`",
    "rows": "rows of x",
    "width": "columns of x: what is normalised over",
    "dtype": "dtype of x, y, dx and dy: `fp32`, `bf16` or `fp16`",
    "parameter_dtype": "dtype of gain and bias",
    "autocast": "autocast's dtype; empty where autocast is off",
    "cache": "`cold` or `warm`: the last-level cache when a sample starts",
}

RESULTS: dict[str, str] = {
    **CELL,
    "implementation": "`provider-op`",
    "status": "`ok`, `incorrect`, `unsupported`, `out_of_memory`, `timed_out`, `failed` or `not_run`",
    "reason": "why the status is not `ok`; empty where it is",
    "time_s": "seconds of one call: geometric mean over the middle half of the placements of the median over rounds",
    "time_low_s": "lower end of its interval",
    "time_high_s": "upper end of its interval",
    "wall_s": "seconds of one call as an eager loop feels it; on a CPU the same as `time_s`",
    "graph_s": "seconds of one replay of a captured CUDA graph; empty where not asked for or not capturable",
    "compile_s": "seconds of the first call with empty caches; empty for what is not compiled",
    "samples": "samples that `time_s` rests on",
    "placements": "placements that `time_s` rests on",
    "floor_bytes": "the least bytes that this formula must move in this mode",
    "floor_ratio": "time ÷ the floor's time, paired by round",
    "effective_bytes_per_s": "`floor_bytes` ÷ `time_s`: effective bandwidth, not counted traffic",
    "peak_memory_bytes": "peak memory above the inputs; empty where not measured",
    "saved_bytes": "bytes saved for backward; empty where not measured",
    "max_abs_error": "largest absolute error against the float64 reference, over outputs and gradients",
    "max_rel_error": "largest error relative to the terms that the element is summed up from",
    "out_dtype": "dtype of y (in mode `backward`, of the y it starts from, and so of dy)",
    "flags": "what is odd, separated by `;`",
    "op": "the formula: `copy`, `layernorm` or `rmsnorm`; of `add-norm` with `add-` before it",
    "provider": "who computes it",
    "floor_ratio_low": "lower end of the interval of `floor_ratio`",
    "floor_ratio_high": "upper end of the interval of `floor_ratio`",
    "processes": "processes that the placements were spread over: where there are several, intervals are over them",
    "throttled_samples": "samples of `samples` that were taken while the GPU said that it ran throttled",
    "other_cores": "cores that other programs kept busy while the cell was measured; empty on a GPU",
    "dynamic": "`false` for a compiled implementation: its graph is static; empty for others",
}

COMPARISONS: dict[str, str] = {
    **CELL,
    "baseline": "what is compared with",
    "candidate": "what is compared",
    "speedup": "baseline time ÷ candidate time: above 1 the candidate is faster",
    "speedup_low": "lower end of its interval",
    "speedup_high": "upper end of its interval",
    "outcome": "`faster`, `slower`, `same` or `undecided`",
    "reason": "reason code of the outcome",
}

SAMPLES: dict[str, str] = {
    **CELL,
    "implementation": "`provider-op`",
    "process": "number of the process",
    "placement": "number of the placement within the process",
    "round": "number of the round within the placement",
    "position": "position within the round",
    "calls": "calls that were timed together",
    "seconds": "seconds of those calls",
    "clock": "`wall`, `cuda-event`, `cuda-graph`, or `cuda-event-unheld` where the device waited for the host",
    "sm_clock_hz": "clock of the GPU in this round; empty where not read",
    "temperature_c": "temperature of the GPU in this round; empty where not read",
    "throttle_reasons": "why the GPU ran slower in this round, separated by `;`",
}

_DIAGNOSIS = TypeAdapter(Diagnosis)
_NOISE = TypeAdapter(NoiseFloor)
_RESULT = TypeAdapter(CaseResult)
_COMPARISON = TypeAdapter(Comparison)
_NUMBERS_OF_RESULT = ("compile_s", "peak_memory_bytes", "saved_bytes")


def text(value: object) -> str:
    """A value as a CSV field: empty for None, numbers unrounded, ``true`` and ``false``."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def result_rows(records: CellRecords, header: RunHeader) -> Iterator[Row]:
    """The rows of ``results.csv`` for one cell."""
    return (as_row(_result_values(r, header.info(r.case.implementation))) for r in records.results)


def comparison_rows(comparisons: Iterable[Comparison]) -> Iterator[Row]:
    """The rows of ``comparisons.csv``, or of ``swaps.csv``."""
    return (as_row(_comparison_values(comparison)) for comparison in comparisons)


def sample_rows(records: CellRecords) -> Iterator[Row]:
    """The rows of ``samples.csv`` for one cell."""
    return (as_row({**cell_values(records.cell), **sample_values(sample)}) for sample in records.samples)


def as_dictionary(run: Run) -> dict[str, list[Values]]:
    """Results, comparisons and swaps as a program reads them: numbers as numbers, None for what is absent."""
    return {
        "results": [_result_values(r, run.header.info(r.case.implementation)) for r in run.results],
        "comparisons": [_comparison_values(comparison) for comparison in run.comparisons],
        "swaps": [_comparison_values(swap) for swap in run.swaps],
    }


def diagnosis_as_dictionary(diagnosis: Diagnosis, advice: Sequence[Advice]) -> dict[str, object]:
    """A diagnosis and its advice as a program reads them: each A/A test with what cannot be told apart."""
    found: dict[str, object] = _DIAGNOSIS.dump_python(diagnosis, mode="json")
    found["noise"] = [
        {**_NOISE.dump_python(noise, mode="json"), "least_difference": noise.least_difference}
        for noise in diagnosis.noise
    ]
    return {**found, "advice": [vars(item) for item in advice]}


def diagnosis_of(dictionary: Mapping[str, object]) -> Diagnosis:
    """The diagnosis that :func:`diagnosis_as_dictionary` made this of; ValidationError where it is none."""
    return _DIAGNOSIS.validate_python(dictionary)


def result(row: Mapping[str, str]) -> CaseResult:
    """A result from its row; pydantic's ValidationError where a field is not what it should be."""
    timing = None
    if row["time_s"]:
        timing = {
            "time_s": estimate(row, "time_s", "time_low_s", "time_high_s"),
            "wall_s": row["wall_s"] or None,
            "graph_s": row["graph_s"] or None,
            "floor_ratio": estimate(row, "floor_ratio", "floor_ratio_low", "floor_ratio_high"),
            "samples": row["samples"],
            "placements": row["placements"],
            "processes": row["processes"],
            "throttled_samples": row["throttled_samples"],
            "other_cores": row["other_cores"] or None,
        }
    accuracy = None
    if row["max_abs_error"]:
        accuracy = {name: row[name] or None for name in ("max_abs_error", "max_rel_error", "out_dtype")}
    return _RESULT.validate_python(
        {
            "case": {"cell": cell(row), "implementation": row["implementation"]},
            "status": row["status"],
            "reason": row["reason"] or None,
            "timing": timing,
            "accuracy": accuracy,
            **{name: row[name] or None for name in _NUMBERS_OF_RESULT},
            "flags": split_flags(row["flags"]),
        }
    )


def comparison(row: Mapping[str, str]) -> Comparison:
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


def cell(row: Mapping[str, str]) -> dict[str, str | None]:
    """The fields of a row's cell, not yet validated."""
    return {name: row[name] or None for name in CELL_KEY}


def key(row: Mapping[str, str]) -> tuple[str, ...]:
    """The same as ``Cell.key``, from a row."""
    return tuple(row[name] for name in CELL_KEY)


def as_row(values: Values) -> Row:
    """A row as text."""
    return {name: text(value) for name, value in values.items()}


def cell_values(cell: Cell) -> Values:
    """The columns of a cell's key."""
    return {name: getattr(cell, name) for name in CELL_KEY}


def _comparison_values(comparison: Comparison) -> Values:
    return {
        **cell_values(comparison.cell),
        "baseline": comparison.baseline,
        "candidate": comparison.candidate,
        **estimate_values(comparison.speedup, "speedup", "speedup_low", "speedup_high"),
        "outcome": comparison.outcome,
        "reason": comparison.reason,
    }


def _result_values(result: CaseResult, info: ImplementationInfo) -> Values:
    timing, accuracy = result.timing, result.accuracy
    least = floor_bytes(info.op, result.case.cell)
    return {
        **cell_values(result.case.cell),
        "implementation": info.name,
        "status": result.status,
        "reason": result.reason,
        **estimate_values(timing.time_s if timing else None, "time_s", "time_low_s", "time_high_s"),
        "wall_s": timing.wall_s if timing else None,
        "graph_s": timing.graph_s if timing else None,
        "compile_s": result.compile_s,
        "samples": timing.samples if timing else None,
        "placements": timing.placements if timing else None,
        "floor_bytes": least,
        **estimate_values(
            timing.floor_ratio if timing else None, "floor_ratio", "floor_ratio_low", "floor_ratio_high"
        ),
        "effective_bytes_per_s": least / timing.time_s.value if timing else None,
        "peak_memory_bytes": result.peak_memory_bytes,
        "saved_bytes": result.saved_bytes,
        "max_abs_error": accuracy.max_abs_error if accuracy else None,
        "max_rel_error": accuracy.max_rel_error if accuracy else None,
        "out_dtype": accuracy.out_dtype if accuracy else None,
        "flags": ";".join(result.flags),
        "op": info.op,
        "provider": info.provider,
        "processes": timing.processes if timing else None,
        "throttled_samples": timing.throttled_samples if timing else None,
        "other_cores": timing.other_cores if timing else None,
        "dynamic": "false" if info.compiled else None,
    }


def sample_values(sample: Sample) -> Values:
    """The columns of a sample besides those of its cell."""
    names = ("implementation", "process", "placement", "round", "position", "calls", "seconds", "clock")
    reading = sample.reading
    return {
        **{name: getattr(sample, name) for name in names},
        "sm_clock_hz": reading.sm_clock_hz if reading else None,
        "temperature_c": reading.temperature_c if reading else None,
        "throttle_reasons": ";".join(reading.throttle_reasons) if reading else None,
    }


def estimate_values(found: Estimate | None, value: str, low: str, high: str) -> Values:
    """The columns of an estimate and of the ends of its interval, by these names."""
    if found is None:
        return {value: None, low: None, high: None}
    return {value: found.value, low: found.low, high: found.high}


def estimate(row: Mapping[str, str], value: str, low: str, high: str) -> dict[str, str | None] | None:
    """The fields of an estimate, not yet validated; None where it has no value."""
    return {"value": row[value], "low": row[low] or None, "high": row[high] or None} if row[value] else None


def split_flags(joined: str) -> list[str]:
    """The flags in a field."""
    return joined.split(";") if joined else []
