"""Hardware counters: whether they can be read, and what Nsight Compute prints, as its documentation shows it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from normbench.profiling.counters import METRICS, CounterError, NsightCompute, ability, parse
from normbench.records import Ability, CountedTraffic

HEADER = (
    '"ID","Process ID","Process Name","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum","lts__t_bytes.sum"'
)
UNITS = '"","","","","Mbyte","Kbyte","byte"'
TWO = (
    "==PROF== Connected to process 4711 (/usr/bin/python3.12)\n"
    'something that the program printed, with "quotes"\n'
    "==PROF== Disconnected from process 4711\n"
    f"{HEADER}\n{UNITS}\n"
    '"0","4711","python3.12","vectorized_layer_norm_kernel","2.10","512.25","4,194,304"\n'
    '"1","4711","python3.12","reduce_kernel, with a comma","1","0","96"\n'
)


def ran(stdout: str = "", stderr: str = "", code: int = 0) -> tuple[NsightCompute, list[Sequence[str]]]:
    """A counter that is shown what was recorded, and what it was asked to run."""
    asked: list[Sequence[str]] = []

    def run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        asked.append(words)
        return subprocess.CompletedProcess(words, code, stdout, stderr)

    return NsightCompute(able=Ability(works=True, detail="x"), run=run), asked


def test_the_kernels_of_the_range_are_summed_in_bytes() -> None:
    assert parse(TWO) == CountedTraffic(dram_read_bytes=3_100_000, dram_written_bytes=512_250, l2_bytes=4_194_400)


def test_it_runs_the_case_alone_with_the_metrics_in_its_range_and_leaves_caches_and_clocks() -> None:
    counter, asked = ran(TWO)
    assert counter.count(["CASE"]).dram_read_bytes == 3_100_000
    (words,) = asked
    text = " ".join(words)
    assert words[0] == "ncu"
    assert ",".join(METRICS) in text
    assert "--nvtx-include normbench-timed/" in text
    assert "--cache-control none --clock-control none" in text
    assert text.endswith("-m normbench.profiling.one_case CASE")


@pytest.mark.parametrize(
    ("stdout", "stderr", "code", "said"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not",
            "",
            1,
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        ("", "Traceback\nValueError: no", 1, "ncu ended with exit code 1: ValueError: no"),
        ("==WARNING== No kernels were profiled.\n", "", 0, "it saw no kernel in the timed range"),
        (f"{HEADER}\n{UNITS}\n", "", 0, "ncu saw no kernel"),
        (HEADER.replace("lts__t_bytes", "other") + f"\n{UNITS}\n", "", 0, "did not report lts__t_bytes.sum"),
        (TWO.replace("2.10", "n/a"), "", 0, "'n/a'"),
        (TWO.replace("Mbyte", "furlong"), "", 0, "furlong"),
    ],
)
def test_what_was_not_counted_is_an_error_with_what_to_do_and_never_zero(
    stdout: str, stderr: str, code: int, said: str
) -> None:
    counter, _asked = ran(stdout, stderr, code)
    with pytest.raises(CounterError) as raised:
        counter.count([])
    assert said in str(raised.value)


def make_nodes(*names: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        for name in names:
            (root / name).mkdir(parents=True)

    return make


@pytest.mark.parametrize(
    ("make", "works", "said"),
    [
        (make_nodes(), False, "exposes no memory-controller counters"),
        (make_nodes("cpu", "msr"), False, "exposes no memory-controller counters"),
        (make_nodes("uncore_imc_0", "uncore_imc_1"), True, "2 memory controllers"),
        (make_nodes("amd_umc_0"), True, "1 memory controllers"),
    ],
)
def test_a_processors_counters_are_those_that_the_kernel_lists(
    tmp_path: Path, make: Callable[[Path], None], works: bool, said: str
) -> None:
    make(tmp_path)
    found = ability("cpu", devices=tmp_path)
    assert found.works is works
    assert said in found.detail


@pytest.mark.parametrize(
    ("ncu", "params", "works", "said"),
    [
        (False, None, False, "Nsight Compute is not on the PATH"),
        (True, None, True, "does not refuse"),
        (True, "RmProfilingAdminOnly: 0\n", True, "does not refuse"),
        (True, "EnableMSI: 1\nRmProfilingAdminOnly: 1\n", False, "NVreg_RestrictProfilingToAdminUsers=0"),
    ],
)
def test_a_gpus_counters_need_the_tool_and_the_drivers_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ncu: bool, params: str | None, works: bool, said: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if ncu:
        (tmp_path / "ncu").touch(mode=0o755)
    if params is not None:
        (tmp_path / "params").write_text(params, encoding="utf-8")
    found = ability("cuda", params=tmp_path / "params")
    assert found.works is works
    assert said in found.detail
