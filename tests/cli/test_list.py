from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from normbench.implementations import ALL, NAMES
from tests.cli.command import normbench
from tests.runs import make_device

TURING = SimpleNamespace(
    info=make_device(kind="cuda", name="Tesla T4", capability=(7, 5), native_bf16=False), torch_device="cuda:0"
)


@pytest.fixture(autouse=True)
def there_is_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normbench.compilation.missing_compiler", lambda _kind: None)


def test_every_implementation_is_listed_with_formula_provider_and_what_it_is() -> None:
    done = normbench("list", "--device", "cpu")
    lines = done.out.splitlines()

    assert (done.code, done.err) == (0, "")
    for implementation in ALL:
        (line,) = (line for line in lines if line.split()[:1] == [implementation.name])
        assert line.split()[1:4] == [implementation.op, implementation.provider, "yes"]
        assert implementation.summary in line


def test_a_program_reads_the_same_as_json() -> None:
    done = normbench("list", "--device", "cpu", "--json")
    found = json.loads(done.out)

    assert (done.code, done.err) == (0, "")
    assert [row["name"] for row in found] == list(NAMES)
    assert {(row["available"], row["reason"]) for row in found} == {("yes", "")}


def test_what_a_device_can_only_partly_do_says_for_which_dtype_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normbench.device.detect", lambda _name: TURING)
    found = {row["name"]: row for row in json.loads(normbench("list", "--json").out)}

    assert found["compile-rmsnorm"]["available"] == "partly"
    assert found["compile-rmsnorm"]["reason"].startswith("bf16: Tesla T4 emulates bfloat16: Triton can't build it")
    assert found["nn-rmsnorm"]["available"] == "yes"


def test_what_is_not_there_at_all_says_why_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normbench.compilation.missing_compiler", lambda _kind: "no C++ compiler: install g++")
    done = normbench("list", "--device", "cpu")

    lines = [line for line in done.out.splitlines() if "no C++ compiler" in line]
    assert [line.split()[0] for line in lines] == [name for name in NAMES if name.startswith("compile-")]
    assert all(line.count("no C++ compiler: install g++") == 1 and " no " in line for line in lines)


def test_a_device_that_is_not_there_is_refused_naming_those_that_are() -> None:
    done = normbench("list", "--device", "cuda:99")

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: --device cuda:99: there is no such device here\nhint: available: cpu")
