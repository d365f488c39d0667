from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from normbench.records import Status
from normbench.storage import samples
from tests.runs import TIMES, make_plan, make_run, write_run

CASES = [result.case for result in make_run(make_plan(widths=(64, 128))).results]


def chunk(*rows: tuple[int, float]) -> pd.DataFrame:
    """Samples: each a case by its number, and its seconds."""
    return pd.DataFrame(rows, columns=["case", "seconds"])


def test_the_samples_of_a_case_are_gathered_over_chunks() -> None:
    found = samples.spreads([chunk((0, 1.0), (2, 5.0)), chunk((0, 3.0), (0, 2.0))], CASES)

    assert found.keys() == {CASES[0], CASES[2]}
    assert (found[CASES[0]].samples, found[CASES[0]].median_s) == (3, 2.0)
    assert (found[CASES[2]].samples, found[CASES[2]].median_s) == (1, 5.0)


def test_without_samples_nobody_has_a_spread() -> None:
    assert samples.spreads([], CASES) == {}


@pytest.mark.parametrize("is_packed", [False, True])
def test_the_spreads_of_a_run_are_those_of_the_samples_in_its_folder(tmp_path: Path, is_packed: bool) -> None:
    folder = write_run(tmp_path / "run", times={**TIMES, "eager-rmsnorm": Status.FAILED})
    if is_packed:
        folder.compress_samples()
    cases = [result.case for result in folder.load().results]
    found = samples.spreads(samples.chunks(folder.path, cases, clock="wall"), cases)

    assert {case.implementation: (one.samples, one.median_s) for case, one in found.items()} == {
        "copy": (4, pytest.approx(1e-6)),
        "nn-layernorm": (4, pytest.approx(4e-6)),
        "nn-rmsnorm": (4, pytest.approx(2e-6)),
    }


def test_samples_exist_packed_or_not_and_not_where_somebody_left_them_out(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    assert samples.exist(folder.path)

    folder.compress_samples()
    assert samples.exist(folder.path)

    (folder.path / "samples.csv.gz").unlink()
    assert not samples.exist(folder.path)
