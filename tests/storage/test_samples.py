from __future__ import annotations

import gzip
import io
import re
from collections.abc import Callable
from math import log
from pathlib import Path

import pandas as pd
import pytest

from normbench import stats
from normbench.errors import StorageError
from normbench.records import Case, CellRecords, Sample, Status
from normbench.storage import SAMPLES, RunFolder, load, samples
from normbench.storage.lines import WholeLines
from tests.helpers import make_sample
from tests.runs import TIMES, make_cell, make_device, make_header, make_plan, make_records, write_run

NAMES = tuple(TIMES)
CASE = Case(cell=make_cell(), implementation="nn-rmsnorm")
LINE = "norm,forward,32,64,fp32,fp32,,warm,nn-rmsnorm,0,0,0,1,7,{},wall,,,\n"


def taken(seed: int, *, processes: int = 2, placements: int = 3, rounds: int = 5) -> list[Sample]:
    """Samples of which no two are alike."""
    return [
        make_sample(
            1e-6 * (1 + seed + index) * (1 + process + 0.1 * placement + 0.01 * round_ * (7 - round_)),
            name,
            process=process,
            placement=placement,
            round=round_,
            position=index,
            calls=1 + index,
        )
        for process in range(processes)
        for placement in range(placements)
        for round_ in range(rounds)
        for index, name in enumerate(NAMES)
    ]


def write(path: Path, of_cell: list[list[Sample]], *, kind: str = "cpu", packed: bool = False) -> Path:
    """A run folder whose cells have these samples."""
    plan = make_plan(widths=tuple(64 * 2**n for n in range(len(of_cell))))
    folder = RunFolder.create(path, make_header(plan, device=make_device(kind=kind)))
    for cell, found in zip(plan.cells(), of_cell, strict=True):
        records = make_records(cell, TIMES, plan)
        folder.write(
            CellRecords(cell=cell, results=records.results, comparisons=records.comparisons, samples=tuple(found))
        )
    if packed:
        folder.compress_samples()
    return path


def append(path: Path, text: str) -> None:
    with (path / "samples.csv").open("a", encoding="utf-8", newline="") as file:
        file.write(text)


def values_of(path: Path, cases: list[Case], **options: object) -> list[float]:
    frames = samples.chunks(path, cases, **options)  # type: ignore[arg-type]
    return [value for frame in frames for value in frame["seconds"].to_list()]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("rows", [samples.CHUNK_ROWS, 7])
def test_the_medians_are_those_of_the_samples_wherever_a_chunk_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool, rows: int
) -> None:
    monkeypatch.setattr(samples.chunks, "__kwdefaults__", {"clock": "", "rows": rows})
    cells = [taken(0), taken(10)]
    path = write(tmp_path / "run", cells, packed=packed)
    logs = samples.logarithms(path, load(path))

    assert len(logs) == 2 * len(NAMES)
    for case, of_case in logs.items():
        expected = stats.placement_logs(stats.of_implementation(cells[case.cell.width // 128], case.implementation))
        assert of_case == pytest.approx(expected)


def test_relative_to_the_baseline_each_pair_is_of_one_round(tmp_path: Path) -> None:
    found = [s for s in taken(0) if not (s.implementation == "nn-layernorm" and s.round == 2)]
    path = write(tmp_path / "run", [found])
    logs = samples.logarithms(path, load(path), relative=True)
    baseline = stats.of_implementation(found, "nn-layernorm")

    assert set(logs) == {Case(cell=make_cell(), implementation=name) for name in NAMES}
    for case, of_case in logs.items():
        own = stats.of_implementation(found, case.implementation)
        assert of_case == pytest.approx(stats.placement_log_ratios(own, baseline))


def test_a_case_that_shares_no_round_with_its_baseline_has_no_relative_time(tmp_path: Path) -> None:
    found = [s for s in taken(0) if (s.implementation == "copy") != (s.round % 2 == 0)]
    path = write(tmp_path / "run", [found])

    assert CASE in samples.logarithms(path, load(path), relative=True)
    assert Case(cell=make_cell(), implementation="copy") not in samples.logarithms(path, load(path), relative=True)


@pytest.mark.parametrize(("kind", "counted"), [("cpu", ["wall"]), ("cuda", ["cuda-event", "cuda-event-unheld"])])
def test_times_are_by_the_clock_that_ratios_are_taken_by(tmp_path: Path, kind: str, counted: list[str]) -> None:
    clocks = {"wall": 1e-3, "cuda-event": 2e-3, "cuda-event-unheld": 4e-3, "cuda-graph": 8e-3}
    found = [
        make_sample(seconds, name, round=round_, clock=clock)
        for round_, (clock, seconds) in enumerate(clocks.items())
        for name in NAMES
    ]
    path = write(tmp_path / "run", [found], kind=kind)
    middle = sum(log(clocks[clock]) for clock in counted) / len(counted)

    assert samples.logarithms(path, load(path))[CASE] == {(0, 0): pytest.approx(middle)}


def test_samples_of_cells_without_results_and_of_a_twin_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "run", [taken(0)])
    before = samples.logarithms(path, load(path))
    append(
        path,
        LINE.format(5.0).replace(",64,", ",4096,") + LINE.format(5.0).replace("nn-rmsnorm", "nn-layernorm again"),
    )

    assert samples.logarithms(path, load(path)) == before


def test_a_line_that_was_cut_at_the_end_is_dropped(tmp_path: Path) -> None:
    path = write(tmp_path / "run", [taken(0)])
    before = values_of(path, [CASE])
    append(path, LINE.format("0.00012345")[:-12])

    assert values_of(path, [CASE]) == before


def test_while_samples_are_being_packed_the_plain_file_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "run", [taken(0)])
    (path / "samples.csv.gz").write_bytes(b"half")

    assert len(values_of(path, [CASE])) == 30


def test_an_empty_table_holds_no_samples(tmp_path: Path) -> None:
    path = RunFolder.create(tmp_path / "run", make_header()).path

    assert values_of(path, [CASE]) == []
    assert samples.logarithms(path, load(path)) == {}
    assert samples.logarithms(path, load(path), relative=True) == {}


def test_results_whose_samples_are_not_there_are_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "run", [taken(0)])
    kept = [
        line for line in (path / "samples.csv").read_text(encoding="utf-8").splitlines() if "nn-rmsnorm" not in line
    ]
    (path / "samples.csv").write_text("\n".join([*kept, ""]), encoding="utf-8")

    with pytest.raises(
        StorageError, match=r"samples.csv: 1 of 4 cases that have a time have no samples: nn-rmsnorm 32×64"
    ):
        samples.logarithms(path, load(path))


@pytest.mark.parametrize("seconds", ["", "abc", "nan", "inf", "-inf", "0", "0.0", "-1e-5", "1e300", "1e-300", "1,5"])
def test_seconds_that_are_none_are_an_error_that_names_file_line_and_field(tmp_path: Path, seconds: str) -> None:
    path = write(tmp_path / "run", [taken(0)])
    before = len((path / "samples.csv").read_text(encoding="utf-8").splitlines())
    append(path, LINE.format(1e-5) + LINE.format(seconds) + LINE.format(1e-5))

    with pytest.raises(StorageError, match=rf"samples.csv: line {before + 2}: (seconds: |20 fields, not 19)"):
        values_of(path, [CASE])


@pytest.mark.parametrize("rows", [1, 7, 121])
def test_the_line_is_right_wherever_a_chunk_ends(tmp_path: Path, rows: int) -> None:
    path = write(tmp_path / "run", [taken(0)])
    append(path, LINE.format("none") + LINE.format(1e-5))

    with pytest.raises(StorageError, match=r"samples.csv: line 122: seconds: 'none' is no time"):
        values_of(path, [CASE], rows=rows)


@pytest.mark.parametrize(
    ("column", "text", "said"),
    [
        ("process", "-1", "process: '-1' is not a whole number"),
        ("placement", "1.5", "placement: '1.5' is not a whole number"),
        ("round", "", "round: '' is not a whole number"),
        ("calls", "0", "calls: '0' is not a number of calls"),
        ("calls", "many", "calls: 'many' is not a whole number"),
        ("clock", "", "clock: '' is no clock"),
    ],
)
def test_a_bad_field_is_named_even_where_its_case_is_not_asked_for(
    tmp_path: Path, column: str, text: str, said: str
) -> None:
    path = write(tmp_path / "run", [taken(0)])
    fields = dict(zip(SAMPLES, LINE.format(1e-5).strip().split(","), strict=True)) | {column: text}
    append(path, ",".join(fields.values()) + "\n")

    with pytest.raises(StorageError, match=f"samples.csv: line 122: {said}"):
        values_of(path, [])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda line: line.replace(",wall", ""), "line 3: 18 fields, not 19"),
        (lambda line: line.replace(",,,", ","), "line 3: 17 fields, not 19"),
        (lambda line: line.replace("\n", ",\n"), "line 3: 20 fields, not 19"),
        (lambda _line: "\n", "line 3: 0 fields, not 19"),
        (lambda line: line.replace("norm,", '"norm,', 1), "line 3: a quote is opened and not closed"),
    ],
)
def test_a_line_with_more_or_fewer_fields_is_an_error(
    tmp_path: Path, change: Callable[[str], str], said: str
) -> None:
    path = RunFolder.create(tmp_path / "run", make_header()).path
    line = LINE.format(1e-5)
    append(path, line + change(line) + line)

    with pytest.raises(StorageError, match=rf"samples.csv: ({said})"):
        values_of(path, [CASE])


def test_lines_that_end_as_on_windows_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "run", [taken(0)])
    before = values_of(path, [CASE])
    (path / "samples.csv").write_bytes((path / "samples.csv").read_bytes().replace(b"\n", b"\r\n"))

    assert values_of(path, [CASE]) == before


def test_quotes_that_would_swallow_lines_are_an_error(tmp_path: Path) -> None:
    path = RunFolder.create(tmp_path / "run", make_header()).path
    line = LINE.format(1e-5)
    append(path, line + line.replace("norm,", '"norm,', 1) + line + line.replace("norm,", 'norm",', 1) + line)

    with pytest.raises(StorageError, match=r"samples.csv: line 3: a quote is opened and not closed"):
        values_of(path, [CASE])


def test_a_comma_inside_quotes_ends_no_field(tmp_path: Path) -> None:
    path = RunFolder.create(tmp_path / "run", make_header()).path
    append(path, LINE.format(7.0) + LINE.format(1e-5).replace("nn-rmsnorm", '"a,b"'))

    assert values_of(path, [CASE]) == [1.0]


@pytest.mark.parametrize("text", ["", "a,b\n", ",".join(SAMPLES), ",".join([*SAMPLES, "more"]) + "\n"])
def test_other_columns_are_an_error_that_says_what_was_found(tmp_path: Path, text: str) -> None:
    path = RunFolder.create(tmp_path / "run", make_header()).path
    (path / "samples.csv").write_text(text, encoding="utf-8")

    with pytest.raises(StorageError, match=r"samples.csv: line 1: these are not the columns") as caught:
        values_of(path, [CASE])
    assert caught.value.hint


@pytest.mark.parametrize("cut", [0, 10, 60, -1])
def test_packed_samples_that_are_cut_are_an_error(tmp_path: Path, cut: int) -> None:
    path = write(tmp_path / "run", [taken(0)], packed=True)
    packed = path / "samples.csv.gz"
    packed.write_bytes(packed.read_bytes()[:cut])

    with pytest.raises(StorageError, match=r"samples.csv.gz: "):
        values_of(path, [CASE])


@pytest.mark.parametrize(
    "data", [b"not gzip", gzip.compress(b"\xff\xfe\n"), gzip.compress(b"x" * 100)[:-4] + b"abcd"]
)
def test_what_is_no_packed_table_is_an_error(tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path / "run", [taken(0)], packed=True)
    (path / "samples.csv.gz").write_bytes(data)

    with pytest.raises(StorageError, match=r"samples.csv.gz: "):
        values_of(path, [CASE])


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "run", [taken(0)])
    with (path / "samples.csv").open("ab") as file:
        file.write(LINE.format(1e-5).encode().replace(b"fp32", b"\xff\xff\xff\xff"))

    with pytest.raises(StorageError, match=r"samples.csv: line 122: is no UTF-8 text"):
        values_of(path, [CASE])


def test_without_samples_the_file_is_named(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run").path
    (path / "samples.csv").unlink()

    with pytest.raises(StorageError, match=r"samples.csv: there is neither this file nor samples.csv.gz"):
        values_of(path, [CASE])


def test_a_case_without_a_time_needs_no_samples(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", times={**TIMES, "nn-rmsnorm": Status.FAILED}).path

    assert {case.implementation for case in samples.logarithms(path, load(path))} == set(NAMES) - {"nn-rmsnorm"}


def test_chunks_are_frames_of_numbers_that_a_caller_can_reduce_as_it_likes(tmp_path: Path) -> None:
    path = write(tmp_path / "run", [taken(0)])
    frames = list(samples.chunks(path, [CASE], clock="wall", rows=50))

    assert len(frames) == 3
    assert [list(frame.columns) for frame in frames] == [["case", "process", "placement", "round", "seconds"]] * 3
    assert pd.concat(frames)["case"].unique().tolist() == [0]


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_whole_lines_are_the_same_in_pieces_of_any_size(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr("normbench.storage.lines._BLOCK", size)
    text = b"a,b\n1,2\nlonger,3\n4,cut"

    lines = WholeLines(io.BytesIO(text), Path("x"), ("a", "b"))

    assert io.BufferedReader(lines).read() == b"a,b\n1,2\nlonger,3\n"


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("=1+1", "'=1+1' is a formula to a spreadsheet"),
        ("-x", "'-x' is a formula to a spreadsheet"),
        (" -x", "' -x' is a formula to a spreadsheet"),
        ("hot;-x", "'hot;-x' is a formula to a spreadsheet"),
        ("\x1b[31m", r"holds the character U+001B, which is not seen"),
        ("\u202e", r"holds the character U+202E, which is not seen"),
    ],
)
def test_a_text_that_is_refused_in_any_file_is_refused_among_samples(tmp_path: Path, field: str, said: str) -> None:
    path = write(tmp_path / "run", [taken(0)])
    append(path, LINE.format(1e-5) + LINE.format(1e-5).replace(",,,\n", f",,,{field}\n"))

    with pytest.raises(StorageError, match=re.escape(f"samples.csv: line 123: throttle_reasons: {said}")):
        values_of(path, [CASE])
