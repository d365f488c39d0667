"""What a case needs beyond its inputs: saved for the backward, peak, net allocation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from normbench.clock import Task
from normbench.device import CudaDevice, Device
from normbench.profiling.quiet import profiler_lines_kept_back


def saved(
    forward: Callable[[], torch.Tensor | tuple[torch.Tensor, ...]], inputs: Iterable[torch.Tensor]
) -> tuple[int, int]:
    """Bytes that a forward keeps for its backward: those for nothing else, and those alive anyway.

    Each piece of memory counts once, however many views of it are saved. Alive anyway are the inputs, the
    parameters and what it returns.
    """
    kept: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        returned = forward()
    results = (returned,) if isinstance(returned, torch.Tensor) else returned
    alive = {t.untyped_storage().data_ptr() for t in (*inputs, *results)}
    return (
        sum(size for pointer, size in kept.items() if pointer not in alive),
        sum(size for pointer, size in kept.items() if pointer in alive),
    )


def peak_and_net(task: Task, device: Device) -> tuple[int, int]:
    """The most bytes allocated at once in one call above what was there, and what it leaves allocated."""
    with task.context():
        call = task.prepare()
        return _on_gpu(call, device.cuda) if isinstance(device, CudaDevice) else _on_cpu(call)


def _on_gpu(call: Callable[[], object], cuda: Any) -> tuple[int, int]:
    cuda.synchronize()
    before = cuda.memory_allocated()
    cuda.reset_peak_memory_stats()
    result = call()
    cuda.synchronize()
    found = (int(cuda.max_memory_allocated() - before), int(cuda.memory_allocated() - before))
    del result
    return found


def _on_cpu(call: Callable[[], object]) -> tuple[int, int]:
    """From the profiler's memory events: the peak is the running maximum, the net their sum."""
    with profiler_lines_kept_back(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        result = call()
    del result
    assert recorded.profiler is not None
    results = recorded.profiler.kineto_results
    assert results is not None
    events = [event for event in results.events() if event.name() == "[memory]"]
    changes = [int(event.nbytes()) for event in sorted(events, key=lambda event: event.start_ns())]
    return max([0, *accumulate(changes)]), sum(changes)
