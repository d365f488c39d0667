"""The run folder: written a cell at a time, validated when read."""

from normbench.storage.columns import COMPARISONS, RESULTS, SAMPLES, as_dictionary, diagnosis_as_dictionary
from normbench.storage.folder import RunFolder, load, read_header

__all__ = [
    "COMPARISONS",
    "RESULTS",
    "SAMPLES",
    "RunFolder",
    "as_dictionary",
    "diagnosis_as_dictionary",
    "load",
    "read_header",
]
