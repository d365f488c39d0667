from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from normbench import compilation


@pytest.fixture(autouse=True)
def _forget_graphs() -> Iterator[None]:
    compilation.reset()
    yield
    compilation.reset()


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def graphs_of(call: Callable[[], object]) -> int:
    before = compilation.graph_count()
    call()
    return compilation.graph_count() - before


def test_a_graph_is_counted_when_it_is_built_and_not_when_it_is_used_again() -> None:
    compiled = torch.compile(double, backend="eager", dynamic=False)

    assert graphs_of(lambda: compiled(torch.ones(3))) == 1
    assert graphs_of(lambda: compiled(torch.zeros(3))) == 0
    assert graphs_of(lambda: compiled(torch.ones(4))) == 1


def test_after_a_reset_the_same_graph_is_built_again() -> None:
    compiled = torch.compile(double, backend="eager", dynamic=False)
    compiled(torch.ones(3))
    compilation.reset()

    assert graphs_of(lambda: compiled(torch.ones(3))) == 1


def test_a_reset_does_not_turn_the_count_back() -> None:
    torch.compile(double, backend="eager", dynamic=False)(torch.ones(3))
    before = compilation.graph_count()
    compilation.reset()

    assert compilation.graph_count() >= before


def test_an_empty_cache_is_a_folder_of_its_own_that_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/what/was/set")
    with compilation.empty_cache():
        folder = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        assert folder.is_dir()
        assert not any(folder.iterdir())

    assert not folder.exists()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == "/what/was/set"


def test_the_throwaway_compile_is_done_once_a_process_and_device(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []

    def fake_compile(function: Callable[[torch.Tensor], torch.Tensor], **_options: object) -> object:
        compiled.append(function)
        return function

    monkeypatch.setattr(torch, "compile", fake_compile)
    compilation.warm_up.cache_clear()
    try:
        with torch.no_grad():  # a sweep may come from anywhere; the throwaway has a backward all the same
            compilation.warm_up("cpu")
            compilation.warm_up("cpu")
    finally:
        compilation.warm_up.cache_clear()

    assert len(compiled) == 1


def test_a_cpu_without_a_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)

    reason = compilation.missing_compiler("cpu")
    assert reason is not None
    assert "install g++" in reason


@pytest.mark.parametrize(("name", "cxx"), [("g++", None), ("clang++", None), ("my-compiler", "my-compiler")])
def test_any_compiler_that_inductor_would_find_will_do(
    name: str, cxx: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / name
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    if cxx is None:
        monkeypatch.delenv("CXX", raising=False)
    else:
        monkeypatch.setenv("CXX", cxx)

    assert compilation.missing_compiler("cpu") is None


def test_a_gpu_without_triton_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)

    reason = compilation.missing_compiler("cuda")
    assert reason is not None
    assert "pip install triton" in reason


def test_a_gpu_with_triton_lacks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", sys)

    assert compilation.missing_compiler("cuda") is None


def entered_by(call: Callable[[], object]) -> list[bool]:
    with compilation.compiled_frames() as entered:
        call()
    return entered


@pytest.mark.parametrize("fullgraph", [True, False])
def test_compiled_code_that_runs_is_seen_and_what_runs_eagerly_instead_is_not(fullgraph: bool) -> None:
    compiled = torch.compile(double, backend="eager", dynamic=False, fullgraph=fullgraph)
    compiled(torch.ones(3))

    assert entered_by(lambda: compiled(torch.ones(3))) == [True]
    assert not any(entered_by(lambda: compiled(torch.ones(4)))), "its guards do not let it run"
    with torch.compiler.set_stance("force_eager"):
        assert entered_by(lambda: compiled(torch.ones(3))) == []
    assert entered_by(lambda: double(torch.ones(3))) == []


def test_whoever_listened_to_dynamo_before_listens_again_afterwards() -> None:
    compiled = torch.compile(double, backend="eager", dynamic=False)
    compiled(torch.ones(3))
    with compilation.compiled_frames() as outer:
        entered_by(lambda: compiled(torch.ones(3)))
        assert outer == []
        compiled(torch.ones(3))

    assert outer == [True]
