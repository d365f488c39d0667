"""Keeps back what a profiler cycle of torch writes to stderr: lines of its own, and a warning of some versions."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_NOISE = (b"USDT:", b"Memory block of unknown size was allocated before the profiling started")


@contextmanager
def profiler_lines_kept_back() -> Iterator[None]:
    """A context in which stderr, also of C++ code, is held; all but the profiler's lines is passed on at its end."""
    sys.stderr.flush()
    real = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            with warnings.catch_warnings():
                # torch 2.11 warns at each first cycle of a process that another one would clear this one's events.
                warnings.filterwarnings("ignore", message="Warning: Profiler clears events")
                yield
        finally:
            sys.stderr.flush()
            os.dup2(real, 2)
            held.seek(0)
            kept = [line for line in held if not any(noise in line for noise in _NOISE)]
            os.write(real, b"".join(kept)) if kept else None
            os.close(real)
