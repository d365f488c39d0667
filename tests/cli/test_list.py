from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from normbench.implementations import ALL, PACKAGED, catalog
from normbench.optional import OPTIONAL
from tests import stand_ins
from tests.cli.command import normbench
from tests.cli.consoles import SEQUENCE, on_terminal
from tests.runs import make_device

TURING = SimpleNamespace(
    info=make_device(kind="cuda", name="Tesla T4", capability=(7, 5), native_bf16=False), torch_device="cuda:0"
)


H100 = SimpleNamespace(info=make_device(kind="cuda", name="NVIDIA H100", capability=(9, 0)), torch_device="cuda:0")


@pytest.fixture(autouse=True)
def there_is_a_compiler_and_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normbench.compilation.missing_compiler", lambda _kind: None)
    stand_ins.uninstall_all(monkeypatch)


def test_every_implementation_is_listed_with_formula_provider_and_what_it_is() -> None:
    done = normbench("list", "--device", "cpu")
    lines = done.out.splitlines()

    assert (done.code, done.err) == (0, "")
    for implementation in catalog().implementations:
        (line,) = (line for line in lines if line.split()[:1] == [implementation.name])
        available = "yes" if implementation in ALL else "no"
        assert line.split()[1:4] == [implementation.op, implementation.provider, available]
        assert implementation.summary in line


def test_a_program_reads_the_same_as_json() -> None:
    done = normbench("list", "--device", "cpu", "--json")
    found = json.loads(done.out)

    assert (done.code, done.err) == (0, "")
    assert [row["name"] for row in found] == list(catalog().names)
    assert {(row["available"], row["reason"]) for row in found[: len(ALL)]} == {("yes", "")}
    assert {row["available"] for row in found[len(ALL) :]} == {"no"}


def test_one_whose_package_is_missing_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normbench.device.detect", lambda _name: H100)
    found = {row["name"]: row for row in json.loads(normbench("list", "--json").out)}

    assert (found["liger-rmsnorm"]["available"], found["liger-rmsnorm"]["reason"]) == (
        "no",
        "liger-kernel is not installed: pip install liger-kernel",
    )
    assert all("is not installed" in found[one.name]["reason"] for one in PACKAGED)


def test_one_that_runs_in_some_mode_alone_is_partly_available_with_the_reason_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr("normbench.device.detect", lambda _name: H100)
    for package in OPTIONAL:
        stand_ins.install(monkeypatch, tmp_path, package)
    found = {row["name"]: (row["available"], row["reason"]) for row in json.loads(normbench("list", "--json").out)}

    only = ("partly", "inference only: it has no backward")
    assert found["flashinfer-rmsnorm"] == found["flashinfer-layernorm"] == found["quack-layernorm"] == only
    assert found["liger-rmsnorm"] == found["quack-rmsnorm"] == found["te-layernorm"] == ("yes", "")


@pytest.mark.parametrize("columns", [80, 120])
def test_on_a_narrow_terminal_every_name_stays_whole_and_no_line_is_wider(columns: int) -> None:
    code, sent = on_terminal({}, columns, "list", "--device", "cpu")
    lines = [SEQUENCE.sub("", line).rstrip() for line in sent.splitlines()]

    assert code == 0
    assert max(map(len, lines)) <= columns
    first = [line.split()[0] for line in lines if line[:2].strip()]
    assert [word for word in first if word in catalog().names] == list(catalog().names)


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
    assert [line.split()[0] for line in lines] == [name for name in catalog().names if name.startswith("compile-")]
    assert all(line.count("no C++ compiler: install g++") == 1 and " no " in line for line in lines)


def test_a_device_that_is_not_there_is_refused_naming_those_that_are() -> None:
    done = normbench("list", "--device", "cuda:99")

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: --device cuda:99: there is no such device here\nhint: available: cpu")
