"""Checks Liger's own kernels on a CPU, in Triton's interpreter, and prints what was found as JSON.

A program of its own, since Triton decides whether it interprets when it is first imported. Three gaps of its
interpreter are filled: it hands floating-point arguments over as Python's, where the compiler makes float32 of them;
it has no libdevice; and it keeps bfloat16 as integers, and multiplies those.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import torch

from normbench.entrants import Entrant, admit
from normbench.implementations import Setting, liger
from normbench.inputs import draw
from normbench.records import DType, Mode
from tests.fakes import FakeDevice, anywhere
from tests.helpers import CPU, EPS, make_cell

LARGE_EPS = 0.3
DTYPES = (*((dtype, dtype) for dtype in DType), (DType.BF16, DType.FP32), (DType.FP16, DType.FP32))
OF_LIGER = {one.name: one for one in (liger.RMSNORM, liger.LAYERNORM, liger.ADD_RMSNORM)}
RMSNORM, LAYERNORM, ADD_RMSNORM = OF_LIGER


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What is asked of whom; ``silent`` where it does not say that it writes into anything."""

    name: str
    mode: Mode = Mode.FORWARD_BACKWARD
    width: int = 96
    dtype: DType = DType.FP32
    parameter_dtype: DType = DType.FP32
    eps: float = EPS
    silent: bool = False


@dataclass(frozen=True, kw_only=True)
class Found:
    """What came out: a reason where it was refused."""

    reason: str | None
    flags: tuple[str, ...] = ()


def trials() -> Iterator[Trial]:
    """Every mode; forward and backward in every format and width and with a large eps; what is not declared."""
    for name in OF_LIGER:
        for mode, dtype in product((Mode.FORWARD, Mode.BACKWARD, Mode.INFERENCE), (DType.FP32, DType.BF16)):
            yield Trial(name=name, mode=mode, dtype=dtype, parameter_dtype=dtype)
        for (dtype, gain), (width, eps) in product(DTYPES, ((96, EPS), (1000, LARGE_EPS))):
            yield Trial(name=name, width=width, dtype=dtype, parameter_dtype=gain, eps=eps)
        for width in (1, liger.WIDEST, liger.WIDEST + 1):
            yield Trial(name=name, width=width)
        for mode in Mode:
            yield Trial(name=name, mode=mode, silent=True)


def fill_gaps() -> None:
    """Let Triton's interpreter do what the compiler does with what Liger's kernels ask for."""
    import triton.language as tl
    from liger_kernel.ops import fused_add_rms_norm, layer_norm, rms_norm
    from triton.runtime import interpreter

    convert, compute = interpreter._implicit_cvt, interpreter.InterpreterBuilder.binary_op

    def converted(argument: Any) -> Any:
        if not isinstance(argument, float):
            return convert(argument)
        return tl.tensor(interpreter.TensorHandle(np.array([argument], dtype=np.float32), tl.float32), tl.float32)

    def computed(builder: Any, one: Any, other: Any, op: Callable[..., np.ndarray]) -> Any:
        if one.dtype.scalar is not tl.bfloat16:
            return compute(builder, one, other, op)
        return interpreter.TensorHandle(to_bits(op(from_bits(one.data), from_bits(other.data))), tl.bfloat16)

    interpreter._implicit_cvt, interpreter.InterpreterBuilder.binary_op = converted, computed
    for module in (fused_add_rms_norm, layer_norm, rms_norm):
        module.rsqrt = lambda x: tl.rsqrt(x)  # looked up when called: the interpreter replaces it then


def from_bits(bits: np.ndarray) -> np.ndarray:
    """bfloat16 as the interpreter keeps it, in float32."""
    return torch.from_numpy(bits.astype(np.uint16).view(np.int16)).view(torch.bfloat16).float().numpy()


def to_bits(values: np.ndarray) -> np.ndarray:
    """And back, rounded to the nearest."""
    return torch.from_numpy(values).bfloat16().view(torch.int16).numpy().view(np.uint16)


def tried(trial: Trial) -> Found:
    implementation = anywhere(OF_LIGER[trial.name])
    cell = make_cell(
        rows=2 if trial.width >= liger.WIDEST else 5,
        mode=trial.mode,
        width=trial.width,
        dtype=trial.dtype,
        parameter_dtype=trial.parameter_dtype,
        operation=implementation.op.operation,
    )
    asked = replace(implementation, mutates=False) if trial.silent else implementation
    found = admit(asked, Setting(cell=cell, eps=trial.eps), draw(cell, 0, CPU), FakeDevice())
    if isinstance(found, Entrant):
        return Found(reason=None, flags=found.admission.flags)
    return Found(reason=f"{found.status}: {found.reason}")


def main() -> None:
    """Print a list of pairs: what was asked, what was found."""
    assert os.environ.get("TRITON_INTERPRET") == "1"
    warnings.filterwarnings("ignore", category=RuntimeWarning)  # numpy's, of what masks leave out
    fill_gaps()
    json.dump([[asdict(trial), asdict(tried(trial))] for trial in trials()], sys.stdout)


if __name__ == "__main__":
    main()
