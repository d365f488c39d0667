"""A kill between any two changes of a folder, and in the middle of any write: every state that it can leave."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from normbench.storage import RunFolder
from tests.runs import make_header
from tests.storage.operations import Operation, listed, watched
from tests.sweeping import THREE, contents

pytestmark = pytest.mark.usefixtures("undelayed")

State = dict[str, bytes | None]
"""Files by their names below a folder, and None for a folder."""


def state_of(root: Path) -> State:
    paths = sorted(root.rglob("*"))
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in paths}


def states_of(root: Path, act: Callable[[], object]) -> list[State]:
    """Every state of ``root`` that a kill during ``act`` can leave, each unlike the one before."""
    states = [state_of(root)]

    def keep(state: State) -> None:
        if state != states[-1]:
            states.append(state)

    def see(operation: Operation) -> None:
        now = state_of(root)
        if operation.is_of_a_file:
            name = str(operation.path.relative_to(root))
            data, before = now[name] or b"", len(states[-1].get(name) or b"")
            for size in sorted({before, before + 1, (before + len(data)) // 2, len(data) - 1}):
                if before <= size < len(data):
                    keep({**now, name: data[:size]})
        keep(now)

    with watched(root, see):
        act()
    keep(state_of(root))
    return states


def restored(state: State, root: Path) -> Path:
    """A folder in that state; where the run is in it."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for name, data in state.items():
        if data is None:
            (root / name).mkdir()
        else:
            (root / name).write_bytes(data)
    return root / "run"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What is in the folder of a sweep that nobody disturbed."""
    path = tmp_path_factory.mktemp("expected") / "run"
    THREE.run(path)
    return contents(path)


def assert_all_recover(states: Sequence[State], root: Path, expected: dict[str, bytes]) -> None:
    """Each state loads, is gone on with, and ends as if nothing had been."""
    wanted = {f"run/{name}": data for name, data in expected.items() if not is_report(name)}
    for state in states:
        path = restored(state, root)
        if path.exists():
            THREE.assert_whole_cells(path)
        THREE.run(path, report=False)
        found = {name: data for name, data in contents(root).items() if not is_report(name)}
        assert found == wanted, sorted(state)
        THREE.assert_every_case_once(path)


def is_report(name: str) -> bool:
    return name.endswith(("verdict.md", "report.html"))


def test_a_kill_at_any_moment_of_a_sweep_loses_no_cell_and_doubles_none(
    tmp_path: Path, expected: dict[str, bytes]
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    states = states_of(root, lambda: THREE.run(root / "run"))

    assert len(states) > 100
    assert states[0] == {}
    assert_all_recover(states, tmp_path / "again", expected)


@pytest.mark.parametrize("begun", ["killed in a cell", "interrupted", "packed, and its last cell lost"])
def test_a_kill_at_any_moment_of_going_on_loses_no_cell_and_doubles_none(
    tmp_path: Path, expected: dict[str, bytes], begun: str
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    path = root / "run"
    if begun == "killed in a cell":
        folder = RunFolder.create(path, make_header(THREE.plan))
        folder.write(THREE.records_of(THREE.cells[0]))
        with pytest.raises(ZeroDivisionError), watched(path, fail_at_the_results):
            folder._write(THREE.records_of(THREE.cells[1]))
    elif begun == "interrupted":
        THREE.run(path, stop=2)
    else:
        THREE.run(path)
        lines = (path / "results.csv").read_text(encoding="utf-8").splitlines(keepends=True)
        (path / "results.csv").write_text("".join(lines[:-3])[:-7], encoding="utf-8")
    states = states_of(root, lambda: THREE.run(path, report=False))

    assert len(states) > 40
    assert_all_recover(states, tmp_path / "again", expected)


def fail_at_the_results(operation: Operation) -> None:
    if operation.path.name == "results.csv":
        raise ZeroDivisionError


def test_whatever_is_renamed_was_on_the_disk_before_and_its_name_is_soon_after(tmp_path: Path) -> None:
    done = listed(tmp_path, lambda: THREE.run(tmp_path / "run"))
    renamed = [n for n, operation in enumerate(done) if operation.name in ("replace", "rename")]

    names = {target.name for n in renamed if (target := done[n].target) is not None}
    assert names >= {"run", "run.json", "samples.csv.gz", "verdict.md"}
    for number in renamed:
        operation, before = done[number], done[number - 1]
        after = next(o for o in done[number + 1 :] if o.name == "fsync")
        assert after.path == operation.path.parent
        assert operation.name == "rename" or (before.name, before.path) == ("fsync", operation.path)
