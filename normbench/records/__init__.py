"""Every data type, with its invariants: the record is the pivot that all reports are made from."""

from normbench.records.cases import (
    CELL_KEY,
    Cache,
    Case,
    Cell,
    DType,
    ImplementationInfo,
    Mode,
    Op,
    Operation,
)
from normbench.records.plan import Plan, Precision
from normbench.records.results import (
    Accuracy,
    CaseResult,
    CellRecords,
    Comparison,
    Estimate,
    Flag,
    Outcome,
    Reading,
    Reason,
    Sample,
    Status,
    Timing,
)
from normbench.records.run import DeviceInfo, Environment, Run, RunHeader

__all__ = [
    "CELL_KEY",
    "Accuracy",
    "Cache",
    "Case",
    "CaseResult",
    "Cell",
    "CellRecords",
    "Comparison",
    "DType",
    "DeviceInfo",
    "Environment",
    "Estimate",
    "Flag",
    "ImplementationInfo",
    "Mode",
    "Op",
    "Operation",
    "Outcome",
    "Plan",
    "Precision",
    "Reading",
    "Reason",
    "Run",
    "RunHeader",
    "Sample",
    "Status",
    "Timing",
]
