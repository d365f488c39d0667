"""What is asked of a device, each limit in one place: the command prints them, and the gpu tests hold them."""

from __future__ import annotations

OFF_THE_PROFILER = 0.03
"""How far device time may be from the profiler's span of the same kernels."""
LEAST_SPAN_S = 20e-6
"""Below it the span is not compared: launch gaps and the resolution of both clocks are a part of it."""

OFF_DO_BENCH = 0.03
"""How far an interleaved time may be from the median of ``triton.testing.do_bench``, with the same flush."""

LEAST_OF_PEAK = 0.75
MOST_OF_PEAK = 1.05
"""Of the computed peak bandwidth: what the floor reaches in the largest cell, and what no cold floor exceeds."""

NOISE = 0.005
"""The least difference that an A/A test must be able to tell."""

CHAIN_PASSES = 18
CHAIN_OF_FLOOR = 9.0
"""What the op chain of RMSNorm moves in bf16, forward: so many times x, and so many times the floor's bytes.

Eight ops of 36 bytes an element, where x has 2 and the floor moves 4.
"""
OFF_THE_BYTES = 0.25
"""How far the chain's time ÷ the fused kernel's may be from the same ratio of their bytes."""

LEAST_COUNTED, MOST_COUNTED = 0.5, 1.5
"""What hardware counters may see, ÷ the op bytes: less stays in the cache, more is read again."""

MOST_BYTES = 30 * 2**20
MOST_FILES = 8
"""What the command leaves."""
