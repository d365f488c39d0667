"""Who else is on the device: other runs by their claims, other programs by what the device and the load say."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from normbench import compilation, doctor, locks, other_load
from normbench.cli import neighbours
from normbench.cli.neighbours import Neighbours, Sharing, claimed
from normbench.device import Found
from normbench.errors import BusyError, StorageError
from normbench.records import CellRecords, Flag, Status
from normbench.storage import RunFolder, only_writer
from tests.claiming import Other, other
from tests.cli.command import PLAIN, TINY, Done, normbench, rows, sweep
from tests.fakes import FakeDevice
from tests.helpers import make_cell, make_device_info, make_result

ONE_CELL = ("--widths", "64", "--out", "run")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("normbench.reporters.plots.draw", lambda _run, _most=None: iter(()))


@pytest.fixture(autouse=True)
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Claims of this test alone."""
    monkeypatch.setenv(locks.VARIABLE, str(tmp_path / "claims"))
    return tmp_path / "claims"


def flags(folder: str = "run") -> list[set[str]]:
    """The flags of each result."""
    return [set(row["flags"].split(";")) for row in rows(Path(folder) / "results.csv")]


def records(status: Status = Status.OK) -> CellRecords:
    return CellRecords(cell=make_cell(), results=(make_result(status=status),), comparisons=(), samples=())


@pytest.fixture
def long_sweep() -> Iterator[subprocess.Popen[bytes]]:
    """A real sweep of the cpu in a process of its own, which holds it and would for twenty seconds."""
    words = ["sweep", *TINY, *PLAIN, "--widths", "64:256:64", "--max-seconds", "5", "--target", "0.01%"]
    process = subprocess.Popen(
        [sys.executable, "-m", "normbench", *words, "--out", "first"], stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not (Path("first") / "run.json").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield process
    process.kill()
    process.wait()


def test_a_second_sweep_is_refused_while_a_first_runs_and_measures_once_that_was_killed(
    long_sweep: subprocess.Popen[bytes],
) -> None:
    done = sweep(*ONE_CELL)
    assert (done.code, done.out) == (3, "")
    message, hint = done.err.splitlines()
    assert message.startswith(f"error: another normbench sweep runs on cpu (process {long_sweep.pid}, for ")
    assert message.endswith(" s): times of both would be wrong")
    assert "--share-device" in hint
    assert not Path("run").exists()

    refused = normbench("sweep", "--resume", "first", "--share-device")
    assert (refused.code, refused.out) == (3, "")
    assert f"error: first: another normbench is writing it (process {long_sweep.pid})\n" in refused.err
    assert normbench("report", "first", "--pictures", "0").code == 0

    long_sweep.kill()
    long_sweep.wait()
    assert sweep(*ONE_CELL).code == 0
    assert not any(Flag.SHARED_DEVICE in found for found in flags())


@pytest.mark.parametrize("words", ["profile --device cpu", "doctor --device cpu", "sweep --quick --device cpu"])
def test_every_command_that_measures_is_refused_and_names_what_the_other_is(at: Path, words: str) -> None:
    with other(at, what="doctor") as holder:
        done = normbench(*words.split())
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"error: another normbench doctor runs on cpu (process {holder.pid}, for ")
    assert [path.name for path in Path().iterdir()] == ["claims"]


def test_what_measures_nothing_is_not(at: Path) -> None:
    assert sweep(*ONE_CELL).code == 0
    with other(at):
        for words in (
            ("sweep", "--dry-run"),
            ("sweep", "--resume", "run", "--dry-run"),
            ("report", "run"),
            ("list",),
        ):
            assert normbench(*words).code == 0
        assert normbench("compare", "run", "run").code == 0


def test_who_shares_measures_and_every_result_says_so(at: Path) -> None:
    with other(at) as holder:
        done = sweep(*ONE_CELL, "--share-device", "--quiet")
    assert done.code == 0
    assert f"warning: another normbench sweep runs on cpu (process {holder.pid}, " in done.err
    assert all(Flag.SHARED_DEVICE in found for found in flags())
    assert "on a shared device in 1 of 1 cells" in done.out


def test_the_first_notices_a_second_that_shares_and_flags_what_was_measured_meanwhile(
    at: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, intruders = RunFolder.write, list[Other]()

    def write(folder: RunFolder, found: CellRecords) -> None:
        """After the first cell another begins, after the second it has ended."""
        really(folder, found)
        if not intruders:
            intruders.append(Other(at, "cpu", "doctor", share=True, user=0))
            assert intruders[0].said == "holds"
        else:
            intruders[0].end()

    monkeypatch.setattr(RunFolder, "write", write)
    done = sweep("--widths", "64", "128", "192", "256", "--out", "run")
    of_cells = [all(Flag.SHARED_DEVICE in found for found in flags()[first : first + 3]) for first in range(0, 12, 3)]
    assert of_cells == [False, True, True, False], "in the third it was there at the beginning"
    warnings = [line for line in done.err.splitlines() if line.startswith("warning: ")]
    (warning,) = warnings
    assert warning.startswith(f"warning: another normbench doctor runs on cpu (process {intruders[0].pid}, ")


def test_who_waits_begins_when_the_other_has_ended(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "_POLL_S", 0.02)
    with other(at) as holder:
        timer = threading.Timer(0.3, holder.end)
        timer.start()
        done = sweep(*ONE_CELL, "--wait")
        timer.join()
    assert done.code == 0
    assert done.err.count(f"waiting: another normbench sweep runs on cpu (process {holder.pid}, ") == 1
    assert not any(Flag.SHARED_DEVICE in found for found in flags())


@pytest.mark.parametrize("command", ["sweep", "profile", "doctor"])
def test_waiting_and_sharing_exclude_each_other(command: str) -> None:
    done = normbench(command, "--wait", "--share-device")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: --share-device and --wait: ")


def test_a_place_that_cannot_be_written_is_warned_of_and_stops_nothing(at: Path) -> None:
    at.write_text("")
    done = sweep(*ONE_CELL, "--quiet")
    assert done.code == 0
    assert f"warning: {at} can't be used (Not a directory): another run on this device would go unnoticed" in done.err
    assert f"hint: {locks.VARIABLE} names another folder" in done.err


def test_nothing_is_left_of_the_locks_and_nothing_of_them_is_in_the_run(at: Path) -> None:
    assert sweep(*ONE_CELL).code == 0
    assert list((at / "cpu").iterdir()) == []
    assert not [path.name for path in Path("run").rglob("*") if path.name.startswith(".") or "lock" in path.name]


def test_a_sweep_that_fails_gives_the_device_back(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        assert len(list((at / "cpu").iterdir())) == 1
        raise StorageError("the disk is full")

    monkeypatch.setattr(RunFolder, "create", fail)
    assert sweep(*ONE_CELL).err == "error: the disk is full\n"
    assert list((at / "cpu").iterdir()) == []


def test_a_system_without_locks_is_warned_of_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def lock(_descriptor: int) -> bool:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(locks, "lock", lock)
    done = sweep(*ONE_CELL)
    assert done.code == 0
    assert "can't be used (Operation not supported): another run on this device would go unnoticed\n" in done.err
    assert "warning: run: can't be locked where it is: a second --resume of it would go unnoticed\n" in done.err


def test_a_resumption_of_a_folder_that_is_being_written_is_refused_and_changes_nothing() -> None:
    assert sweep(*ONE_CELL).code == 0
    results = Path("run") / "results.csv"
    results.write_text(results.read_text()[:-9])
    before = {path.name: path.read_bytes() for path in Path("run").iterdir() if path.is_file()}
    with only_writer(Path("run")):
        done = normbench("sweep", "--resume", "run")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: run: another normbench is writing it (process ")
    assert {path.name: path.read_bytes() for path in Path("run").iterdir() if path.is_file()} == before
    assert normbench("sweep", "--resume", "run").code == 0


class TestDoctor:
    @pytest.fixture(autouse=True)
    def _hurried(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compilation.warm_up, "__wrapped__", lambda _device: None)
        monkeypatch.setattr(doctor, "_LOAD_S", 0.01)
        monkeypatch.setattr(doctor, "_copy_bandwidth", lambda *_: None)
        monkeypatch.setattr(doctor, "_cells", lambda _device: [])

    def examined(self, *words: str) -> Done:
        return normbench("doctor", "--device", "cpu", "--max-seconds", "0.05", "--json", "--quiet", *words)

    def test_it_advises_to_wait_for_a_run_that_it_was_made_beside(self, at: Path) -> None:
        with other(at):
            found = json.loads(self.examined("--share-device").out)
        assert found["conditions"]["other_runs"] == 1
        assert found["advice"][0]["problem"] == "another run of normbench measured on this device meanwhile"

    def test_alone_it_says_that_there_was_none(self) -> None:
        found = json.loads(self.examined().out)
        assert found["conditions"]["other_runs"] == 0
        assert not any("of normbench" in advice["problem"] for advice in found["advice"])


class TestPrograms:
    """Other programs on a GPU, as the device tells how many there are: before the run, then after each cell."""

    @pytest.mark.parametrize(
        ("told", "flagged"),
        [
            ((0, 0, 0), (False, False)),
            ((0, 1, 0), (True, True)),
            ((2, 0, 0), (True, False)),
            ((None, None, 1), (False, True)),
        ],
        ids=["alone", "between the cells", "before the first", "unknown at first"],
    )
    def test_a_cell_is_flagged_where_they_were_there_before_or_after_it(
        self, told: tuple[int | None, ...], flagged: tuple[bool, ...]
    ) -> None:
        device, watch = FakeDevice(programs=list(told)), Neighbours("cuda:0", None)
        watch.look_around(device)
        found = [watch.marked(records(), device) for _ in flagged]
        assert tuple(Flag.SHARED_DEVICE in cell.results[0].flags for cell in found) == flagged

    def test_what_has_no_time_was_not_disturbed(self) -> None:
        watch = Neighbours("cuda:0", None)
        found = watch.marked(records(Status.OUT_OF_MEMORY), FakeDevice(programs=[1]))
        assert found.results[0].flags == ()

    @pytest.mark.parametrize(
        ("count", "said"), [(1, "another program uses the GPU"), (3, "3 other programs use the GPU")]
    )
    def test_they_are_warned_of_before_anything_is_measured(
        self, count: int, said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        Neighbours("cuda:0", None).look_around(FakeDevice(programs=[count]))
        err = capsys.readouterr().err
        assert err.startswith(f"warning: {said} (nvidia-smi names them): ")
        assert "shared_device" in err

    @pytest.mark.parametrize("count", [0, None])
    def test_where_there_are_none_or_nobody_knows_nothing_is_said(
        self, count: int | None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        Neighbours("cuda:0", None).look_around(FakeDevice(programs=[count]))
        assert capsys.readouterr().err == ""


class TestLoad:
    """A processor of four cores, and what other programs do on it at two looks."""

    @pytest.fixture
    def said(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> Callable[[int | None, float, float], str]:
        def look(threads: int | None, first: float, then: float) -> str:
            answers = iter((first, then))
            monkeypatch.setattr(other_load, "other_cores", lambda _seconds: next(answers))
            monkeypatch.setattr("psutil.cpu_count", lambda: 4)
            kind = "cpu" if threads else "cuda"
            Neighbours(kind, None).look_around(FakeDevice(info=make_device_info(kind=kind, threads=threads)))
            return capsys.readouterr().err

        return look

    @pytest.mark.parametrize(("first", "then"), [(0.0, 9.0), (0.4, 9.0), (1.3, 0.4)])
    def test_a_quiet_machine_and_a_moment_of_something_are_no_matter(
        self, said: Callable[[int | None, float, float], str], first: float, then: float
    ) -> None:
        assert said(4, first, then) == ""

    def test_above_a_tenth_of_the_threads_it_is_said_with_what_to_do(
        self, said: Callable[[int | None, float, float], str]
    ) -> None:
        warning, hint = said(4, 0.41, 1.26).splitlines()
        assert warning.startswith("warning: other programs keep 1.3 of 4 cores busy: ")
        assert hint == "hint: stop them; results beside them are flagged busy_machine"
        assert said(2, 0.3, 0.3) != ""

    def test_on_a_gpu_it_matters_where_no_core_is_left_to_launch_from(
        self, said: Callable[[int | None, float, float], str]
    ) -> None:
        assert said(None, 3.0, 3.0) == ""
        assert "4 cores busy: launching kernels has to wait, which is in wall times" in said(None, 3.2, 3.2)


def test_before_a_sweep_the_load_is_looked_at_once_and_warned_of_with_quiet_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = list[float]()

    def other_cores(seconds: float) -> float:
        looks.append(seconds)
        return 99.0

    monkeypatch.setattr(other_load, "other_cores", other_cores)
    done = sweep(*ONE_CELL, "--quiet")
    assert done.code == 0
    assert done.err.startswith("warning: other programs keep 99.0 of ")
    assert looks == [0.3, 0.3]
    again = normbench("sweep", "--resume", "run", "--quiet")
    assert (again.code, again.err) == (0, ""), "nothing is missing, so nothing is measured"


def test_a_claim_is_made_for_what_the_device_is_and_not_for_its_number() -> None:
    first, second, same = (Found(name=f"cuda:{n}", identity=f"GPU-{i}") for n, i in ((0, 7), (1, 8), (3, 7)))
    sharing = Sharing(what="sweep")
    with claimed(first, sharing), claimed(second, sharing), pytest.raises(BusyError, match="runs on cuda:3"):
        claimed(same, sharing).__enter__()
