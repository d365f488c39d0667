from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from normbench.gpu_acceptance.parts import ON_A_GPU, REHEARSED, Kind, Part
from tests.cli.command import normbench

MEASURING = [part for part in (*ON_A_GPU, *REHEARSED) if part.kind not in (Kind.DOCTOR, Kind.TESTS)]
WIDTHS = (256, 512, 1024, 2048, 4096, 8192, 16384)
PASSES = ("forward", "backward")


def planned(part: Part) -> dict[str, Any]:
    """What a part would measure, by its own command, in words."""
    module, *words = part.words(Path("out"), "cpu", ())
    assert module == "normbench"
    assert words[-2:] == ["--out", str(Path("out", part.name))]
    done = normbench(*words[:-2], "--dry-run", "--json")
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def cells(kind: Kind) -> set[tuple[str, int, int, str, str]]:
    """Mode, rows, width, dtype and cache of everything that parts of a kind measure on a GPU."""
    each = [planned(part)["cells"] for part in ON_A_GPU if part.kind is kind]
    keys = ("mode", "rows", "width", "dtype", "cache")
    return {tuple(cell[key] for key in keys) for cells in each for cell in cells}  # type: ignore[misc]


@pytest.mark.parametrize("part", MEASURING, ids=lambda part: f"{part.name} {'gpu' if part in ON_A_GPU else 'cpu'}")
def test_the_command_of_every_part_is_one_that_there_is(part: Part) -> None:
    assert planned(part)


def test_on_a_gpu_the_sweeps_go_over_widths_rows_dtypes_passes_and_cache_states() -> None:
    some = (1024, 4096, 16384)
    assert cells(Kind.SWEEP) == {
        *product(PASSES, (4096,), WIDTHS, ("bf16",), ("cold",)),
        *product(PASSES, (32768,), (4096,), ("bf16",), ("cold",)),
        *product(PASSES, (4096,), some, ("fp16", "fp32"), ("cold",)),
        *product(PASSES, (4096,), some, ("bf16",), ("warm",)),
    }


def test_what_is_profiled_is_measured_in_a_sweep_too() -> None:
    assert cells(Kind.PROFILE) <= cells(Kind.SWEEP)


@pytest.mark.parametrize("parts", [ON_A_GPU, REHEARSED], ids=["gpu", "cpu"])
def test_there_is_a_part_of_each_kind_and_each_leaves_something_of_its_own(parts: tuple[Part, ...]) -> None:
    assert {part.kind for part in parts} == set(Kind)
    assert len({part.path(Path()) for part in parts}) == len(parts)


def test_the_tests_are_told_to_pytest_by_their_marker_and_the_doctor_prints_what_programs_read() -> None:
    of_kind = {part.kind: part.words(Path("out"), "cuda:1", ("tests/gpu",)) for part in ON_A_GPU}
    assert of_kind[Kind.TESTS][:3] == ("pytest", "-m", "gpu")
    assert f"--junitxml={Path('out', 'tests.xml')}" in of_kind[Kind.TESTS]
    assert of_kind[Kind.TESTS][-1] == "tests/gpu"
    assert of_kind[Kind.DOCTOR][-3:] == ("--device", "cuda:1", "--json")
