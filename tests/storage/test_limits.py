"""What is too large is refused before it takes the memory or the evening."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path

import pytest

from normbench.errors import StorageError
from normbench.storage import RunFolder, limits, load, samples, write_text
from normbench.storage.packing import unpack
from tests.runs import make_plan, write_run

MIB = 2**20


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", make_plan(widths=(64, 128))).path


def grown(path: Path, size: int) -> None:
    """Let a file be as large as this, without taking that room on the disk."""
    os.truncate(path, size)


def peak(read: object) -> int:
    assert callable(read)
    tracemalloc.start()
    try:
        with pytest.raises(StorageError):
            read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_header_of_gigabytes_is_refused_unread(run: Path) -> None:
    grown(run / "run.json", 2**33)

    with pytest.raises(StorageError, match=rf"run\.json: can't be read: more than {limits.MOST_HEADER_BYTES} bytes"):
        load(run)
    assert peak(lambda: load(run)) < 3 * limits.MOST_HEADER_BYTES


@pytest.mark.parametrize("name", ["results.csv", "comparisons.csv", "swaps.csv"])
def test_a_table_of_gigabytes_is_refused_unread(run: Path, name: str) -> None:
    grown(run / name, 2**33)

    with pytest.raises(StorageError, match=rf"{name}: can't be read: more than {limits.MOST_TABLE_BYTES} bytes"):
        load(run)
    assert peak(lambda: load(run)) < 8 * MIB


def test_a_line_without_end_is_refused_where_it_begins(run: Path) -> None:
    grown(run / "results.csv", 2**29)

    with pytest.raises(StorageError, match=rf"results\.csv: line 10: has more than {limits.MOST_LINE_BYTES} bytes"):
        load(run)
    assert peak(lambda: load(run)) < 8 * MIB


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_without_end_among_samples_is_refused_where_it_begins(run: Path, packed: bool) -> None:
    count = (run / "samples.csv").read_bytes().count(b"\n")
    grown(run / "samples.csv", 2**27)
    if packed:
        (run / "samples.csv.gz").write_bytes(gzip.compress((run / "samples.csv").read_bytes(), 1))
        (run / "samples.csv").unlink()

    def read() -> list[object]:
        return list(samples.chunks(run, []))

    with pytest.raises(StorageError, match=rf"line {count + 1}: has more than {limits.MOST_LINE_BYTES} bytes"):
        read()
    assert peak(read) < 32 * MIB


def test_a_small_file_that_unpacks_to_more_than_a_run_has_is_refused(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("normbench.storage.packing.MOST_SAMPLES_BYTES", 4 * MIB)
    monkeypatch.setattr("normbench.storage.lines.MOST_SAMPLES_BYTES", 4 * MIB)
    lines = (run / "samples.csv").read_bytes().split(b"\n")
    (run / "samples.csv.gz").write_bytes(gzip.compress(b"\n".join([lines[0], *[lines[1]] * 100_000, b""])))
    (run / "samples.csv").unlink()
    results = run / "results.csv"
    results.write_bytes(results.read_bytes()[:-9])  # a complete run is not unpacked

    with pytest.raises(StorageError, match=rf"samples\.csv\.gz: can't be read: more than {4 * MIB} bytes"):
        list(samples.chunks(run, []))
    with pytest.raises(StorageError, match=rf"samples\.csv\.gz: can't be read: more than {4 * MIB} bytes"):
        RunFolder.reopen(run)
    assert {file.name for file in run.iterdir() if "samples" in file.name} == {"samples.csv.gz"}
    assert peak(lambda: RunFolder.reopen(run)) < 24 * MIB


def test_samples_are_unpacked_piece_by_piece_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"µ{number}×\n" for number in range(1000))
    for size in (1, 2, 7, 10_000):
        (tmp_path / "x.gz").write_bytes(gzip.compress(text.encode()))
        monkeypatch.setattr("normbench.storage.packing._PIECE", size if size > 5 else size + 30)
        unpack(tmp_path / "x.gz", tmp_path / "x")
        assert (tmp_path / "x").read_text(encoding="utf-8") == text


def test_a_field_of_a_megabyte_is_refused_naming_line_and_field(run: Path) -> None:
    path = run / "results.csv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(",ok,,", f",ok,{'x' * 100_000},", 1), encoding="utf-8")

    with pytest.raises(StorageError, match=r"results\.csv: line 2: reason: is a text of 100000 characters"):
        load(run)


def test_a_link_in_the_place_of_a_file_in_the_making_is_not_written_through(run: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine", encoding="utf-8")
    (run / f".verdict.md.{os.getpid()}.part").symlink_to(mine)
    write_text(run / "verdict.md", "theirs")

    assert mine.read_text(encoding="utf-8") == "mine"
    assert (run / "verdict.md").read_text(encoding="utf-8") == "theirs"
    assert not (run / "verdict.md").is_symlink()
