"""normbench: which normalization, in which implementation, should this config use?

Importing it imports nothing else: a name that it offers is looked up when it is first used. docs/library.md has
examples.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from normbench.api import (
        compare,
        load,
        plan,
        profile,
        read_plan,
        sweep,
        verdict_markdown,
        write_plan,
        write_reports,
    )
    from normbench.errors import BusyError, IncompleteError, NormbenchError, StorageError, UsageError
    from normbench.records import (
        Accuracy,
        Brought,
        Cache,
        Case,
        CaseProfile,
        CaseResult,
        Cell,
        Comparison,
        CountedTraffic,
        DeviceInfo,
        DType,
        Environment,
        Estimate,
        Flag,
        ImplementationInfo,
        KernelTime,
        Memory,
        Mode,
        NoiseFloor,
        Op,
        Operation,
        OpTraffic,
        Outcome,
        Plan,
        Precision,
        Reason,
        Resumption,
        Run,
        RunHeader,
        Source,
        Spent,
        Status,
        Timing,
    )

__all__ = [
    "Accuracy",
    "Brought",
    "BusyError",
    "Cache",
    "Case",
    "CaseProfile",
    "CaseResult",
    "Cell",
    "Comparison",
    "CountedTraffic",
    "DType",
    "DeviceInfo",
    "Environment",
    "Estimate",
    "Flag",
    "ImplementationInfo",
    "IncompleteError",
    "KernelTime",
    "Memory",
    "Mode",
    "NoiseFloor",
    "NormbenchError",
    "Op",
    "OpTraffic",
    "Operation",
    "Outcome",
    "Plan",
    "Precision",
    "Reason",
    "Resumption",
    "Run",
    "RunHeader",
    "Source",
    "Spent",
    "Status",
    "StorageError",
    "Timing",
    "UsageError",
    "compare",
    "load",
    "plan",
    "profile",
    "read_plan",
    "sweep",
    "verdict_markdown",
    "write_plan",
    "write_reports",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    where = "errors" if name.endswith("Error") else "records" if name[0].isupper() else "api"
    globals()[name] = found = getattr(import_module(f"normbench.{where}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
