"""What user code could change of torch for everyone: read, compared, and put back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
import torch._dynamo
import torch.utils._device

_TINY = 5e-324
"""The smallest double: anything that is done to it gives zero where the processor flushes denormals."""


@dataclass(frozen=True, kw_only=True)
class _Knob:
    """One setting: its name in reasons, how to read it, how to set it."""

    name: str
    read: Callable[[], object]
    write: Callable[[Any], object]


def _matmul_precision() -> str:
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # torch refuses to say where its older and its newer settings were mixed
        return "mixed"


def _set_matmul_precision(value: str) -> None:
    with suppress(RuntimeError):
        torch.set_float32_matmul_precision(value)


def _deterministic() -> str:
    if not torch.are_deterministic_algorithms_enabled():
        return "default"
    return "warn" if torch.is_deterministic_algorithms_warn_only_enabled() else "error"


def _stance() -> str:
    return str(getattr(getattr(torch._dynamo.eval_frame, "_stance", None), "stance", "default"))


def _set_compile_disabled(value: bool) -> None:  # noqa: FBT001 - one of several setters
    torch._dynamo.config.disable = value


def _autocast(kind: str) -> tuple[bool, torch.dtype]:
    return torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)


def _set_autocast(kind: str, value: tuple[bool, torch.dtype]) -> None:
    enabled, dtype = value
    torch.set_autocast_enabled(kind, enabled)
    torch.set_autocast_dtype(kind, dtype)


def _default_device() -> object:
    # What ``torch.get_default_device`` looks at; that one makes a tensor to find out.
    return getattr(torch.utils._device, "CURRENT_DEVICE", None)


def _set_default_device(value: Any) -> None:
    torch.set_default_device(value)
    # A thread puts back only what itself has set, and autograd runs a GPU's backward in one of its own.
    setattr(torch.utils._device, "CURRENT_DEVICE", value)  # noqa: B010 - no public name


def _stream() -> object:
    # Asked before CUDA is used, torch would initialise it.
    return torch.cuda.current_stream() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]


def _set_stream(value: Any) -> None:
    torch.cuda.set_stream(torch.cuda.default_stream() if value is None else value)


_KNOBS = (
    _Knob(name="threads", read=torch.get_num_threads, write=torch.set_num_threads),
    _Knob(name="default dtype", read=torch.get_default_dtype, write=torch.set_default_dtype),
    _Knob(name="default device", read=_default_device, write=_set_default_device),
    _Knob(name="gradients", read=torch.is_grad_enabled, write=torch._C._set_grad_enabled),
    _Knob(name="anomaly detection", read=torch.is_anomaly_enabled, write=torch.set_anomaly_enabled),
    _Knob(name="float32 matmul precision", read=_matmul_precision, write=_set_matmul_precision),
    _Knob(name="deterministic algorithms", read=_deterministic, write=torch.set_deterministic_debug_mode),
    _Knob(name="flushing denormals", read=lambda: _TINY * 1.0 == 0.0, write=torch.set_flush_denormal),
    _Knob(name="autocast on a CPU", read=lambda: _autocast("cpu"), write=lambda v: _set_autocast("cpu", v)),
    _Knob(name="autocast on a GPU", read=lambda: _autocast("cuda"), write=lambda v: _set_autocast("cuda", v)),
    _Knob(name="torch.compile's stance", read=_stance, write=torch.compiler.set_stance),
    _Knob(name="torch.compile disabled", read=lambda: torch._dynamo.config.disable, write=_set_compile_disabled),
    _Knob(name="CUDA stream", read=_stream, write=_set_stream),
)

_FUNCTIONS: tuple[tuple[ModuleType, str], ...] = (
    (time, "perf_counter"),
    (torch.cuda, "synchronize"),
    (torch.cuda, "Event"),
    (torch.autograd, "grad"),
)
"""What times and calls: whoever puts another in its place decides what is measured."""


@dataclass(frozen=True, kw_only=True)
class TorchState:
    """torch's settings at one moment, and the functions that measuring relies on."""

    values: tuple[object, ...]
    functions: tuple[object, ...]

    @classmethod
    def now(cls) -> TorchState:
        """What is set now; reading it takes some microseconds."""
        return cls(
            values=tuple(knob.read() for knob in _KNOBS),
            functions=tuple(getattr(module, name) for module, name in _FUNCTIONS),
        )

    def restore(self) -> str | None:
        """Put everything back as it was; what had changed, such as ``threads 2 → 1``, None where nothing had."""
        now = TorchState.now()
        if now == self:
            return None
        return ", ".join((*self._restored_values(now), *self._restored_functions(now)))

    def _restored_values(self, now: TorchState) -> Iterator[str]:
        for knob, was, found in zip(_KNOBS, self.values, now.values, strict=True):
            if was != found:
                knob.write(was)
                yield f"{knob.name} {_say(was)} → {_say(found)}"

    def _restored_functions(self, now: TorchState) -> Iterator[str]:
        for (module, name), was, found in zip(_FUNCTIONS, self.functions, now.functions, strict=True):
            if was is not found:
                setattr(module, name, was)
                yield f"{module.__name__}.{name} replaced"


def _say(value: object) -> str:
    if isinstance(value, tuple):
        enabled, dtype = value
        return f"{_say(enabled)} ({_say(dtype)})"
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value).removeprefix("torch.")
