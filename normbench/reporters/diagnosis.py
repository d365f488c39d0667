"""What ``doctor`` found out, on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from normbench import units
from normbench.legible import one_line
from normbench.records import (
    Ability,
    Advice,
    Conditions,
    CopyBandwidth,
    DeviceInfo,
    Diagnosis,
    Environment,
    KernelChoice,
    NoiseFloor,
)
from normbench.reporters import sheet
from normbench.reporters.sheet import Sheet
from normbench.reporters.terminal import say

Row = tuple[str, str | None]

_READABLE = 40
"""Where values would have fewer columns beside their names, each follows its name."""


def show(diagnosis: Diagnosis, advice: Sequence[Advice], out: Console) -> None:
    """Print a diagnosis, the advice last, since that is what remains on the screen."""
    _section(out, "Device", [*_device_rows(diagnosis.device), *_condition_rows(diagnosis.conditions)])
    _section(out, "Software", _software_rows(diagnosis.environment))
    _section(out, "What nn.RMSNorm runs", [_kernel_row(choice) for choice in diagnosis.rmsnorm])
    _section(
        out,
        "What works",
        [("torch.compile", _ability(diagnosis.compiling)), ("hardware counters", _ability(diagnosis.counters))],
    )
    clocks = [
        (f"clock {t.clock}", f"resolution {units.duration(t.resolution_s)}, overhead {units.duration(t.overhead_s)}")
        for t in diagnosis.timers
    ]
    _section(out, "What can be seen", [*clocks, ("copying", _copying(diagnosis.bandwidth))])
    _noise(out, diagnosis.noise)
    _advice(out, advice)


def _section(out: Console, title: str, rows: Iterable[Row]) -> None:
    shown = [(f"  {name}", value) for name, value in rows if value is not None]
    say(out, title, "bold")
    names = max((cell_len(name) for name, _ in shown), default=0)
    if out.width - names < _READABLE:
        for name, value in shown:
            say(out, f"{name}: {value}")
    else:
        out.print(_beside(shown, names))
    out.print()


def _beside(rows: Iterable[tuple[str, str]], names: int) -> Table:
    """Values beside their names, each in as many lines as it takes."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True, width=names)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(one_line(name)), Text(one_line(value)))
    return table


def _device_rows(device: DeviceInfo) -> list[Row]:
    return [
        ("name", device.name),
        ("memory", units.size(device.memory_bytes)),
        ("last-level cache", units.size(device.cache_bytes) if device.cache_bytes else None),
        ("compute capability", ".".join(map(str, device.capability)) if device.capability else None),
        ("threads of torch", str(device.threads) if device.threads else None),
        ("bfloat16", "native" if device.native_bf16 else "emulated"),
    ]


def _condition_rows(now: Conditions) -> list[Row]:
    power = None if now.power_w is None else f"{now.power_w:.0f} W"
    if now.power_limit_w is not None:
        default = f", came with {now.default_power_limit_w:.0f} W" if now.default_power_limit_w else ""
        power = f"{power or 'unknown'} now, cap {now.power_limit_w:.0f} W{default}"
    return [
        ("cores of the machine", None if now.cores is None else str(now.cores)),
        ("other programs", None if now.other_cores is None else f"keep {now.other_cores:.2f} cores busy"),
        ("governor", now.governor),
        ("virtual machine", _yes_no(now.virtual)),
        ("clock", _clock(now.sm_clock_hz, now.max_sm_clock_hz)),
        ("memory clock", _clock(now.memory_clock_hz, None)),
        ("temperature", None if now.temperature_c is None else f"{now.temperature_c:.0f} °C"),
        ("power", power),
        ("throttled", ", ".join(now.throttle_reasons) or None),
        ("persistence mode", _yes_no(now.persistence)),
        ("ECC", _yes_no(now.ecc)),
        ("MIG", _yes_no(now.mig)),
        ("other processes on it", None if now.other_processes is None else str(now.other_processes)),
        ("other runs of normbench", None if now.other_runs is None else str(now.other_runs)),
    ]


def _software_rows(software: Environment) -> list[Row]:
    return [
        ("normbench", software.normbench),
        ("torch", software.torch),
        ("CUDA", software.cuda),
        ("driver", software.driver),
        ("Triton", software.triton),
        ("Python", f"{software.python}, {software.platform}"),
        *software.packages,
        ("kernel languages of torch", ", ".join(software.native_dsls) or "none that could replace its kernels"),
    ]


def _kernel_row(choice: KernelChoice) -> Row:
    gain = "" if choice.dtype == choice.parameter_dtype else f", gain {choice.parameter_dtype}"
    what = "one fused kernel" if choice.fused else f"a chain of {len(choice.ops)} ops"
    seen = choice.kernels or choice.ops
    return f"{choice.dtype}{gain}", f"{what} ({', '.join(seen)}): {choice.why}"


def _ability(ability: Ability) -> str:
    return f"{'yes' if ability.works else 'no'}: {ability.detail}"


def _copying(found: CopyBandwidth | None) -> str:
    if found is None:
        return "not measured: too little memory"
    text = (
        f"{units.bandwidth(found.measured_bytes_per_s)} of effective bandwidth, {units.size(found.bytes_moved)} moved"
    )
    if found.computed_bytes_per_s is None:
        return f"{text}; the device's properties do not tell what to expect"
    share = units.percent(found.measured_bytes_per_s / found.computed_bytes_per_s)
    return f"{text}: {share} of the {units.bandwidth(found.computed_bytes_per_s)} computed from its properties"


def _noise(out: Console, floors: Sequence[NoiseFloor]) -> None:
    if not floors:
        say(out, "No noise floor: too little memory for any of its cells.")
        out.print()
        return
    sheet.show(
        Sheet(
            title=f"Noise floor: {floors[0].implementation} against itself, where the truth is 1",
            heads=("cell", "against", "ratio", "cannot be told apart"),
            rows=[_noise_row(noise) for noise in floors],
            wrapped=frozenset({3}),
        ),
        out,
    )


def _noise_row(noise: NoiseFloor) -> tuple[str, ...]:
    ratio = noise.ratio
    assert ratio.low is not None
    assert ratio.high is not None
    return (
        f"{noise.cell.size} {noise.cell.dtype} {noise.cell.mode}",
        "a fresh copy" if noise.fresh else "itself",
        f"{ratio.value:.4f} [{ratio.low:.4f}, {ratio.high:.4f}]",
        f"differences below {units.percent(noise.least_difference)}",
    )


def _advice(out: Console, advice: Sequence[Advice]) -> None:
    if not advice:
        say(out, "Nothing to mend: this is a good place to measure.", "bold green")
        return
    say(out, f"{units.count(len(advice), 'thing')} to know", "bold")
    for item in advice:
        say(out, f"  ! {item.problem}", "yellow")
        say(out, f"    {item.remedy}")


def _yes_no(value: bool | None) -> str | None:  # noqa: FBT001 - it is the value
    return None if value is None else "yes" if value else "no"


def _clock(now_hz: float | None, most_hz: float | None) -> str | None:
    if now_hz is None:
        return None
    return f"{now_hz / 1e6:.0f} MHz" + (f" of {most_hz / 1e6:.0f} MHz" if most_hz else "")
