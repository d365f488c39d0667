from __future__ import annotations

import re
import tomllib
from pathlib import Path

import normbench
from normbench.gpu_acceptance.packages import FEATURES, NEEDED, is_here, lacking, missed

PYPROJECT = Path(normbench.__file__).parents[1] / "pyproject.toml"


def test_every_requirement_of_the_project_is_told_of_where_it_is_not_here() -> None:
    required = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]
    names = {re.split(r"[<>=!~ ]", one, maxsplit=1)[0] for one in required}
    assert names <= {*NEEDED, *(name for name, _ in FEATURES.values())}


def test_here_nothing_is_lacking_that_is_needed() -> None:
    assert lacking() == []
    assert is_here("torch")
    assert not is_here("no_such_package")


def test_what_is_needed_and_what_is_only_missed_are_told_apart_by_name() -> None:
    without = {"pydantic", "tomlkit", "torch_tb_profiler"}
    assert lacking(lambda module: module not in without) == ["pydantic"]
    found = missed(lambda module: module not in without)
    assert found["tomlkit"] == "--save-plan"
    assert found["torch-tb-profiler"] == "profile --serve"
    assert "pydantic" not in found


def test_packages_of_kernels_that_are_not_here_are_named() -> None:
    assert missed(lambda _module: True).get("apex") == "its kernels"
