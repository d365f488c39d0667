"""A disk that is full, a folder that may not be written, an interrupt: at each change in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from normbench.errors import NormbenchError, StorageError, UsageError
from normbench.storage import RunFolder, load
from tests.runs import make_header
from tests.storage.operations import FULL, READ_ONLY, REFUSED, failing, listed, watched
from tests.sweeping import THREE, contents

pytestmark = pytest.mark.usefixtures("undelayed")

FIRST, SECOND, THIRD = THREE.cells


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What is in the folder of a sweep that nobody disturbed."""
    path = tmp_path_factory.mktemp("expected") / "run"
    THREE.run(path, report=False)
    return contents(path)


@pytest.fixture(scope="module")
def count(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many changes a sweep of three cells makes."""
    root = tmp_path_factory.mktemp("count")
    return len(listed(root, lambda: THREE.run(root / "run", report=False)))


def places(count: int) -> range:
    """Each in turn."""
    assert count > 60
    return range(count)


def test_whichever_write_finds_the_disk_full_the_cells_before_it_stay_and_the_run_can_be_gone_on_with(
    tmp_path: Path, count: int, expected: dict[str, bytes]
) -> None:
    for at in places(count):
        root = tmp_path / str(at)
        root.mkdir()
        with failing(root, at, FULL, for_good=True), pytest.raises(NormbenchError, match="No space left") as caught:
            THREE.run(root / "run", report=False)
        assert_nothing_is_half_written(root)
        assert_the_error_says_what_to_do(caught.value, root / "run")
        assert_it_can_be_gone_on_with(root / "run", expected)


def test_whichever_moment_an_interrupt_comes_at_nothing_is_half_written_or_there_twice(
    tmp_path: Path, count: int, expected: dict[str, bytes]
) -> None:
    for at in places(count):
        root = tmp_path / str(at)
        root.mkdir()
        path = root / "run"
        folder: RunFolder | None = None
        with failing(root, at, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):  # noqa: PT012
            folder = RunFolder.create(path, make_header(THREE.plan))
            for cell in THREE.cells:
                folder.write(THREE.records_of(cell))
            folder.compress_samples()
        assert_nothing_is_half_written(root)
        if folder is not None:
            THREE.interrupt(folder)
            run = THREE.assert_whole_cells(path)
            assert {r.case.cell for r in run.results} == set(THREE.cells)
            assert len(run.results) == len(THREE.cells) * len(THREE.plan.implementations)
            assert len(run.comparisons) == len({(c.cell, c.candidate) for c in run.comparisons})
        assert_it_can_be_gone_on_with(path, expected)


def assert_nothing_is_half_written(root: Path) -> None:
    assert [name for name in contents(root) if name.endswith(".part")] == []
    assert [path.name for path in root.iterdir()] in ([], ["run"])


def assert_the_error_says_what_to_do(error: NormbenchError, path: Path) -> None:
    assert str(path) in error.message
    if isinstance(error, UsageError):
        assert error.hint == "name another folder"
    else:
        assert (error.hint or "").startswith("make room there")


def assert_it_can_be_gone_on_with(path: Path, expected: dict[str, bytes]) -> None:
    if path.exists():
        THREE.assert_whole_cells(path)
    THREE.run(path, report=False)
    assert contents(path) == expected


@pytest.mark.parametrize(
    ("error", "said", "remedy"),
    [
        (FULL, "No space left on device", "make room there"),
        (READ_ONLY, "Read-only file system", "make it writable"),
        (REFUSED, "Permission denied", "make it writable"),
    ],
)
@pytest.mark.parametrize("name", ["samples.csv", "cells.csv", "comparisons.csv", "traffic.csv", "results.csv"])
def test_a_cell_that_cannot_be_written_names_the_file_and_how_to_go_on(
    tmp_path: Path, error: OSError, said: str, remedy: str, name: str
) -> None:
    path = tmp_path / "run"
    folder = RunFolder.create(path, make_header(THREE.plan))
    folder.write(THREE.records_of(FIRST))
    before = tables(path)

    def see(operation: object) -> None:
        if getattr(operation, "name", "") == "fsync" and getattr(operation, "path", path).name == name:
            raise error

    with watched(path, see), pytest.raises(StorageError) as caught:
        folder.write(THREE.records_of(SECOND))

    assert caught.value.message == f"{path / name}: can't be written: {said}"
    assert caught.value.hint == f"{remedy}, then go on with: normbench sweep --resume {path}"
    assert tables(path) == before


def tables(path: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(path).items() if name.endswith(".csv")}


def test_what_could_not_be_taken_back_is_no_cell_and_is_gone_before_the_next_is_written(tmp_path: Path) -> None:
    path = tmp_path / "run"
    folder = RunFolder.create(path, make_header(THREE.plan))
    folder.write(THREE.records_of(FIRST))

    def see(operation: object) -> None:
        if getattr(operation, "name", "") == "truncate" or getattr(operation, "path", path).name == "swaps.csv":
            raise FULL

    with watched(path, see), pytest.raises(StorageError, match=r"swaps\.csv: can't be written"):
        folder.write(THREE.records_of(SECOND))
    assert b",128," in (path / "samples.csv").read_bytes()
    assert load(path).missing == (SECOND, THIRD)

    folder.write(THREE.records_of(SECOND))
    assert THREE.assert_whole_cells(path).missing == (THIRD,)
    folder.write(THREE.records_of(THIRD))
    THREE.run(tmp_path / "undisturbed", report=False)
    folder.compress_samples()
    assert contents(path) == contents(tmp_path / "undisturbed")


def test_a_table_that_somebody_removed_is_not_begun_anew_without_its_header(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", make_header(THREE.plan))
    (tmp_path / "run" / "swaps.csv").unlink()

    with pytest.raises(StorageError, match=r"swaps\.csv: can't be written: No such file"):
        folder.write(THREE.records_of(FIRST))
    assert not (tmp_path / "run" / "swaps.csv").exists()
