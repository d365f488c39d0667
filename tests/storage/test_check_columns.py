"""A check becomes a row and a row the same check; a row that is none names its field."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normbench.errors import StorageError
from normbench.records import Check, DType, Gap, Mark, Output, Property
from normbench.storage import CHECKS
from normbench.storage.check_columns import Checks, check, row
from normbench.storage.table import Table
from normbench.storage.texts import cleaned_field
from tests.checked import make_check, make_check_header, make_check_run, make_gap, make_spot

distances = st.floats(min_value=0, allow_nan=False)
gaps = st.builds(Gap, ulp=distances, relative=distances, of_allowed=distances)
dtypes = st.sampled_from(DType)
spots = st.builds(
    make_spot,
    rows=st.integers(0, 10**18),
    width=st.integers(1, 10**18),
    dtype=dtypes,
    parameter_dtype=dtypes,
    autocast=st.none() | dtypes,
)
reasons = st.text(min_size=1).map(cleaned_field).filter(bool)


@st.composite
def some_checks(draw: st.DrawFn) -> Check:
    mark, coarse, gap = draw(st.sampled_from(Mark)), draw(st.booleans()), draw(st.none() | gaps)
    if mark is Mark.PASS and gap is not None:  # which is within what is allowed, or coarsely within something
        of_allowed = gap.of_allowed if coarse else min(gap.of_allowed, 1.0)
        gap = Gap(ulp=min(gap.ulp, 1e300), relative=gap.relative, of_allowed=of_allowed)
    return Check(
        implementation="nn-rmsnorm",
        property=draw(st.sampled_from(Property)),
        spot=draw(spots),
        output=draw(st.none() | st.sampled_from(Output)),
        mark=mark,
        reason=None if mark is Mark.PASS else draw(reasons),
        gap=gap,
        coarse=mark is Mark.PASS and coarse,
        out_dtype=draw(st.none() | dtypes),
    )


@given(some_checks())
def test_every_check_is_read_as_it_was_written_infinite_figures_too(found: Check) -> None:
    assert list(row(found)) == list(CHECKS)
    assert check(row(found)) == found


def test_what_is_infinite_is_written_as_inf_and_what_is_absent_as_nothing() -> None:
    fields = row(make_check(mark=Mark.FAIL, gap=make_gap(inf, 4.0, inf)))

    assert [fields[name] for name in ("max_ulp", "max_rel_error", "max_of_allowed")] == ["inf"] * 3
    assert row(make_check(output=None))["max_ulp"] == ""


def refused(tmp_path: Path, **fields: str) -> str:
    """What is said of a good row with these fields."""
    table = Table(tmp_path / "check.csv", CHECKS)
    table.replace([row(make_check(coarse=True)) | fields])
    with pytest.raises(StorageError) as caught:
        list(table.read(Checks(make_check_header())))
    assert caught.value.message.startswith(f"{tmp_path}/check.csv: line 2: ")
    return caught.value.message.partition("line 2: ")[2]


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("implementation", "zz-new", "implementation: 'zz-new' is not in check.json"),
        ("property", "outlier", "property: 'outlier' is not in check.json"),
        ("property", "beauty", "property: Input should be"),
        ("rows", "-1", "spot: there is no x of -1 × 3"),
        ("rows", "", "spot.rows: "),
        ("rows", "05", "rows: '05' is written as '5'"),
        ("width", "3.0", "width: '3.0' is written as '3'"),
        ("width", "5", "width: '5' is not in check.json"),
        ("dtype", "fp64", "spot.dtype: "),
        ("dtype", "bf16", "dtype: 'bf16' is not in check.json"),
        ("autocast", "off", "spot.autocast: "),
        ("output", "dy", "output: "),
        ("mark", "PASS", "mark: "),
        ("reason", "for no reason", "whoever passes has no reason to give"),
        ("max_ulp", "nan", "gap: not a distance: nan"),
        ("max_ulp", "inf", "what is off by inf ulp, 0.1 times what is allowed, does not pass"),
        ("max_ulp", "-1", "gap: not a distance: -1.0"),
        ("max_ulp", "", "max_ulp: is empty, and max_rel_error is not"),
        ("max_of_allowed", "", "max_of_allowed: is empty, and max_ulp is not"),
        ("max_rel_error", "much", "gap.relative: "),
        ("coarse", "True", "coarse: 'True' is neither true nor false"),
        ("coarse", "", "coarse: '' is neither true nor false"),
        ("mark", "fail", "whoever passes has no reason"),
        ("out_dtype", "float", "out_dtype: "),
    ],
)
def test_a_row_that_is_none_names_its_field(tmp_path: Path, field: str, text: str, said: str) -> None:
    assert said in refused(tmp_path, **{field: text})


def test_a_row_that_stands_twice_is_refused(tmp_path: Path) -> None:
    table = Table(tmp_path / "check.csv", CHECKS)
    table.replace(row(found) for found in [*make_check_run().checks, make_check_run().checks[0]])

    with pytest.raises(StorageError, match=r"line 86: row: eager-layernorm normal-values 5×3 fp32 y stands twice"):
        list(table.read(Checks(make_check_header())))
