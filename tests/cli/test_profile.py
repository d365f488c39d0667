"""``normbench profile``, end to end: files, tables, traces, and TensorBoard with the real plugin."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pandas as pd
import pytest

from normbench.cli import serving
from normbench.reporters import statements
from normbench.storage import load
from tests.cli.command import PLAIN, Done, normbench

PROFILE = ("--device", "cpu", "--rows", "2048", "--widths", "256", "--dtype", "fp32", "--max-seconds", "0.2")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    """A profile of what is not compiled, and its folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("profile"))
        done = normbench("profile", *PROFILE, *PLAIN, "--mode", "forward", "--out", "run", "--quiet")
        assert done.code == 0, done.err
        return done, Path("run").absolute()


def test_bytes_come_out_as_counted_by_hand(ran: tuple[Done, Path]) -> None:
    """N09."""
    traffic = pd.read_csv(ran[1] / "traffic.csv").set_index("implementation")
    assert traffic["op_bytes"].to_dict() == {
        "copy": 4_194_304,
        "eager-rmsnorm": 14_730_240,
        "nn-layernorm": 4_212_736,
    }
    assert traffic.loc["eager-rmsnorm", "floor_bytes"] == 4_195_328
    assert traffic.loc["eager-rmsnorm", "amplification"] == pytest.approx(3.51, abs=0.005)
    assert traffic.loc["eager-rmsnorm", "launches"] == 6
    assert traffic["findings"].isna().all()


def test_the_count_and_the_profile_are_rows_of_their_own(ran: tuple[Done, Path]) -> None:
    kernels = pd.read_csv(ran[1] / "kernels.csv")
    chain = kernels[kernels["implementation"] == "eager-rmsnorm"]
    counted, seen = (chain[chain["source"] == source] for source in ("count", "profile"))
    assert list(counted["name"]) == ["pow", "mean", "add", "rsqrt", "mul"]
    assert set(seen["name"]) == set(counted["name"])
    assert counted["time_s"].isna().all()
    assert seen["share"].sum() == pytest.approx(1.0)
    assert (seen["time_s"] > 0).all()


def test_the_sweeps_columns_are_filled(ran: tuple[Done, Path]) -> None:
    results = pd.read_csv(ran[1] / "results.csv").set_index("implementation")
    assert results.loc["nn-layernorm", "saved_bytes"] == 2 * 2048 * 4
    assert (results["peak_memory_bytes"] >= 2048 * 256 * 4).all()


def test_a_sentence_says_whether_traffic_explains_the_time(ran: tuple[Done, Path]) -> None:
    done, folder = ran
    judged = "eager-rmsnorm moves 3.5 times the bytes of nn-layernorm and takes"
    said = "Other programs ran while this was timed" if statements.busy_cells(load(folder)) else judged
    assert said in done.out
    assert said in (folder / "verdict.md").read_text(encoding="utf-8").replace("\\", "")
    assert (folder / "plots" / "traffic-forward.png").stat().st_size > 10_000
    assert (folder / "plots" / "roofline-forward.svg").exists()


def test_the_folder_is_a_sweeps_and_its_command_repeats_it(ran: tuple[Done, Path]) -> None:
    run = load(ran[1])
    assert run.is_complete
    assert "--profile" in run.header.command
    assert {p.case.implementation for p in run.profiles} == {"copy", "eager-rmsnorm", "nn-layernorm"}
    assert normbench("report", ran[1]).code == 0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def fetch(url: str, patience_s: float = 90.0) -> bytes:
    """What answers there, as soon as something does."""
    until = time.monotonic() + patience_s
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return bytes(answer.read())
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


def test_tensorboards_plugin_shows_each_implementation_as_a_run(ran: tuple[Done, Path]) -> None:
    """N28, with the real plugin."""
    port = free_port()
    words = serving.command(ran[1] / "traces", port=port)
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as board:
        try:
            at = f"http://127.0.0.1:{port}/data/plugin/pytorch_profiler"
            until = time.monotonic() + 90
            runs: list[str] = []
            while len(runs) < 3 and time.monotonic() < until:
                runs = json.loads(fetch(f"{at}/runs"))["runs"]
                time.sleep(0.5)
            assert sorted(runs) == ["copy", "eager-rmsnorm", "nn-layernorm"]
            views = json.loads(fetch(f"{at}/views?run=eager-rmsnorm"))
            assert {"Overview", "Operator", "Trace"} <= {
                view if isinstance(view, str) else view["name"] for view in views
            }
            (worker,) = json.loads(fetch(f"{at}/workers?run=eager-rmsnorm&view=Overview"))
            assert b"mul" in fetch(
                f"{at}/operation/table?run=eager-rmsnorm&worker={worker}&span=1&group_by=Operation"
            )
        finally:
            board.terminate()
            board.wait(20)


def test_without_traces_serving_says_what_makes_them(tmp_path: Path) -> None:
    done = normbench("profile", "--serve", "--run", tmp_path)
    assert done.code == 3
    assert "normbench profile makes them" in done.err


def test_without_the_plugin_serving_says_what_to_install_and_that_the_traces_are_there(
    ran: tuple[Done, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch_tb_profiler", None)
    monkeypatch.setattr(serving.importlib.util, "find_spec", lambda name: None if "tb" in name else object())
    done = normbench("profile", "--serve", "--run", ran[1])
    assert done.code == 3
    assert "torch-tb-profiler: not installed; the traces are in " in done.err
    assert "pip install torch-tb-profiler" in done.err
    assert "ui.perfetto.dev" in done.err


def test_a_board_that_ends_by_itself_is_told_with_its_exit_code(
    ran: tuple[Done, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "command", lambda _traces: [sys.executable, "-c", "raise SystemExit(7)"])
    done = normbench("profile", "--serve", "--run", ran[1])
    assert done.code == 3
    assert "TensorBoard ended with exit code 7" in done.err


def test_a_run_folder_without_being_served_is_bad_usage(tmp_path: Path) -> None:
    done = normbench("profile", "--run", tmp_path)

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: --run shows what is there, and needs --serve\n")
