"""Kernels and their times by torch.profiler: of the timed call and of nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from normbench.clock import Task
from normbench.profiling.quiet import profiler_lines_kept_back
from normbench.records import KernelTime, OpTraffic

ACTIVE = 3
"""Calls that are profiled, apart from their preparation."""

_LEAST_SHARE = 0.01
_ATEN = "aten::"
_MARK = "normbench: the timed call"
_COMPILED = ("cpp_fused", "graph_")


class ProfileError(Exception):
    """The profile is empty or partial: there are no times, and no zeros in their place."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One kernel or op that ran in a profiled call."""

    name: str
    seconds: float
    accumulates: bool = False


def profile_task(
    task: Task, *, synchronize: Callable[[], None], on_gpu: bool, names: Collection[str] = ()
) -> list[list[Seen]]:
    """What ran in each of ``ACTIVE`` calls, after one that is not looked at.

    Args:
        task: What is called.
        synchronize: Waits for the device.
        on_gpu: Look at the device's kernels rather than at ops.
        names: Of the ops that were counted.

    Raises:
        ProfileError: A call left no event, or calls differ in what ran.
    """
    look = _profiled_on_gpu if on_gpu else _profiled_on_cpu
    calls = look(task, synchronize, names)[1:]
    if len(calls) != ACTIVE or not all(calls):
        raise ProfileError(
            "no GPU events: CUPTI could not be used (usual in containers and on rented GPUs)"
            if on_gpu
            else "the profiler saw no op"
        )
    kinds = {tuple(sorted(seen.name for seen in call)) for call in calls}
    if len(kinds) > 1:
        raise ProfileError("the profile is partial: calls of the same kind ran different kernels")
    return calls


def _profiled_on_gpu(task: Task, synchronize: Callable[[], None], _names: Collection[str]) -> list[list[Seen]]:
    """A profile for each call, so that nothing else can be among what it saw."""
    return [_profiled_once(task, synchronize) for _ in range(1 + ACTIVE)]


def _profiled_once(task: Task, synchronize: Callable[[], None]) -> list[Seen]:
    with task.context():
        call = task.prepare()
        synchronize()
        activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
        with profiler_lines_kept_back(), profile(activities=activities) as recorded:
            result = call()
            synchronize()
        del result
    return list(seen_on_gpu(recorded.events()))


def _profiled_on_cpu(task: Task, synchronize: Callable[[], None], names: Collection[str]) -> list[list[Seen]]:
    """One profile, in which the calls are marked, each after a warming one as when it is timed.

    A profile's beginning allocates, after which an op meets memory that it has to ask the system for.
    """
    del synchronize
    with task.context(), profiler_lines_kept_back(), profile(activities=[ProfilerActivity.CPU]) as recorded:
        for _ in range(1 + ACTIVE):
            task.prepare()()
            call = task.prepare()
            with record_function(_MARK):
                result = call()
            del result
    marks = [event for event in recorded.events() if event.name == _MARK]
    return [list(seen_on_cpu(mark.cpu_children, names)) for mark in marks]


def seen_on_gpu(events: Iterable[Any]) -> Iterator[Seen]:
    """The device's kernels, in order."""
    for event in events:
        if str(event.device_type).endswith("CUDA"):
            yield Seen(name=event.name, seconds=event.time_range.elapsed_us() * 1e-6)


def seen_on_cpu(events: Iterable[Any], names: Collection[str]) -> Iterator[Seen]:
    """The ops that were counted, by their names, and compiled kernels, among some events and what is below them.

    What an op calls itself is part of it.
    An op that was not counted stands for itself only where none below it was: ``layer_norm`` only calls
    ``native_layer_norm``, which is the one that is dispatched.
    """
    for event in events:
        yield from _seen_below(event, names, accumulates=False)


def _seen_below(event: Any, names: Collection[str], *, accumulates: bool) -> Iterator[Seen]:
    accumulates |= "AccumulateGrad" in event.name
    name = _counted_name(event, names)
    if event.name.startswith((_ATEN, *_COMPILED)) and (name in names or not _is_any_below(event, names)):
        yield Seen(name=name, seconds=event.cpu_time_total * 1e-6, accumulates=accumulates)
        return
    for child in event.cpu_children:
        yield from _seen_below(child, names, accumulates=accumulates)


def _is_any_below(event: Any, names: Collection[str]) -> bool:
    return any(_counted_name(child, names) in names or _is_any_below(child, names) for child in event.cpu_children)


def _counted_name(event: Any, names: Collection[str]) -> str:
    """An op's name as it was counted.

    Where autograd sums two gradients it adds in place, except while ops are dispatched to be counted.
    """
    name: str = event.name.removeprefix(_ATEN)
    return name.removesuffix("_") if name not in names and name.removesuffix("_") in names else name


@cache
def _is_view(name: str) -> bool:
    """Whether an op of torch only makes another view of what is there."""
    packet = getattr(torch.ops.aten, name, None)
    return packet is not None and any(getattr(packet, overload).is_view for overload in packet.overloads())


def summed(calls: Sequence[Sequence[Seen]], ops: Mapping[str, OpTraffic]) -> tuple[KernelTime, ...]:
    """What ran, by name, as the mean over calls; the longest first.

    What moves no bytes and takes no time, such as the making of a view, is left out.

    Args:
        calls: What was seen in each.
        ops: Op bytes by name, which a kernel of the same name is given if it ran as often.
    """
    groups: dict[str, list[float]] = defaultdict(list)
    for call in calls:
        for seen in call:
            groups[seen.name].append(seen.seconds)
    total = sum(map(sum, groups.values()))
    found = []
    for name, seconds in groups.items():
        runs, op = len(seconds) / len(calls), ops.get(name)
        if op is None and (_is_view(name) or sum(seconds) < _LEAST_SHARE * total):
            continue
        moved = op.bytes if op is not None and op.calls == runs else None
        if len(groups) == 1 and runs == 1 and ops:  # one kernel moves what was counted, whatever it is called
            moved = sum(one.bytes for one in ops.values())
        found.append(KernelTime(name=name, calls=runs, seconds=sum(seconds) / len(calls), bytes=moved))
    return tuple(sorted(found, key=lambda kernel: -kernel.seconds))


def findings(calls: Sequence[Sequence[Seen]], ops: Iterable[OpTraffic], *, casts_expected: bool) -> tuple[str, ...]:
    """What ran in the timed region and has no place there."""
    found = []
    if any(seen.accumulates for call in calls for seen in call):
        found.append("a gradient was accumulated")
    if not casts_expected and any(op.name == "_to_copy" for op in ops):
        found.append("a tensor was cast, although everything has one dtype")
    return tuple(found)
