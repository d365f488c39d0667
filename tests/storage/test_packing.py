from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path

import pytest

from normbench.errors import StorageError
from normbench.storage import packing


@pytest.mark.parametrize("size", [0, 1, 3 * 2**20 + 5])
def test_what_is_packed_is_the_same_when_it_is_unpacked(tmp_path: Path, size: int) -> None:
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    data = os.urandom(size).hex()[:size].encode()
    plain.write_bytes(data)
    packing.pack(plain, packed)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv.gz"]
    assert gzip.decompress(packed.read_bytes()) == data

    packing.unpack(packed, plain)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    assert plain.read_bytes() == data


def test_a_large_file_is_not_held_in_memory(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    plain.write_bytes(b"1" * (32 << 20))
    tracemalloc.start()
    packing.pack(plain, packed)
    packing.unpack(packed, plain)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 8 << 20


@pytest.mark.parametrize("cut", [1, 8, 20])
def test_a_damaged_file_is_refused_naming_it_and_stays(tmp_path: Path, cut: int) -> None:
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    plain.write_bytes(os.urandom(100))
    packing.pack(plain, packed)
    packed.write_bytes(packed.read_bytes()[:-cut])

    with pytest.raises(StorageError, match=r"a\.csv\.gz: can't be read"):
        packing.unpack(packed, plain)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv.gz"]


def test_a_file_that_is_not_there_is_refused_naming_it(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"a\.csv: can't be read: No such file"):
        packing.pack(tmp_path / "a.csv", tmp_path / "a.csv.gz")
    assert list(tmp_path.iterdir()) == []
