"""From the words of options to a request: what ``sweep`` and ``profile`` have in common."""

from __future__ import annotations

from normbench.cli import bringing, options
from normbench.cli.plan import Request
from normbench.errors import UsageError
from normbench.implementations import catalog
from normbench.implementations.compiled import COMPILE_MODES
from normbench.records import LEAST_PLACEMENTS, Cache, DType, Mode, Precision

_MOST_PROCESSES = 40


def request_for(
    *,
    widths: list[str],
    rows: list[str],
    dtypes: list[str],
    param_dtypes: list[str],
    autocasts: list[str],
    impls: list[str],
    modes: list[str],
    caches: list[str],
    baseline: str | None,
    eps: float | None,
    compile_mode: str | None,
    seed: int | None,
    max_seconds: float | None,
    placements: int | None = None,
    processes: int | None = None,
    target: str | None = None,
    total_seconds: float | None = None,
    fail_on: str | None = None,
    graphs: bool | None = None,
    profile: bool | None = None,
    counters: bool | None = None,
    no_isolate: bool | None = None,
    case_timeout: float | None = None,
    quick: bool | None = None,
) -> Request:
    """What the options ask for.

    Raises:
        UsageError: Names the option, the value and what is allowed.
    """
    if no_isolate and (case_timeout is not None or (processes or 1) > 1):
        raise UsageError(
            "--no-isolate: one process alone can't be ended or be several",
            hint="leave --case-timeout and --processes out",
        )
    there = catalog().names
    named = bringing.impls("--impls", impls, there)
    if counters and profile is False:
        raise UsageError(
            "--counters: they are of a profile, and --no-profile asks for none", hint="leave one of them out"
        )
    return Request(
        widths=options.sizes("--widths", widths),
        rows=options.sizes("--rows", rows),
        dtypes=options.many("--dtypes", dtypes, options.dtype),
        parameter_dtypes=options.many(
            "--param-dtypes", param_dtypes, lambda o, v: options.optional_dtype(o, v, "same")
        ),
        autocasts=options.many("--autocasts", autocasts, autocast),
        modes=options.many("--modes", modes, lambda option, value: options.choice(option, Mode, value)),
        caches=options.many("--caches", caches, lambda option, value: options.choice(option, Cache, value)),
        implementations=named.names,
        brought=named.brought,
        baseline=None if baseline is None else bringing.baseline(baseline, there, named),
        eps=None if eps is None else options.above_zero("--eps", eps),
        compile_mode=None if compile_mode is None else _compile_mode(compile_mode),
        graphs=graphs,
        profile=True if counters else profile,
        counters=counters,
        no_isolate=no_isolate,
        case_timeout_s=None if case_timeout is None else options.above_zero("--case-timeout", case_timeout),
        seed=seed,
        placements=None if placements is None else least_placements(placements),
        processes=None if processes is None else _processes(processes),
        target=None if target is None else options.fraction("--target", target),
        max_seconds=None if max_seconds is None else options.above_zero("--max-seconds", max_seconds),
        total_seconds=None if total_seconds is None else options.above_zero("--total-seconds", total_seconds),
        fail_on=None if fail_on is None else options.slower_than("--fail-on", fail_on) or Precision.margin,
        quick=bool(quick),
    )


def _compile_mode(value: str) -> str:
    return options.one_of("--compile-mode", COMPILE_MODES, value, "mode")


def least_placements(value: int) -> int:
    """A number of placements that gives an interval."""
    if value < LEAST_PLACEMENTS:
        hint = f"allowed: {LEAST_PLACEMENTS} and more, since an interval needs that many"
        raise UsageError(f"--placements: {value} is too few", hint=hint)
    return value


def _processes(value: int) -> int:
    if value != 1 and not LEAST_PLACEMENTS <= value <= _MOST_PROCESSES:
        hint = f"allowed: 1, and {LEAST_PLACEMENTS} to {_MOST_PROCESSES}, since the interval is taken over processes"
        raise UsageError(f"--processes: {value} is not possible", hint=hint)
    return value


def autocast(option: str, value: str) -> DType | None:
    """A dtype that autocast takes, None for ``off``."""
    found = options.optional_dtype(option, value, "off")
    if found is DType.FP32:
        raise UsageError(f"{option}: {value!r} is no autocast dtype", hint="allowed: off, bf16, fp16")
    return found
