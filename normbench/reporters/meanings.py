"""What flags and reason codes mean, and what would settle what is undecided: one sentence each."""

from __future__ import annotations

from normbench.records import Flag, Reason

FLAGS: dict[Flag, str] = {
    Flag.FEW_SAMPLES: "fewer placements than asked for fitted into the time budget",
    Flag.DRIFTED: "times drifted by more than 10 % while the cell was measured; ratios are of pairs timed within "
    "moments, which a slow drift leaves alone",
    Flag.BIMODAL: "the samples fall into two clusters",
    Flag.THROTTLED: "the GPU lowered its clock in at least one round",
    Flag.LAUNCH_BOUND: "the eager loop takes over 1.5 times the device time, or twice the bytes take hardly longer: "
    "launching dominates, not bandwidth",
    Flag.QUEUE_NOT_HELD: "the device waited for the host in some samples",
    Flag.COMPOSITE: "torch has no fused RMSNorm kernel for this device and these dtypes: a chain of ops ran",
    Flag.VENDORED_QUACK: "torch ran its copy of quack's kernel in place of its own (TORCH_DISABLE_NATIVE_JIT=1 keeps "
    "it from that): this and quack-rmsnorm are one kernel, as far as their versions are one",
    Flag.COARSE_SUMS: "the gradient of gain or bias was summed in half precision: far less exact than in float32",
    Flag.BUSY_MACHINE: "other programs kept over a tenth of the cores busy: a parallel implementation suffers most",
    Flag.CACHE_RESIDENT: "the tensors fit into the last-level cache, or it moved more bytes a second than the floor "
    "does at the largest cell: cache, not memory",
    Flag.NEAR_CACHE_SIZE: "the tensors take a quarter to twice of the last-level cache: a rerun may differ by more "
    "than the interval says",
    Flag.BELOW_FLOOR: "over 5 % faster than the floor, which moves no more than it must: one of them was disturbed",
    Flag.EMULATED_DTYPE: "the device has no native bfloat16",
    Flag.IN_PLACE: "writes into its inputs by design",
    Flag.REUSED_OUTPUT: "each call overwrites the results of the one before by design, as CUDA graphs do",
    Flag.SHARED_INPUTS: "memory was short: implementations shared x and dy",
    Flag.SHARED_DEVICE: "another program was on the GPU, or another run of normbench on the device",
    Flag.DIVERGED: "of a training step: the loss is no finite number after two of them (fp16 without autocast: "
    "AdamW's eps is 0 there), so that it was timed on what is none either",
}
"""What each flag means, for readers."""

REASONS: dict[Reason, str] = {
    Reason.INTERVAL_EXCLUDES_1: "the interval excludes 1",
    Reason.INTERVAL_INSIDE_MARGIN: "the interval lies inside the margin",
    Reason.INTERVAL_TOO_WIDE: "the interval is too wide",
    Reason.EFFECT_BELOW_MARGIN: "different, but by no more than the margin",
    Reason.TOO_FEW_PLACEMENTS: "too few placements for an interval",
    Reason.NO_BASELINE: "the baseline has no time here",
    Reason.NO_CANDIDATE: "it has no time here",
    Reason.OUT_DTYPE_DIFFERS: "its output has another dtype than the baseline's",
}
"""What each reason code means, for readers."""

REMEDIES: dict[Reason, str] = {
    Reason.INTERVAL_TOO_WIDE: "more time (--max-seconds), more --processes on a CPU, or a quieter machine",
    Reason.EFFECT_BELOW_MARGIN: "nothing has to: they differ by less than what was said to matter",
    Reason.TOO_FEW_PLACEMENTS: "more time (--max-seconds), or no --quick",
    Reason.NO_BASELINE: "a --baseline that runs here",
    Reason.NO_CANDIDATE: "the reason under Without a time",
    Reason.OUT_DTYPE_DIFFERS: "the same dtypes: another --autocast or --param-dtype",
}
"""What would decide a comparison that is undecided for this reason."""
