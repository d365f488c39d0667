"""``normbench doctor``: what is printed, as text and as JSON, and what is refused."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest
import torch

from normbench import compilation, doctor
from tests.cli.command import normbench


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation.warm_up, "__wrapped__", lambda _device: None)
    monkeypatch.setattr(doctor, "_LOAD_S", 0.01)


def test_results_go_to_stdout_and_what_is_being_done_to_stderr() -> None:
    done = normbench("doctor", "--device", "cpu", "--max-seconds", "1.5")
    assert done.code == 0
    assert "Noise floor: nn-layernorm against itself, where the truth is 1" in done.out
    assert "cannot be told apart" in done.out
    assert done.err.splitlines()[0] == "looking at the device"
    assert "nn-layernorm against itself: 64×256 fp32 forward warm" in done.err.splitlines()


def test_json_holds_everything_with_numbers_as_numbers_and_the_advice() -> None:
    done = normbench("doctor", "--device", "cpu", "--max-seconds", "1.5", "--json", "--quiet")
    found = json.loads(done.out)
    assert (done.code, done.err) == (0, "")
    assert found["device"]["kind"] == "cpu"
    replaces = torch.version.cuda is not None and hasattr(torch.backends, "python_native")  # none for CPUs, or old
    assert ("triton" in found["environment"]["native_dsls"]) == (replaces and find_spec("triton") is not None)
    assert 1 <= len(found["noise"]) <= 6  # a busy machine leaves too few placements for an interval
    assert all(noise["least_difference"] > 0 for noise in found["noise"])
    assert {"problem", "remedy"} == set(found["advice"][0])
    assert found["compiling"]["works"] in (True, False)


@pytest.mark.parametrize("words", [["--device", "cuda:99"], ["--max-seconds", "0"], ["--bogus"]])
def test_what_cannot_be_is_refused_before_anything_is_done(words: list[str]) -> None:
    done = normbench("doctor", *words)
    assert done.code == 2
    assert done.out == ""
