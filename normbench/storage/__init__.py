"""The run folder: written a cell at a time, validated when read."""

from normbench.storage.cell_columns import CELLS
from normbench.storage.check_columns import CHECKS
from normbench.storage.check_folder import CheckFolder, holds_check, load_check
from normbench.storage.columns import (
    COMPARISONS,
    RESULTS,
    SAMPLES,
    as_dictionary,
    diagnosis_as_dictionary,
    diagnosis_of,
)
from normbench.storage.files import make_folder, new_path, write_bytes, write_text
from normbench.storage.folder import RunFolder, load
from normbench.storage.header import read_header
from normbench.storage.profile_columns import KERNELS, TRAFFIC, profiles_of
from normbench.storage.step_columns import STEP_CELLS, STEP_COMPARISONS, STEP_SAMPLES, STEPS
from normbench.storage.step_folder import StepFolder, holds_steps, load_steps, read_step_header
from normbench.storage.training_columns import TRAINING
from normbench.storage.writer import only_writer

__all__ = [
    "CELLS",
    "CHECKS",
    "COMPARISONS",
    "KERNELS",
    "RESULTS",
    "SAMPLES",
    "STEPS",
    "STEP_CELLS",
    "STEP_COMPARISONS",
    "STEP_SAMPLES",
    "TRAFFIC",
    "TRAINING",
    "CheckFolder",
    "RunFolder",
    "StepFolder",
    "as_dictionary",
    "diagnosis_as_dictionary",
    "diagnosis_of",
    "holds_check",
    "holds_steps",
    "load",
    "load_check",
    "load_steps",
    "make_folder",
    "new_path",
    "only_writer",
    "profiles_of",
    "read_header",
    "read_step_header",
    "write_bytes",
    "write_text",
]
