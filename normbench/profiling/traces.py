"""Traces for Perfetto and TensorBoard: a few steps each, packed, with nothing private in them."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from pathlib import Path
from typing import Any

from torch.profiler import ProfilerActivity, profile, schedule

from normbench import private
from normbench.clock import Task
from normbench.profiling.kernels import ProfileError
from normbench.profiling.quiet import profiler_lines_kept_back

STEPS = 3


def trace(task: Task, *, on_gpu: bool) -> bytes:
    """A trace of ``STEPS`` calls after a warming one, as JSON packed by gzip.

    Raises:
        ProfileError: Not all of them are in it.
    """
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    plan = schedule(wait=0, warmup=1, active=STEPS, repeat=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        with (
            profiler_lines_kept_back(),
            profile(activities=activities, schedule=plan, record_shapes=True, profile_memory=True) as recorded,
        ):
            for _ in range(1 + STEPS):
                task.run()
                recorded.step()
            recorded.export_chrome_trace(str(path))
        text = path.read_text(encoding="utf-8")
    steps = len(set(re.findall(r'"ProfilerStep#\d+"', text)))
    if steps != STEPS:
        raise ProfileError(f"the trace holds {steps} steps, not {STEPS}")
    return gzip.compress(scrubbed(text).encode(), mtime=0)


def scrubbed(text: str) -> str:
    """A trace without anything private (:mod:`normbench.private`): a run folder is made to be published."""
    data = json.loads(text)
    for key in ("traceName", "host_name", "hostname"):
        data.pop(key, None)
    texts: dict[str, str] = {}  # most texts occur hundreds of times

    def plain(value: Any) -> Any:
        if isinstance(value, str):
            if value not in texts:
                texts[value] = private.scrubbed(value)
            return texts[value]
        if isinstance(value, dict):
            return {name: plain(part) for name, part in value.items()}
        return [plain(part) for part in value] if isinstance(value, list) else value

    return json.dumps(plain(data), ensure_ascii=False)


def name(implementation: str, cell_slug: str) -> str:
    """Where a trace lies below ``traces/``: TensorBoard shows each folder as a run, and each file as a worker."""
    return f"{implementation}/{cell_slug}.1.pt.trace.json.gz"
