"""From what was asked for to a plan: defaults that fit the device, and the command that says it all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from normbench.cli.heading import command_line
from normbench.errors import UsageError
from normbench.records import Brought, Cache, DeviceInfo, DType, Mode, Plan, Precision


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the command line says; None or empty where it is silent."""

    widths: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    dtypes: tuple[DType, ...] = ()
    parameter_dtypes: tuple[DType | None, ...] = ()
    autocasts: tuple[DType | None, ...] = ()
    modes: tuple[Mode, ...] = ()
    caches: tuple[Cache, ...] = ()
    implementations: tuple[str, ...] = ()
    brought: tuple[Brought, ...] = ()
    baseline: str | None = None
    eps: float | None = None
    compile_mode: str | None = None
    graphs: bool | None = None
    profile: bool | None = None
    counters: bool | None = None
    no_isolate: bool | None = None
    case_timeout_s: float | None = None
    seed: int | None = None
    placements: int | None = None
    processes: int | None = None
    target: float | None = None
    max_seconds: float | None = None
    total_seconds: float | None = None
    fail_on: float | None = None
    quick: bool = False


_CPU = Request(
    widths=(256, 1024, 4096),
    rows=(512,),
    dtypes=(DType.FP32, DType.BF16),
    caches=(Cache.WARM,),
    processes=5,
    max_seconds=10.0,
)
_GPU = Request(
    widths=(256, 512, 1024, 2048, 4096, 8192, 16384),
    rows=(4096,),
    dtypes=(DType.BF16, DType.FP32),
    caches=(Cache.COLD,),
    processes=1,
    max_seconds=6.0,
)
_QUICK = Request(widths=(256, 1024), max_seconds=3.0, processes=1)
_QUICK_DTYPES = {"cpu": (DType.FP32,), "cuda": (DType.BF16,)}


def plan_for(request: Request, device: DeviceInfo, names: tuple[str, ...]) -> Plan:
    """The plan that answers a request on a device.

    Args:
        request: What was asked for.
        device: Decides the defaults: fewer and smaller cells on a CPU, no bfloat16 where it is emulated.
        names: Every implementation there is, in the order of reports; the floor first.

    Raises:
        UsageError: No plan can be like that.
    """
    try:
        return _plan(_filled(request, device), names)
    except ValueError as error:
        raise UsageError(str(error), hint="see normbench sweep --help") from error


def _plan(wanted: Request, names: tuple[str, ...]) -> Plan:
    floor = names[0]
    baseline = wanted.baseline or Plan.baseline
    chosen = wanted.implementations or names
    return Plan(
        widths=wanted.widths,
        rows=wanted.rows,
        dtypes=wanted.dtypes,
        parameter_dtypes=wanted.parameter_dtypes or (None,),
        autocasts=wanted.autocasts or (None,),
        modes=wanted.modes or Plan.modes,
        caches=wanted.caches,
        implementations=tuple(name for name in names if name in (floor, baseline, *chosen)),
        brought=tuple(one for one in wanted.brought if one.name in (baseline, *chosen)),
        baseline=baseline,
        floor=floor,
        eps=wanted.eps or Plan.eps,
        compile_mode=wanted.compile_mode or Plan.compile_mode,
        graphs=bool(wanted.graphs),
        profile=bool(wanted.profile),
        counters=bool(wanted.counters),
        isolate=not wanted.no_isolate,
        case_timeout_s=None if wanted.no_isolate else wanted.case_timeout_s or Plan.case_timeout_s,
        seed=wanted.seed or Plan.seed,
        precision=_precision(wanted),
        fail_on=wanted.fail_on,
    )


def _filled(request: Request, device: DeviceInfo) -> Request:
    defaults = _CPU if device.kind == "cpu" else _GPU
    if not device.native_bf16:
        defaults = replace(defaults, dtypes=(DType.FP32, DType.FP16))
    return _beside(spelled_out(request, device), defaults)


def spelled_out(request: Request, device: DeviceInfo) -> Request:
    """The same with what ``--quick`` stands for, where that was not said otherwise."""
    if not request.quick:
        return request
    dtypes = _QUICK_DTYPES[device.kind] if device.native_bf16 else (DType.FP16,)
    return _beside(request, replace(_QUICK, dtypes=dtypes))


def _beside(request: Request, defaults: Request) -> Request:
    """A request, and others' values where it is silent."""
    silent = {f.name: getattr(defaults, f.name) for f in fields(Request) if not getattr(request, f.name)}
    return replace(request, **silent)


def _precision(wanted: Request) -> Precision:
    default = Precision()
    return Precision(
        placements=wanted.placements or default.placements,
        target=wanted.target or default.target,
        max_seconds=wanted.max_seconds or default.max_seconds,
        total_seconds=wanted.total_seconds,
        processes=1 if wanted.no_isolate else wanted.processes or default.processes,
    )


def command(plan: Plan, device: str) -> tuple[str, ...]:
    """The command that repeats a plan, every default spelled out, and no path in it."""
    return command_line("sweep", device, options(plan))


def options(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The options that make a plan, with their values; a flag has none, and is there or not."""
    precision = plan.precision
    found: dict[str, tuple[object, ...]] = {
        "--widths": plan.widths,
        "--rows": plan.rows,
        "--dtypes": plan.dtypes,
        "--param-dtypes": tuple(dtype or "same" for dtype in plan.parameter_dtypes),
        "--autocasts": tuple(dtype or "off" for dtype in plan.autocasts),
        "--modes": plan.modes,
        "--caches": plan.caches,
        "--impls": words_of(plan.implementations, plan.brought),
        "--baseline": (plan.baseline,),
        "--eps": (number(plan.eps),),
        "--compile-mode": (plan.compile_mode,),
        "--seed": (plan.seed,),
        "--placements": (precision.placements,),
        "--processes": (precision.processes,),
        "--target": (number(precision.target),),
        "--max-seconds": (number(precision.max_seconds),),
    }
    found |= {f"--{name}": () for name in ("graphs", "profile", "counters") if getattr(plan, name)}
    if not plan.isolate:
        found["--no-isolate"] = ()
    if plan.case_timeout_s is not None:
        found["--case-timeout"] = (number(plan.case_timeout_s),)
    if precision.total_seconds is not None:
        found["--total-seconds"] = (number(precision.total_seconds),)
    if plan.fail_on is not None:
        found["--fail-on"] = (f"slower:{number(plan.fail_on)}",)
    return {name: tuple(str(value) for value in values) for name, values in found.items()}


def words_of(names: Sequence[str], brought: Sequence[Brought]) -> tuple[str, ...]:
    """The values of ``--impls`` that name these implementations: of what is brought where it lies."""
    places = {one.name: str(one) for one in brought}
    return tuple(places.get(name, name) for name in names)


def number(value: float) -> str:
    """As short as gives the same number again."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
