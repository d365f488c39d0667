from __future__ import annotations

from typing import Any

import pytest

from normbench.limits import Limits
from normbench.records import Cache, DType, Mode, Status
from tests.helpers import make_cell, make_result

NAMES = ("one", "other")


def after(status: Status, **cell: Any) -> Limits:
    """What is known once ``one`` has ended so in a cell of 12×64, unless told."""
    limits = Limits()
    limits.learn([make_result("one", make_cell(**cell), status), make_result("other", make_cell(**cell))])
    return limits


@pytest.mark.parametrize("status", [Status.OUT_OF_MEMORY, Status.TIMED_OUT])
@pytest.mark.parametrize("size", [{"width": 128}, {"rows": 13}, {"rows": 24, "width": 65}])
def test_who_had_too_little_memory_or_time_is_not_attempted_at_a_larger_size(
    status: Status, size: dict[str, int]
) -> None:
    found = after(status).beyond(make_cell(**size), NAMES)
    assert list(found) == ["one"]
    assert found["one"].status is status
    assert found["one"].reason == f"not attempted: {status} at 12×64 already"


@pytest.mark.parametrize(
    "cell",
    [
        {"width": 32},
        {"rows": 6, "width": 128},
        {"rows": 24, "width": 32},
        {"cache": Cache.COLD},
        {"width": 128, "mode": Mode.BACKWARD},
        {"width": 128, "dtype": DType.BF16},
        {"width": 128, "parameter_dtype": DType.BF16},
        {"width": 128, "autocast": DType.BF16},
    ],
)
def test_a_smaller_cell_or_one_of_another_kind_is_attempted(cell: dict[str, Any]) -> None:
    assert after(Status.OUT_OF_MEMORY).beyond(make_cell(**cell), NAMES) == {}


@pytest.mark.parametrize("status", [Status.FAILED, Status.INCORRECT, Status.UNSUPPORTED])
def test_what_may_be_otherwise_at_another_size_is_attempted(status: Status) -> None:
    assert after(status).beyond(make_cell(width=128), NAMES) == {}


def test_only_who_takes_part_is_told_of() -> None:
    assert after(Status.OUT_OF_MEMORY).beyond(make_cell(width=128), ["other"]) == {}
