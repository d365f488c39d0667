"""Op bytes of eager code, exact on any device: what each dispatched op reads and writes, by its tensors' shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from normbench.records import OpTraffic

_ALLOCATES = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})
"""Move nothing: memory that is handed out is not touched."""

_FILLS = frozenset(
    {"zeros", "zeros_like", "ones", "ones_like", "full", "full_like", "new_zeros", "new_ones", "new_full"}
)
"""Write their result and read nothing: what they are given is only a shape."""

_OVERWRITES = frozenset({"copy_", "fill_", "zero_"})
"""Write into their first argument without reading it."""


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes down every op that moves bytes, as name, bytes read and bytes written."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ops: list[OpTraffic] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        named = kwargs or {}
        result = func(*args, **named)
        name = func.overloadpacket.__name__
        if not func.is_view and name not in _ALLOCATES:
            written_into = _written_into(func, args, named)
            read = () if name in _FILLS else _tensors((args, named))
            if name in _OVERWRITES:
                read = (t for t in read if not _is_among(t, written_into))
            fresh = [t for t in _tensors(result) if not _is_among(t, written_into)]
            moved = (_total(read), _total([*written_into, *fresh]))
            self.ops.append(
                OpTraffic(name=name, calls=1, bytes=sum(moved), read_bytes=moved[0], written_bytes=moved[1])
            )
        return result


def count(call: Callable[[], object]) -> tuple[OpTraffic, ...]:
    """What each op that ``call`` dispatches reads and writes, in order of first appearance.

    Views are free. An in-place op reads and writes its tensor once each. A tensor that an op is given twice is
    read once; of an expanded one the bytes behind it count.
    """
    counter = _Counter()
    with counter:
        call()
    return merged(counter.ops)


def merged(ops: Iterable[OpTraffic]) -> tuple[OpTraffic, ...]:
    """Ops of one name together, in order of first appearance."""
    groups: dict[str, list[OpTraffic]] = {}
    for op in ops:
        groups.setdefault(op.name, []).append(op)
    return tuple(
        OpTraffic(
            name=name,
            calls=sum(op.calls for op in group),
            bytes=sum(op.bytes for op in group),
            read_bytes=sum(op.read_bytes or 0 for op in group),
            written_bytes=sum(op.written_bytes or 0 for op in group),
        )
        for name, group in groups.items()
    )


def touched_bytes(tensor: torch.Tensor) -> int:
    """Bytes of memory behind a tensor: a dimension of stride 0, as ``expand`` makes it, is there once."""
    elements = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        elements *= size if stride or size == 0 else 1
    return elements * tensor.element_size()


def _written_into(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """The arguments that the op's schema says it writes into."""
    found = []
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = kwargs.get(argument.name) if position >= len(args) else args[position]
            found += list(_tensors(value))
    return found


def _tensors(value: object) -> Iterator[torch.Tensor]:
    return (leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor))


def _is_among(tensor: torch.Tensor, others: Iterable[torch.Tensor]) -> bool:
    return any(_memory(tensor) == _memory(other) for other in others)


def _memory(tensor: torch.Tensor) -> tuple[object, ...]:
    """What a tensor lies in: equal for two names of one thing."""
    return (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)


def _total(tensors: Iterable[torch.Tensor]) -> int:
    return sum(touched_bytes(tensor) for tensor in {_memory(t): t for t in tensors}.values())
