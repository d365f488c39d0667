from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from normbench.records import CELL_KEY, Estimate, NoiseFloor, Spent
from normbench.storage import CELLS, cell_columns
from tests.runs import around, make_cell, make_records

CELL = make_cell()
RECORDS = make_records(CELL)
NOISE = NoiseFloor(cell=CELL, implementation="nn-layernorm", ratio=around(1.001), fresh=False)

seconds = st.floats(min_value=0, max_value=1e300)
spents = st.builds(Spent, **{field.name: seconds for field in fields(Spent)})


@given(spents, st.none() | st.booleans(), st.floats(0.5, 2))
def test_what_a_cell_leaves_survives_a_round_trip(spent: Spent, fresh: bool | None, value: float) -> None:
    noise = None if fresh is None else replace(NOISE, ratio=Estimate(value=value, low=0.4, high=2.5), fresh=fresh)
    found = cell_columns.findings(cell_columns.row(replace(RECORDS, spent=spent, noise=noise)))

    assert (found.cell, found.spent, found.noise) == (CELL, spent, noise)


def test_the_columns_are_the_key_and_everything_that_time_is_spent_on() -> None:
    assert tuple(cell_columns.row(RECORDS)) == tuple(CELLS)
    assert tuple(CELLS)[: len(CELL_KEY)] == CELL_KEY
    assert {field.name for field in fields(Spent)} <= set(CELLS)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("timed_s", ""),
        ("timed_s", "long"),
        ("elapsed_s", "nan"),
        ("elapsed_s", "inf"),
        ("noise_ratio", "0"),
        ("noise_low", ""),
        ("noise_fresh", "perhaps"),
        ("width", "wide"),
    ],
)
def test_a_bad_field_is_refused(column: str, value: str) -> None:
    row = cell_columns.row(replace(RECORDS, noise=NOISE))

    with pytest.raises(ValidationError):
        cell_columns.findings({**row, column: value})
