"""Where the bytes go: op bytes, kernels and their times, memory, traces. No time of a comparison is taken here."""
