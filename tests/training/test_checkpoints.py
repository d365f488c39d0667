from __future__ import annotations

import os
import pickle
from hashlib import sha256
from pathlib import Path

import pytest
import torch

from normbench.errors import StorageError
from normbench.training.checkpoints import Checkpoint


@pytest.fixture
def place(tmp_path: Path) -> Checkpoint:
    return Checkpoint(path=tmp_path / "state")


def file_of(place: Checkpoint) -> Path:
    assert place.path is not None
    return place.path


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_what_was_written_is_read_again_and_stays(place: Checkpoint) -> None:
    place.write("key", {"weights": torch.arange(5.0), "points": [{"by_corpus": (1.5, 2.5)}]})

    for _time in range(2):
        state = place.read("key")
        assert state is not None
        assert torch.equal(state["weights"], torch.arange(5.0))
        assert state["points"] == [{"by_corpus": (1.5, 2.5)}]
    assert names_in(file_of(place).parent) == ["state"]


def test_nothing_is_read_where_nothing_was_written(place: Checkpoint) -> None:
    assert place.read("key") is None


def test_without_a_path_nothing_is_kept() -> None:
    nowhere = Checkpoint(path=None)
    nowhere.write("key", {})
    nowhere.remove()

    assert nowhere.read("key") is None


def test_a_state_of_something_else_is_removed(place: Checkpoint) -> None:
    place.write("other", {"step": 1})

    assert place.read("key") is None
    assert not file_of(place).exists()


@pytest.mark.parametrize("at", [0, 70, 300, -1])
def test_a_state_with_one_bit_changed_is_removed(at: int, place: Checkpoint) -> None:
    place.write("key", {"weights": torch.ones(1000)})
    data = bytearray(file_of(place).read_bytes())
    data[at] ^= 1
    file_of(place).write_bytes(data)

    assert place.read("key") is None
    assert not file_of(place).exists()


@pytest.mark.parametrize("size", [0, 10, 64, 65, 2000])
def test_a_torn_state_is_removed(size: int, place: Checkpoint) -> None:
    place.write("key", {"weights": torch.ones(1000)})
    file_of(place).write_bytes(file_of(place).read_bytes()[:size])

    assert place.read("key") is None
    assert not file_of(place).exists()


class Bomb:
    def __repr__(self) -> str:
        return "bomb"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("exploded",)


@pytest.mark.parametrize("content", [Bomb(), {"key": "key", "state": Bomb()}, [1], "key"], ids=repr)
def test_data_is_no_code_even_with_the_right_digest(
    content: object, place: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = pickle.dumps(content, protocol=2)
    monkeypatch.chdir(file_of(place).parent)
    file_of(place).write_bytes(sha256(payload).hexdigest().encode() + payload)

    assert place.read("key") is None
    assert names_in(Path()) == []


def test_a_pipe_is_not_waited_for(place: Checkpoint) -> None:
    os.mkfifo(file_of(place))

    assert place.read("key") is None


def test_a_write_that_fails_leaves_the_last_state_and_no_half_file(
    place: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("key", {"step": 1})

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="can't be written: No space left on device"):
        place.write("key", {"step": 2})

    assert place.read("key") == {"step": 1}
    assert names_in(file_of(place).parent) == ["state"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="gone/state: can't be written"):
        Checkpoint(path=tmp_path / "gone" / "state").write("key", {})
