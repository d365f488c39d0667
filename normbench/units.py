"""The only place that turns numbers into text: one format for each kind of quantity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext

ABSENT = "-"
"""What is shown where there is no value."""

_TIME = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES = ((2**50, "PiB"), (2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


def significant(value: float, digits: int = 3) -> str:
    """``value`` in plain decimals (no exponent) with ``digits`` significant digits."""
    if value == 0:
        return "0"
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])  # after rounding: 9.999 becomes 10.0
    decimals = digits - 1 - exponent
    return f"{round(value, decimals):.{max(decimals, 0)}f}"


def _unit(value: float, units: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    """The largest unit in which ``value``, as it will be written, is at least 1; else the smallest."""
    return next((pair for pair in units if abs(float(significant(value / pair[0]))) >= 1), units[-1])


def duration(seconds: float | None, digits: int = 3) -> str:
    """A measured time, with three significant digits unless told: ``12.3 µs``."""
    if seconds is None:
        return ABSENT
    scale, unit = _unit(seconds, _TIME)
    return f"{significant(seconds / scale, digits)} {unit}"


def time_left(seconds: float) -> str:
    """A waiting time in whole seconds and minutes: ``1 min 05 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def age(seconds: float) -> str:
    """How long something has run, by its largest units: ``12 s``, ``12 min``, ``3 h 20 min``."""
    whole = max(0, int(seconds))  # a clock that was set back would make it negative
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes} min" if minutes else f"{whole} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def count(number: int, what: str) -> str:
    """So many of something: ``1 cell``, ``3 processes``, ``2 properties``."""
    return f"{number} {what}" if number == 1 else f"{number} {_plural(what)}"


def others(number: int, what: str) -> str:
    """So many besides: ``another run``, ``2 other runs``."""
    return f"another {what}" if number == 1 else f"{number} other {_plural(what)}"


def _plural(what: str) -> str:
    if what.endswith("y"):
        return f"{what[:-1]}ies"
    return f"{what}es" if what.endswith(("s", "ch")) else f"{what}s"


def size(count: float | None) -> str:
    """A number of bytes in binary units, which are named as such: ``8.00 MiB``."""
    if count is None:
        return ABSENT
    scale, unit = _unit(count, _BYTES)
    return f"{significant(count / scale)} {unit}" if scale > 1 else f"{count:.0f} B"


def bandwidth(bytes_per_s: float | None, digits: int = 3) -> str:
    """Bytes a second in decimal units, as data sheets give them: ``41.2 GB/s``."""
    return ABSENT if bytes_per_s is None else f"{significant(bytes_per_s / 1e9, digits)} GB/s"


def ratio(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """A ratio, with its interval if there is one: ``1.05 [1.04, 1.06]``.

    Two decimals, more where the interval is so narrow that they would hide it.
    """
    if value is None:
        return ABSENT
    if low is None or high is None:
        return f"{value:.2f}"
    decimals = 2 if high - low >= 0.01 else 3
    return f"{value:.{decimals}f} [{low:.{decimals}f}, {high:.{decimals}f}]"


def times(value: float, digits: int = 3) -> str:
    """A factor: ``1.52×``, ``12.0×``."""
    return f"{significant(value, digits)}×"


def as_long(value: float, low: float | None = None, high: float | None = None) -> str:
    """How many times as long something takes, to a thousandth: ``1.087``, or ``1.087 [1.079, 1.095]``."""
    if low is not None and high is not None:
        return f"{as_long(value)} [{as_long(low)}, {as_long(high)}]"
    return f"{value:.3f}" if value < 10 else significant(value)


def measured(seconds: float, low: float | None, high: float | None) -> str:
    """A measured time with its interval in the same unit: ``12.3 ms [12.1, 12.5]``; alone where there is none."""
    if low is None or high is None:
        return duration(seconds)
    scale, unit = _unit(seconds, _TIME)
    decimals = len(significant(seconds / scale).partition(".")[2])
    value, *ends = (f"{part / scale:.{decimals}f}" for part in (seconds, low, high))
    return f"{value} {unit} [{', '.join(ends)}]"


def longer(seconds: float, low: float, high: float) -> str:
    """By how much longer something takes, with its interval in the same unit: ``+1.23 ms [-0.10, +2.60]``."""
    largest = max(map(abs, (seconds, low, high)))
    scale, unit = _unit(largest, _TIME)
    decimals = len(significant(largest / scale).partition(".")[2])
    value, *ends = (f"{part / scale + 0.0:+.{decimals}f}" for part in (seconds, low, high))
    return f"{value} {unit} [{', '.join(ends)}]"


def bits(value: float | None, *, signed: bool = False) -> str:
    """Bits per byte, or a difference of them, to a ten-thousandth: ``2.1034``, ``+0.0013``."""
    if value is None:
        return ABSENT
    return f"{value:+.4f}" if signed else f"{value:.4f}"


def whole(number: float) -> str:
    """A whole number with its thousands apart: ``3,740,160``."""
    return f"{round(number):,}"


def rate(per_s: float | None) -> str:
    """How many a second, with three significant digits and its thousands apart: ``12,300``, ``9.87``."""
    if per_s is None:
        return ABSENT
    text = significant(per_s)
    return text if "." in text else f"{int(text):,}"


def percent(fraction: float) -> str:
    """A fraction as a percentage: ``2 %``, ``0.25 %``."""
    if abs(fraction) >= 0.1:
        return f"{round(fraction * 100)} %"
    text = significant(fraction * 100, 2)
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def scientific(value: float | None) -> str:
    """A small number such as an error: ``3.1e-07``."""
    return ABSENT if value is None else f"{value:.1e}"


def ulps(value: float) -> str:
    """A distance in units in the last place: ``0.62``, ``<0.1``, ``130``, ``3e+05``, ``inf``."""
    if 0 < value < 0.1:
        return "<0.1"
    return significant(value, 2) if value < 1000 else f"{value:.0e}"


def figures(values: Sequence[float]) -> tuple[str, ...]:
    """Numbers to be read against each other, all in one form: six decimals, ``-1.224744``.

    Where the largest is below 0.001 or from ten million on, six decimals and an exponent: ``1.000000e-08``. What is
    exactly 0 is ``0.000000`` in both.
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    kind = "f" if largest == 0 or 1e-3 <= largest < 1e7 else "e"
    return tuple(_figure(value, kind) for value in values)


def _figure(value: float, kind: str) -> str:
    if not math.isfinite(value):
        return _no_number(value)
    text = _half_up(value, f".6{kind if value else 'f'}")
    return text.removeprefix("-") if float(text) == 0 else text


def plain(value: float, digits: int = 6) -> str:
    """A number as it is typed, with at most six significant digits unless told: ``2``, ``-3.5``, ``1e-06``.

    Below a million the digits before the point are there in any case.
    """
    if not math.isfinite(value):
        return _no_number(value)
    whole = int(_half_up(value, f".{digits - 1}e").partition("e")[2]) + 1
    kept = max(digits, whole) if whole <= 6 else digits
    return f"{float(_half_up(value, f'.{kept - 1}e')) + 0.0:.{kept}g}"  # what is added makes 0 of -0


def _no_number(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{value:f}"


def _half_up(value: float, form: str) -> str:
    """A number rounded half away from 0, as a page's script does: Python's own formats round half to even."""
    with localcontext(rounding=ROUND_HALF_UP):
        mantissa, _, exponent = format(Decimal(value), form).partition("e")
    return f"{mantissa}e{int(exponent):+03d}" if exponent else mantissa


def join(texts: Sequence[str]) -> str:
    """Several texts as read in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]])) if texts else ABSENT


def numbers(values: Sequence[int]) -> str:
    """Several whole numbers as read in a sentence: ``256, 512 and 4096``."""
    return join([str(value) for value in values])
