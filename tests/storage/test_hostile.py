"""Whatever lies in a run folder is read as a run, or an error names file, line and field."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from normbench.errors import StorageError
from normbench.records import CheckRun
from normbench.storage import load, load_check
from tests.cli.command import normbench
from tests.hostile.folders import Files, good_folders
from tests.hostile.mutations import everywhere, mutated
from tests.hostile.trial import outcome, read, render, resume

T = TypeVar("T")

RUNS = ("failed", "packed", "profiled", "torn", "whole")
KINDS = ("checked", *RUNS)

same_scratch = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
randoms = st.randoms(use_true_random=False)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Files]:
    return good_folders(tmp_path_factory.mktemp("good"))


def write(path: Path, files: Files) -> Path:
    rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, data in files.items():
        (path / name).write_bytes(data)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_the_folders_that_are_changed_are_good_ones(tmp_path: Path, good: dict[str, Files], kind: str) -> None:
    path = write(tmp_path / "run", good[kind])
    before = read(path)
    render(before)
    if isinstance(before, CheckRun):
        assert before.checks
        return
    resume(path)

    assert before.results
    assert load(path).missing == before.missing


def one_file_changed(tmp_path: Path, files: Files, random: Random, seen: Counter[str]) -> None:
    name = random.choice(sorted(files))
    path = write(tmp_path / "run", {**files, name: mutated(name, files[name], random)})
    outcome(path, seen, resumes=random.random() < 0.25)


@settings(same_scratch, max_examples=60)
@given(random=randoms)
@pytest.mark.parametrize("kind", KINDS)
def test_one_file_changed_is_a_run_or_an_error_that_names_file_line_and_field(
    tmp_path: Path, good: dict[str, Files], kind: str, random: Random
) -> None:
    one_file_changed(tmp_path, good[kind], random, Counter())


@settings(same_scratch, max_examples=40)
@given(random=randoms)
@pytest.mark.parametrize("kind", ["checked", "profiled", "whole"])
def test_a_word_changed_in_all_files_alike_is_a_run_or_such_an_error(
    tmp_path: Path, good: dict[str, Files], kind: str, random: Random
) -> None:
    outcome(write(tmp_path / "run", everywhere(good[kind], random)), Counter())


@pytest.mark.slow
def test_thousands_of_changed_files_are_runs_or_such_errors(tmp_path: Path, good: dict[str, Files]) -> None:
    seen: Counter[str] = Counter()
    for number in range(8000):
        random = Random(f"slow {number}")
        one_file_changed(tmp_path, good[random.choice(KINDS)], random, seen)

    assert seen["a run"] > 500
    assert sum(seen.values()) - seen["a run"] > 4000


def ends(size: int, *, step: int) -> Iterator[int]:
    yield from range(0, size, step)
    yield size


def loaded(path: Path, name: str, read: Callable[[Path], T]) -> T | None:
    """What is read, or None where the file of that name is refused."""
    try:
        return read(path)
    except StorageError as error:
        if not error.message.startswith(f"{path / name}: "):
            raise
        return None


def is_part(some: Iterable[object], of_all: Iterable[object]) -> bool:
    everything = list(of_all)
    return all(one in everything for one in some)


def check_cuts(tmp_path: Path, files: Files, step: int) -> None:
    path = write(tmp_path / "run", files)
    whole = load(path)
    for name in sorted(set(files) - {"samples.csv", "samples.csv.gz"}):
        for end in ends(len(files[name]), step=step):
            (path / name).write_bytes(files[name][:end])
            run = loaded(path, name, load)
            if run is not None:
                assert run.header == whole.header
                assert is_part(run.results, whole.results), f"{name} cut after {end} bytes"
                assert is_part(run.comparisons, whole.comparisons), f"{name} cut after {end} bytes"
                assert is_part(run.swaps, whole.swaps), f"{name} cut after {end} bytes"
        (path / name).write_bytes(files[name])


def test_a_file_that_was_cut_holds_whole_rows_of_the_run_or_is_refused(
    tmp_path: Path, good: dict[str, Files]
) -> None:
    check_cuts(tmp_path, good["failed"], step=41)


def test_a_check_that_was_cut_holds_whole_rows_of_it_or_is_refused(tmp_path: Path, good: dict[str, Files]) -> None:
    files = good["checked"]
    path = write(tmp_path / "check", files)
    whole = load_check(path)
    for name in files:
        for end in ends(len(files[name]), step=41):
            (path / name).write_bytes(files[name][:end])
            found = loaded(path, name, load_check)
            if found is not None:
                assert found.header == whole.header
                assert found.checks == whole.checks[: len(found.checks)]
                assert found.complete is (found == whole)
        (path / name).write_bytes(files[name])


@pytest.mark.slow
@pytest.mark.parametrize("kind", RUNS)
def test_a_file_cut_after_any_byte_holds_whole_rows_or_is_refused(
    tmp_path: Path, good: dict[str, Files], kind: str
) -> None:
    check_cuts(tmp_path, good[kind], step=1)


@settings(same_scratch, max_examples=6)
@given(random=randoms)
def test_the_commands_answer_a_changed_file_with_exit_code_0_or_3_and_no_traceback(
    tmp_path: Path, good: dict[str, Files], random: Random
) -> None:
    files = good["failed"]
    name = random.choice(sorted(files))
    path = write(tmp_path / "run", {**files, name: mutated(name, files[name], random)})
    other = write(tmp_path / "good", files)

    for words in (
        ("report", path, "--pictures", "1"),
        ("compare", other, path),
        ("sweep", "--resume", path, "--dry-run"),
    ):
        done = normbench(*words)
        assert done.code in (0, 2 if words[0] == "sweep" else 0, 3)  # 2: the run is of another machine
        assert "Traceback" not in done.err
        assert "fault of normbench" not in done.err


NO_FILES = {
    "folder": "can't be read: Is a directory",
    "pipe": "can't be read: Not a regular file",
    "device": "can't be read: Not a regular file",
    "link to nothing": "can't be read: No such file or directory|there is neither this file",
    "link to itself": "can't be read: Too many levels of symbolic links|there is neither this file",
    "nothing": "can't be read: No such file or directory|there is neither this file",
}


def put(kind: str, file: Path) -> None:
    """Have something there that is no file, or nothing."""
    file.unlink()
    make = {
        "folder": file.mkdir,
        "pipe": lambda: os.mkfifo(file),
        "device": lambda: file.symlink_to("/dev/zero"),
        "link to nothing": lambda: file.symlink_to("nowhere"),
        "link to itself": lambda: file.symlink_to(file.name),
        "nothing": lambda: None,
    }
    make[kind]()


@pytest.mark.parametrize(
    "name", ["run.json", "results.csv", "comparisons.csv", "swaps.csv", "samples.csv", "traffic.csv"]
)
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_named_and_never_waited_for(
    tmp_path: Path, good: dict[str, Files], name: str, kind: str
) -> None:
    path = write(tmp_path / "run", good["profiled"])
    put(kind, path / name)

    with pytest.raises(StorageError, match=rf"/{name}: ({NO_FILES[kind]})"):
        read(path)


@pytest.mark.parametrize("name", ["check.json", "check.csv"])
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_of_a_check_is_named_and_never_waited_for(
    tmp_path: Path, good: dict[str, Files], name: str, kind: str
) -> None:
    path = write(tmp_path / "check", good["checked"])
    put(kind, path / name)
    named = "run.json" if (name, kind) == ("check.json", "nothing") else name  # then nothing says that it is a check

    with pytest.raises(StorageError, match=rf"/{named}: ({NO_FILES[kind]})"):
        read(path)


def test_a_link_to_a_file_is_followed(tmp_path: Path, good: dict[str, Files]) -> None:
    path = write(tmp_path / "run", good["whole"])
    (path / "results.csv").rename(tmp_path / "elsewhere")
    (path / "results.csv").symlink_to(tmp_path / "elsewhere")

    assert load(path).is_complete


def test_a_file_that_may_not_be_read_is_named(
    tmp_path: Path, good: dict[str, Files], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "run", good["whole"])
    real = os.open

    def refuse(file: Path, *rest: int) -> int:
        if Path(file).name == "results.csv":
            raise PermissionError(13, "Permission denied")
        return real(file, *rest)

    monkeypatch.setattr(os, "open", refuse)

    with pytest.raises(StorageError, match=r"/results\.csv: can't be read: Permission denied"):
        load(path)
