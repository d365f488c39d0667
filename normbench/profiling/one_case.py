"""Runs exactly one case's timed call in an NVTX range, for a counter that watches this process from outside."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch
from pydantic import TypeAdapter

from normbench import modes
from normbench.device import CudaDevice, detect, make_flush
from normbench.entrants import operands_for
from normbench.implementations import Implementation, Located, Setting, catalog
from normbench.inputs import draw
from normbench.profiling.counters import RANGE
from normbench.records import Cache, Case

_CASE = TypeAdapter(Case)
_LOCATED = TypeAdapter(Located | None)
_WARMING_CALLS = 3


def arguments(case: Case, located: Located | None, *, seed: int, setting: Setting) -> list[str]:
    """The command line that runs ``case``, whose implementation's code may lie somewhere else."""
    what = (_CASE.dump_json(case).decode(), _LOCATED.dump_json(located).decode())
    words = {"--eps": repr(setting.eps), "--compile-mode": setting.compile_mode, "--device": setting.device}
    return [*what, "--seed", str(seed), *(word for option in words.items() for word in option)]


def main(words: Sequence[str] | None = None) -> None:
    """Warm the case up, make its cache state, and run it once in the range."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", type=_CASE.validate_json)
    parser.add_argument("located", type=_LOCATED.validate_json)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--eps", type=float, required=True)
    parser.add_argument("--compile-mode", required=True)
    parser.add_argument("--device", required=True)
    asked = parser.parse_args(words)
    device, case = detect(asked.device), asked.case
    values = draw(case.cell, asked.seed, device.torch_device)
    implementation = _implementation(case, asked.located)
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


def _implementation(case: Case, located: Located | None) -> Implementation:
    return catalog().with_brought([located] if located else []).by_name(case.implementation).loaded()


if __name__ == "__main__":
    main()
