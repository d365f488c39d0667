"""Samples read back: one streaming reader of validated chunks, and what reduces them to logarithms a placement."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from normbench import spread
from normbench.errors import StorageError
from normbench.records import CELL_KEY, Case, Run
from normbench.spread import Spread
from normbench.storage.columns import SAMPLES
from normbench.storage.files import opened
from normbench.storage.limits import LEAST_S, MOST_S
from normbench.storage.lines import WholeLines
from normbench.storage.table import unreadable, wrong_columns

Logs = dict[Case, dict[tuple[int, int], float]]
"""By case: a logarithm for each process and placement."""

CHUNK_ROWS = 200_000

_NAMES = ("samples.csv", "samples.csv.gz")
_COUNTED = ("process", "placement", "round", "calls")
_CASE = (*CELL_KEY, "implementation")
_WHOLE = re.compile(r"\d{1,9}", re.ASCII)


def primary_clock(kind: str) -> str:
    """What the names of the clocks begin with that times are taken by, on a device of this kind."""
    return "wall" if kind == "cpu" else "cuda-event"


def chunks(folder: Path, cases: Sequence[Case], *, clock: str = "", rows: int = CHUNK_ROWS) -> Iterator[pd.DataFrame]:
    """The samples of a run folder in the order of the file, some at a time.

    Each frame has the columns ``case`` (its index in ``cases``), ``process``, ``placement``, ``round`` and
    ``seconds`` (of one call). A last line that was cut is dropped.

    Args:
        folder: The run folder; its samples may be gzipped.
        cases: Whose samples are wanted; those of others are left out, as those of cells without results must be.
        clock: What the clock's name must begin with; empty for any.
        rows: Lines of the file that are held at a time.

    Raises:
        StorageError: Names the file, and the line and the field where they are known.
    """
    path = _file(folder)
    index = {(*case.cell.key, case.implementation): number for number, case in enumerate(cases)}
    try:
        with _open(path) as file:
            for frame in _parse(path, WholeLines(file, path, tuple(SAMPLES)), rows):
                yield _reduced(path, frame, index, clock)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error, pd.errors.ParserError) as error:
        raise unreadable(path, error) from error


def logarithms(folder: Path, run: Run, *, relative: bool = False) -> Logs:
    """By case with a time and placement: the median over rounds of log(seconds per call), by the primary clock.

    Where ``relative``, of log(its time ÷ the time of its cell's baseline), each pair from one round; a case that
    shares no round with the baseline has none then.

    Raises:
        StorageError: As ``chunks``; also where a case that has a time has no samples.
    """
    cases = [result.case for result in run.results if result.timing is not None]
    samples = collected(chunks(folder, cases, clock=primary_clock(run.header.device.kind)))
    absent = set(range(len(cases))) - set(samples["case"].unique().tolist())
    if absent:
        first = cases[min(absent)]
        what = f"{len(absent)} of {len(cases)} cases that have a time have no samples"
        raise StorageError(f"{_file(folder)}: {what}: {first.implementation} {first.cell} is the first")
    if relative:
        return placement_log_ratios(samples, cases, run.header.plan.baseline)
    return placement_logs(samples, cases)


def spreads(found: Iterable[pd.DataFrame], cases: Sequence[Case]) -> dict[Case, Spread]:
    """How the samples of each case spread; a case without samples has none."""
    seconds: dict[int, list[NDArray[np.float64]]] = {}
    for frame in found:
        for number, own in frame.groupby("case", sort=False)["seconds"]:
            seconds.setdefault(int(str(number)), []).append(own.to_numpy(np.float64))
    return {cases[number]: spread.of_seconds(np.concatenate(own)) for number, own in seconds.items()}


def exist(folder: Path) -> bool:
    """Whether a run folder has samples: whoever passes one on may leave them out."""
    return any(_is_there(folder / name) for name in _NAMES)


def collected(found: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """All samples with the logarithm of their seconds: a placement may reach into the next chunk."""
    frames = [
        frame.drop(columns="seconds").assign(log=np.log(frame["seconds"].to_numpy(np.float64))) for frame in found
    ]
    if not frames:
        return pd.DataFrame({"case": [], "process": [], "placement": [], "round": [], "log": []}, dtype=np.int32)
    return pd.concat(frames, ignore_index=True)


def placement_logs(samples: pd.DataFrame, cases: Sequence[Case]) -> Logs:
    """Per case and placement the median over rounds of log(seconds per call), as ``stats.placement_logs``."""
    return _medians(samples, cases)


def placement_log_ratios(samples: pd.DataFrame, cases: Sequence[Case], baseline: str) -> Logs:
    """Per case and placement the median over rounds of log(its time ÷ the baseline's), each pair from one round.

    As ``stats.placement_log_ratios``.
    """
    numbers = {case.cell: number for number, case in enumerate(cases) if case.implementation == baseline}
    of_cell = np.array([numbers.get(case.cell, -1) for case in cases], np.int32)
    samples = samples.assign(baseline=of_cell[samples["case"].to_numpy()])
    key = ["baseline", "process", "placement", "round"]
    below = samples.loc[samples["case"] == samples["baseline"], [*key, "log"]]
    pairs = samples.merge(below.drop_duplicates(key, keep="last"), on=key, suffixes=("", "_below"))
    return _medians(pairs.assign(log=pairs["log"] - pairs["log_below"]), cases)


def _medians(samples: pd.DataFrame, cases: Sequence[Case]) -> Logs:
    logs: Logs = {}
    medians = samples.groupby(["case", "process", "placement"], sort=False)["log"].median()
    for (case, process, placement), value in zip(medians.index.to_list(), medians.to_list(), strict=True):
        logs.setdefault(cases[case], {})[process, placement] = value
    return logs


def _file(folder: Path) -> Path:
    """Where a folder's samples are. While they are being packed both files are there, and the plain one is whole."""
    for name in _NAMES:
        if _is_there(folder / name):
            return folder / name
    raise StorageError(
        f"{folder / 'samples.csv'}: there is neither this file nor samples.csv.gz",
        hint="samples are what an interval is taken from: name a folder that has them",
    )


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # it may not be looked at: opening it will say so
        return True


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    with opened(path) as file:
        if path.suffix != ".gz":
            yield file
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield unpacked  # type: ignore[misc]


def _parse(path: Path, lines: WholeLines, rows: int) -> Iterator[pd.DataFrame]:
    """Frames of text: categories of everything but the seconds. The index is the number of the line."""
    text = io.TextIOWrapper(io.BufferedReader(lines), encoding="utf-8", newline="")
    if not text.readline():
        raise wrong_columns(path, [], list(SAMPLES))
    used = [*_CASE, *_COUNTED, "clock"]
    kinds: dict[str, Any] = {**dict.fromkeys(used, "category"), "seconds": "str"}
    try:
        parsed = pd.read_csv(
            text,
            names=[*SAMPLES],
            header=None,
            index_col=False,
            usecols=[*used, "seconds"],
            dtype=kinds,
            na_filter=False,
            skip_blank_lines=False,
            chunksize=rows,
            low_memory=False,  # its own smaller pieces would each guess what the categories are
        )
    except pd.errors.EmptyDataError:  # a header and nothing else
        return
    for frame in parsed:
        frame.index += 2
        yield frame


def _reduced(path: Path, frame: pd.DataFrame, index: Mapping[tuple[str, ...], int], clock: str) -> pd.DataFrame:
    """Numbers in place of text, of the cases and clocks that are wanted; every line is looked at."""
    _check(path, frame["clock"], frame["clock"] != "", "is no clock")
    seconds = pd.to_numeric(frame["seconds"], errors="coerce").astype(np.float64)
    _check(path, frame["seconds"], (seconds >= LEAST_S) & (seconds <= MOST_S), "is no time")
    counts = {name: _whole_numbers(path, frame[name]) for name in _COUNTED}
    _check(path, frame["calls"], counts["calls"] > 0, "is not a number of calls")
    found = pd.DataFrame(
        {
            "case": _cases(frame, index),
            **{name: counts[name] for name in ("process", "placement", "round")},
            "seconds": seconds / counts["calls"],
        }
    )
    return found[(found["case"] >= 0) & frame["clock"].astype("str").str.startswith(clock)]


def _cases(frame: pd.DataFrame, index: Mapping[tuple[str, ...], int]) -> np.ndarray[Any, Any]:
    """The index of each row's case, -1 where it is not wanted."""
    groups = frame.groupby(list(_CASE), observed=True, sort=False)
    firsts = frame.loc[groups.head(1).index, list(_CASE)]
    known = [index.get(tuple(map(_text, row)), -1) for row in firsts.itertuples(index=False)]
    return np.array(known, np.int32)[groups.ngroup().to_numpy()]


def _whole_numbers(path: Path, column: pd.Series[Any]) -> pd.Series[Any]:
    texts = [_text(category) for category in column.cat.categories]
    values = np.array([int(text) if _WHOLE.fullmatch(text) else -1 for text in texts], np.int32)
    numbers = pd.Series(values[column.cat.codes], index=column.index)
    _check(path, column, numbers >= 0, "is not a whole number")
    return numbers


def _text(category: object) -> str:
    """A category as it stands in the file: pandas makes numbers of those it can."""
    whole = isinstance(category, float) and category.is_integer()
    return f"{category:.0f}" if whole else str(category)


def _check(path: Path, column: pd.Series[Any], good: pd.Series[bool] | Any, what: str) -> None:
    """Name the first line whose field is not good."""
    bad = np.flatnonzero(~np.asarray(good, bool))
    if len(bad):
        text = _text(column.iloc[bad[0]])[:40]
        raise StorageError(f"{path}: line {column.index[bad[0]]}: {column.name}: {text!r} {what}")
