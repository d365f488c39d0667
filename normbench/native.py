"""Which kernels of its own this torch replaces by others' (torch.backends.python_native), nn.RMSNorm's among them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch

_QUACK = "cutedsl"
"""The kernel language that torch's own copy of quack is registered under."""
_RMSNORM = "_fused_rms_norm"


def languages() -> tuple[str, ...]:
    """The kernel languages that torch found here; none in a torch that replaces no kernel."""
    return tuple(str(name) for name in getattr(_python_native(), "available_dsls", ()))


def runs_quack(device: torch.device, dtype: torch.dtype, parameter_dtype: torch.dtype, width: int) -> bool:
    """Whether torch runs its copy of quack's RMSNorm kernel in place of its own for rows like these.

    torch is asked: whether it has replaced the operation (it looks for nvidia-cutlass-dsl and apache-tvm-ffi of
    versions that it knows, and TORCH_DISABLE_NATIVE_JIT=1 keeps it from that), whether that is switched off, and
    then by its own condition for device, dtypes and width. A torch that has that condition elsewhere is taken at
    its word that the operation is replaced, where the dtypes are equal.
    """
    native = _python_native()
    if native is None or not _is_replaced(native):
        return False
    condition = _condition()
    if condition is None:
        return dtype is parameter_dtype
    x, gain = (
        torch.ones(1, width, device=device, dtype=dtype),
        torch.ones(width, device=device, dtype=parameter_dtype),
    )
    return bool(condition(x, [width], gain, 1e-6))


def _is_replaced(native: Any) -> bool:
    off = native.is_dsl_disabled(_QUACK) or native.is_operation_disabled(_RMSNORM)
    return not off and _RMSNORM in native.get_dsl_operations(_QUACK)


def _python_native() -> ModuleType | Any | None:
    return getattr(torch.backends, "python_native", None)


def _condition() -> Any | None:
    try:
        from torch._native.ops.norm.rmsnorm_impl import _fused_rms_norm_cond
    except ImportError:
        return None
    return _fused_rms_norm_cond
