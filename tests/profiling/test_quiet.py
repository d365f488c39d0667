"""What a profiler says of itself stays back, and nothing else does."""

from __future__ import annotations

import warnings

import pytest

from normbench.profiling.quiet import profiler_lines_kept_back


def test_the_warning_of_a_cleared_cycle_is_kept_back_and_any_other_is_not(recwarn: pytest.WarningsRecorder) -> None:
    with profiler_lines_kept_back():
        warnings.warn("Warning: Profiler clears events at the end of each cycle.", stacklevel=1)
        warnings.warn("another", stacklevel=1)

    assert [str(each.message) for each in recwarn] == ["another"]
