"""One real sweep through the installed command: real modules, really compiled, really timed, and read back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from normbench.device import CpuDevice
from normbench.implementations import NAMES
from normbench.records import LEAST_PLACEMENTS
from normbench.storage import load
from tests.cli.command import rows

TWIN = "nn-layernorm again"
"""The baseline once more: the A/A test that runs along."""

SWEEP = (
    *("sweep", "--device", "cpu", "--widths", "64", "--rows", "32", "--dtype", "fp32", "--modes", "forward"),
    *("--placements", "5", "--processes", "1", "--max-seconds", "3"),
)
COMPILED = ("compile-layernorm", "compile-rmsnorm")
CANDIDATES = [name for name in NAMES if name not in ("copy", "nn-layernorm")]
TENSOR = 32 * 64 * 4
PARAMETER = 64 * 4
FLOOR_BYTES = {
    "copy": 2 * TENSOR,
    **{f"{provider}-layernorm": 2 * TENSOR + 2 * PARAMETER for provider in ("eager", "nn", "compile")},
    **{f"{provider}-rmsnorm": 2 * TENSOR + PARAMETER for provider in ("eager", "nn", "compile")},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("end-to-end")


@pytest.fixture(scope="module")
def done(folder: Path) -> subprocess.CompletedProcess[str]:
    """The command, run in an empty folder."""
    command = Path(sys.executable).with_name("normbench")
    return subprocess.run(
        [command, *SWEEP, "--out", "run"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def run(done: subprocess.CompletedProcess[str], folder: Path) -> Path:
    """The folder it left."""
    assert done.returncode == 0, done.stderr
    return folder / "run"


@pytest.fixture(scope="module")
def results(run: Path) -> pd.DataFrame:
    return pd.read_csv(run / "results.csv").set_index("implementation")


@pytest.fixture(scope="module")
def logs(run: Path) -> pd.DataFrame:
    """Logarithms of the seconds of one call: implementations across, placements and rounds down."""
    samples = pd.read_csv(run / "samples.csv.gz")
    samples["log"] = np.log(samples["seconds"] / samples["calls"])
    return samples.pivot(index=["process", "placement", "round"], columns="implementation", values="log")


def estimate(logs: pd.Series) -> float:
    """The mean over the middle half of the placements of the median over rounds, as a factor."""
    medians = np.sort(logs.groupby(["process", "placement"]).median())
    cut = len(medians) // 4 if len(medians) >= 10 else 0
    return float(np.exp(medians[cut : len(medians) - cut].mean()))


def test_every_case_is_one_row_and_ok(results: pd.DataFrame) -> None:
    assert tuple(results.index) == NAMES
    assert set(results["status"]) == {"ok"}
    assert results["reason"].isna().all()
    assert set(results["out_dtype"]) == {"fp32"}
    assert results["max_rel_error"].between(0, 1e-5).all()


def test_floor_bytes_are_those_of_the_formula_and_give_the_bandwidth(results: pd.DataFrame) -> None:
    assert results["floor_bytes"].to_dict() == FLOOR_BYTES
    bandwidth = results["floor_bytes"] / results["time_s"]
    assert results["effective_bytes_per_s"].to_numpy() == pytest.approx(bandwidth.to_numpy())


def test_compile_time_stands_apart_and_with_the_compiled_alone(results: pd.DataFrame) -> None:
    assert tuple(results.index[results["compile_s"].notna()]) == COMPILED
    assert (results.loc[list(COMPILED), "compile_s"] > 0).all()
    assert [str(dynamic) for dynamic in results.loc[list(COMPILED), "dynamic"]] == ["False", "False"]
    assert results.drop(list(COMPILED))["dynamic"].isna().all()


def test_times_are_those_of_the_samples(results: pd.DataFrame, logs: pd.DataFrame) -> None:
    for name, row in results.iterrows():
        assert row["time_s"] == pytest.approx(estimate(logs[name]))
        if row["placements"] >= LEAST_PLACEMENTS:
            assert row["time_low_s"] <= row["time_s"] <= row["time_high_s"]
        assert row["samples"] == logs[name].count()
        assert row["placements"] == logs[name].groupby("placement").ngroups >= 2
        assert row["floor_ratio"] == pytest.approx(estimate(logs[name] - logs["copy"]))


def test_speedups_are_baseline_by_candidate_in_the_same_rounds(run: Path, logs: pd.DataFrame) -> None:
    comparisons = pd.read_csv(run / "comparisons.csv")

    assert list(comparisons["candidate"]) == CANDIDATES
    assert set(comparisons["baseline"]) == {"nn-layernorm"}
    for row in comparisons.itertuples():
        assert row.speedup == pytest.approx(estimate(logs["nn-layernorm"] - logs[row.candidate]))
        assert not row.speedup_low > row.speedup
        assert not row.speedup_high < row.speedup
        assert (row.reason == "too_few_placements") == (row.speedup_low != row.speedup_low)


def test_everyone_was_timed_once_in_every_round_and_in_changing_order(run: Path, logs: pd.DataFrame) -> None:
    samples = pd.read_csv(run / "samples.csv.gz")

    assert set(logs.columns) == {*NAMES, TWIN}
    assert not logs.isna().to_numpy().any()
    rounds = samples.sort_values("position").groupby(["process", "placement", "round"])
    assert all(list(one_round["position"]) == list(range(len(NAMES) + 1)) for _, one_round in rounds)
    assert len({tuple(one_round["implementation"]) for _, one_round in rounds}) > 1
    assert (samples["seconds"] > 0).all()
    assert set(samples["clock"]) == {"wall"}


def test_the_baseline_competed_with_itself_and_the_run_says_how_far_they_differ(
    run: Path, logs: pd.DataFrame
) -> None:
    (row,) = rows(run / "cells.csv")

    assert (row["noise_implementation"], row["width"], row["noise_fresh"]) == ("nn-layernorm", "64", "true")
    assert float(row["noise_ratio"]) == pytest.approx(estimate(logs["nn-layernorm"] - logs[TWIN]))
    assert "nn-layernorm against itself gives" in (run / "verdict.md").read_text(encoding="utf-8").replace("\\", "")


def test_the_run_says_where_its_time_went(run: Path) -> None:
    (row,) = rows(run / "cells.csv")
    spent = {name: float(value) for name, value in row.items() if name.endswith("_s")}
    parts = {name: seconds for name, seconds in spent.items() if name != "elapsed_s"}

    assert spent["timed_s"] > 0
    assert spent["compiling_s"] > 0
    assert sum(parts.values()) <= spent["elapsed_s"] * 1.001


def test_the_verdict_names_the_device_first_and_stdout_ends_with_it(
    done: subprocess.CompletedProcess[str], run: Path
) -> None:
    device = CpuDevice().info.name

    assert load(run).header.device.name == device
    first, *_ = (run / "verdict.md").read_text(encoding="utf-8").splitlines()
    assert f"on {device}, 32 rows: " in first.replace("\\", "").replace("**On", "**on")
    assert f"n {device}, 32 rows: " in done.stdout
    assert done.stderr.splitlines()[-1] == "written: run/ (read verdict.md first)"


def test_every_picture_is_there_as_png_and_svg(run: Path) -> None:
    pictures = {path.name: path.read_bytes() for path in (run / "plots").iterdir()}

    assert set(pictures) == {f"{k}-forward.{e}" for k in ("time", "speedup", "bandwidth") for e in ("png", "svg")}
    for name, data in pictures.items():
        if name.endswith("png"):
            assert data.startswith(b"\x89PNG\r\n\x1a\n")
        else:
            words = [text.text for text in ET.fromstring(data.decode()).iter("{http://www.w3.org/2000/svg}text")]
            assert "width (fp32)" in words
            assert set(CANDIDATES) <= set(words)


def test_the_header_holds_the_command_that_was_run_and_the_software(run: Path) -> None:
    header = json.loads((run / "run.json").read_text(encoding="utf-8"))

    assert header["command"][:4] == ["normbench", "sweep", "--device", "cpu"]
    assert header["plan"]["widths"] == [64]
    assert header["environment"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert [info["name"] for info in header["implementations"]] == list(NAMES)
