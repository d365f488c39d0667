"""Op bytes of compiled code: what Inductor itself counts for each kernel it generates."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch._inductor import compile_fx, metrics
from torch._inductor import config as inductor_config

from normbench.records import OpTraffic


@contextmanager
def counting() -> Iterator[None]:
    """A context in which whatever is compiled is counted: caches are off, since a hit counts nothing.

    Inductor counts only where its ``inductor_metrics`` log is on; what it would print is kept back.
    """
    log = compile_fx.inductor_metrics_log
    before = (log.level, log.propagate, list(log.handlers))
    log.setLevel(logging.INFO)
    log.propagate, log.handlers = False, [logging.NullHandler()]
    torch._dynamo.reset()
    try:
        with inductor_config.patch(force_disable_caches=True), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="dynamo_pgo force disabled")
            yield
    finally:
        log.setLevel(before[0])
        log.propagate, log.handlers = before[1], before[2]
        torch._dynamo.reset()


def count(call: Callable[[], object]) -> tuple[OpTraffic, ...]:
    """What the kernels that ``call`` makes Inductor generate read and write together; nothing without any.

    To be used within ``counting``. Inductor keeps whole fours of bytes for each kernel; what that loses of its
    exact sum is given to the last one.
    """
    metrics.reset()
    call()
    kernels = [(_name(node, number), 4 * elements) for number, (node, elements) in enumerate(metrics.nodes_num_elem)]
    lost = metrics.num_bytes_accessed - sum(size for _name, size in kernels)
    metrics.reset()
    found = [OpTraffic(name=name, calls=1, bytes=size) for name, size in kernels]
    return (*found[:-1], replace(found[-1], bytes=found[-1].bytes + lost)) if found else ()


def _name(node: Any, number: int) -> str:
    """What was fused into a kernel, as far as its nodes tell."""
    try:
        parts = [origin.name for part in node.get_nodes() for origin in part.node.get_origins()]
    except (AttributeError, TypeError):
        parts = []
    names = ", ".join(dict.fromkeys(part.rstrip("_0123456789") for part in parts))
    return f"kernel {number}: {names}" if names else f"kernel {number}"
