"""Runs exactly one case's timed call in an NVTX range, for a counter that watches this process from outside."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import torch
from pydantic import TypeAdapter

from normbench import modes
from normbench.device import CudaDevice, detect, make_flush
from normbench.entrants import operands_for
from normbench.implementations import Setting, by_name
from normbench.inputs import draw
from normbench.profiling.counters import RANGE
from normbench.records import Cache, Case

_CASE = TypeAdapter(Case)
_WARMING_CALLS = 3


def arguments(case: Case, *, seed: int, eps: float, compile_mode: str, device: str) -> list[str]:
    """The command line that runs ``case``."""
    text = json.dumps(_CASE.dump_python(case, mode="json"))
    return [text, "--seed", str(seed), "--eps", repr(eps), "--compile-mode", compile_mode, "--device", device]


def main(words: Sequence[str] | None = None) -> None:
    """Warm the case up, make its cache state, and run it once in the range."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", type=lambda text: _CASE.validate_python(json.loads(text)))
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--eps", type=float, required=True)
    parser.add_argument("--compile-mode", required=True)
    parser.add_argument("--device", required=True)
    asked = parser.parse_args(words)
    device, case = detect(asked.device), asked.case
    values = draw(case.cell, asked.seed, device.torch_device)
    implementation = by_name(case.implementation)
    setting = Setting(cell=case.cell, eps=asked.eps, compile_mode=asked.compile_mode, device=asked.device)
    operands = operands_for(implementation, case.cell, values)
    forward = implementation.build(setting)(operands.gain, operands.bias)
    task = modes.task(
        implementation.name, case.cell, forward, operands, fresh_copies=implementation.writes_in(case.cell.mode)
    )
    for _ in range(_WARMING_CALLS):
        task.run()
    with task.context():
        call = task.prepare()
        if case.cell.cache is Cache.COLD:
            make_flush(device)()
        device.synchronize()
        nvtx = device.cuda.nvtx if isinstance(device, CudaDevice) else torch.cuda.nvtx
        with nvtx.range(RANGE) if isinstance(device, CudaDevice) else torch.profiler.record_function(RANGE):
            call()
            device.synchronize()


if __name__ == "__main__":
    main()
