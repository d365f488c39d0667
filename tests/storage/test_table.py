from __future__ import annotations

import csv
import errno
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from normbench.errors import StorageError
from normbench.storage.table import Table

COLUMNS = ("name", "width", "time_s")
AWKWARD = {"name": 'a, "b" ;c µ', "width": "256", "time_s": "98.765"}
PLAIN = {"name": "None", "width": "nan", "time_s": ""}

texts = st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"])).filter(
    lambda text: not text.lstrip().startswith((*"=+-@＝＋－＠",)) and ";" not in text
)
rows_of_text = st.lists(st.fixed_dictionaries(dict.fromkeys(COLUMNS, texts)), max_size=4)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table(tmp_path / "some.csv", COLUMNS)
    made.create()
    return made


def read(table: Table) -> list[dict[str, str]]:
    return [row for _, row in table.rows()]


def width(row: Mapping[str, str]) -> int:
    return TypeAdapter(int).validate_python(row["width"])


def test_a_new_table_is_a_header_that_ends_in_a_bare_newline(table: Table) -> None:
    assert table.path.read_bytes() == b"name,width,time_s\n"
    assert read(table) == []


@given(rows_of_text, rows_of_text)
def test_whatever_the_names_hold_comes_back_as_it_was(
    first: list[dict[str, str]], then: list[dict[str, str]]
) -> None:
    with TemporaryDirectory() as folder:
        table = Table(Path(folder) / "some.csv", COLUMNS)
        table.create()
        table.append(first)
        table.append(then)

        assert read(table) == [*first, *then]


def test_a_row_has_its_columns_in_the_tables_order_and_ends_in_a_bare_newline(table: Table) -> None:
    table.append([{"time_s": "1e-06", "name": "nn", "width": "64"}])

    assert table.path.read_bytes() == b"name,width,time_s\nnn,64,1e-06\n"


def test_the_words_none_and_nan_are_names_and_stay_what_they_are(table: Table) -> None:
    """N30."""
    table.append([PLAIN])

    assert read(table) == [PLAIN]


def test_other_csv_readers_find_the_same_rows(table: Table) -> None:
    table.append([AWKWARD, PLAIN])

    with table.path.open(encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file)) == [AWKWARD, PLAIN]


def test_a_table_cut_anywhere_gives_whole_rows_and_never_a_part_of_one(table: Table) -> None:
    table.append([PLAIN, AWKWARD, {"name": "rms", "width": "256", "time_s": "98.765"}])
    whole = read(table)
    data = table.path.read_bytes()
    counts = []
    for end in range(len(b"name,width,time_s\n"), len(data) + 1):
        table.path.write_bytes(data[:end])
        found = read(table)
        counts.append(len(found))
        assert found == whole[: len(found)], f"cut after {end} of {len(data)} bytes"
    assert counts == sorted(counts)
    assert (counts[0], counts[-2], counts[-1]) == (0, 2, 3)


def test_a_number_cut_short_is_dropped_and_not_read_as_another_number(table: Table) -> None:
    """N30."""
    table.path.write_text("name,width,time_s\nnn,256,12.5\nrms,256,98.", encoding="utf-8")

    assert [row["time_s"] for row in read(table)] == ["12.5"]


@pytest.mark.parametrize("text", ["", "name,width\n", "name,width,time_s,more\n", "width,name,time_s\n", "\n"])
def test_another_header_is_refused_naming_file_and_line(table: Table, text: str) -> None:
    table.path.write_text(text, encoding="utf-8")

    with pytest.raises(StorageError, match=r"some\.csv: line 1: these are not the columns of this version"):
        read(table)


def test_a_row_with_too_few_fields_is_refused_naming_file_and_line(table: Table) -> None:
    table.path.write_text("name,width,time_s\nnn,256,12.5\nrms,256\nnn,64,1\n", encoding="utf-8")

    with pytest.raises(StorageError, match=r"some\.csv: line 3: 2 fields, not 3"):
        read(table)


def test_a_stray_quote_is_refused_naming_file_and_line(table: Table) -> None:
    table.path.write_text('name,width,time_s\n"nn"x,256,12.5"\n', encoding="utf-8")

    with pytest.raises(StorageError, match=r"some\.csv: line 2: "):
        read(table)


def test_bytes_that_are_no_text_are_refused_naming_the_file(table: Table) -> None:
    table.path.write_bytes(b"name,width,time_s\n\xff\xfe,1,2\n")

    with pytest.raises(StorageError, match=r"some\.csv: line 2: is no UTF-8 text"):
        read(table)


def test_a_file_that_is_not_there_is_refused_naming_it(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"gone\.csv: can't be read") as caught:
        read(Table(tmp_path / "gone.csv", COLUMNS))
    assert caught.value.hint == "is this a run folder?"


def test_reading_gives_each_row_and_what_is_made_of_it(table: Table) -> None:
    table.append([{"name": "nn", "width": "64", "time_s": "1"}, {"name": "rms", "width": "128", "time_s": "2"}])

    assert [(row["name"], value) for row, value in table.read(width)] == [("nn", 64), ("rms", 128)]


def test_a_field_that_is_not_what_it_should_be_is_refused_naming_file_and_line(table: Table) -> None:
    table.append([{"name": "a b", "width": "64", "time_s": "1"}, PLAIN])

    with pytest.raises(StorageError, match=r"some\.csv: line 3: row: Input should be a valid integer"):
        list(table.read(width))


def test_replacing_leaves_only_the_new_rows_and_no_other_file(table: Table) -> None:
    table.append([AWKWARD])
    table.replace([PLAIN])

    assert read(table) == [PLAIN]
    assert [path.name for path in table.path.parent.iterdir()] == ["some.csv"]


def test_a_replacement_that_fails_leaves_the_old_file_whole(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append([AWKWARD])

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(StorageError, match="No space left on device"):
        table.replace([PLAIN])
    assert read(table) == [AWKWARD]


def test_a_full_disk_is_said_when_a_row_is_added(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(StorageError, match=r"some\.csv: can't be written: No space left on device"):
        table.append([PLAIN])


def test_a_table_whose_folder_has_gone_is_an_error_that_names_it(tmp_path: Path) -> None:
    table = Table(tmp_path / "gone" / "some.csv", COLUMNS)

    with pytest.raises(StorageError, match=r"some\.csv: can't be written"):
        table.append([PLAIN])
    with pytest.raises(StorageError, match=r"some\.csv: can't be written"):
        table.create()
