from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

import psutil
import pytest

from normbench import nvml
from normbench.records import Reading
from tests.fake_cuda import FakeNvml

REASONS = {
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake",
}


def test_a_reading_holds_the_sm_clock_in_hertz_and_the_temperature() -> None:
    monitor = nvml.Monitor(FakeNvml(clock=1980, temperature=41, bits=0), "GPU-1")
    assert monitor.read() == Reading(sm_clock_hz=1.98e9, temperature_c=41, throttle_reasons=())


@pytest.mark.parametrize(("bits", "name"), REASONS.items())
def test_each_throttle_bit_is_told_by_its_name(bits: int, name: str) -> None:
    assert nvml.Monitor(FakeNvml(bits=bits), "GPU-1").read().throttle_reasons == (name,)


def test_several_throttle_bits_are_told_together() -> None:
    assert nvml.Monitor(FakeNvml(bits=0xFF), "GPU-1").read().throttle_reasons == tuple(REASONS.values())


@pytest.mark.parametrize("bits", [0x1, 0x2], ids=["idle", "application clocks"])
def test_an_idle_gpu_and_set_clocks_are_no_throttling(bits: int) -> None:
    assert nvml.Monitor(FakeNvml(bits=bits), "GPU-1").read().throttle_reasons == ()


def test_the_stand_in_and_the_installed_binding_mean_the_same_by_every_name() -> None:
    pynvml = pytest.importorskip("pynvml")
    named = {name: value for name, value in vars(FakeNvml).items() if not name.startswith("__")}
    constants = {name: value for name, value in named.items() if isinstance(value, int)}
    assert len(constants) == 11
    assert {name: getattr(pynvml, name) for name in constants} == constants
    assert all(callable(getattr(pynvml, name)) for name in vars(FakeNvml) if name.startswith("nvmlDevice"))


def test_a_value_that_the_gpu_refuses_is_absent_and_the_others_are_there() -> None:
    refused = FakeNvml.NVMLError("Not Supported")
    reading = nvml.Monitor(FakeNvml(clock=refused, temperature=41, bits=refused), "GPU-1").read()
    assert reading == Reading(sm_clock_hz=None, temperature_c=41, throttle_reasons=())
    assert nvml.Monitor(FakeNvml(temperature=refused), "GPU-1").read().temperature_c is None


def test_an_error_that_is_not_nvmls_own_is_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        nvml.Monitor(FakeNvml(clock=ZeroDivisionError()), "GPU-1").read()


def test_the_conditions_hold_clocks_in_hertz_power_in_watts_and_every_setting() -> None:
    found = nvml.Monitor(FakeNvml(clock=1200, bits=0x4, pids=(1, os.getpid())), "GPU-1").conditions()
    assert (found.sm_clock_hz, found.max_sm_clock_hz, found.memory_clock_hz) == (1.2e9, 1.98e9, 3.201e9)
    assert (found.power_w, found.power_limit_w, found.default_power_limit_w) == (120.0, 500.0, 700.0)
    assert (found.persistence, found.ecc, found.mig) == (True, True, False)
    assert found.throttle_reasons == ("sw_power_cap",)
    assert found.other_processes == 1, "this one is not another"


def test_a_condition_that_the_gpu_refuses_is_absent_not_false() -> None:
    refused = FakeNvml.NVMLError("Not Supported")
    found = nvml.Monitor(FakeNvml(power=refused, mig=refused, pids=refused), "GPU-1").conditions()
    assert (found.power_w, found.mig, found.other_processes) == (None, None, None)
    assert found.ecc is True


ME, WORKER, ONE, TWO = 2**22 + 1, 2**22 + 2, 2**22 + 3, 2**22 + 4
"""Numbers that no process of this machine has: Linux gives none above 2**22."""


def others(own: Callable[[], Iterable[int]] = lambda: (ME, WORKER), **told: Any) -> int | None:
    return nvml.Monitor(FakeNvml(**told), "GPU-1", own=own).other_programs()


@pytest.mark.parametrize(
    ("listed", "count"),
    [((ME,), 0), ((ME, WORKER), 0), ((WORKER,), 0), ((ME, ONE), 1), ((ONE, WORKER, TWO), 2)],
    ids=["oneself", "and a worker", "a worker alone", "another", "two others"],
)
def test_other_programs_are_those_that_are_neither_this_one_nor_its_workers(
    listed: tuple[int, ...], count: int
) -> None:
    assert others(pids=listed) == count


@pytest.mark.parametrize("listed", [(), (ONE,), (ONE, TWO)])
def test_where_no_process_of_ones_own_is_listed_the_numbers_mean_others_and_nothing_is_known(
    listed: tuple[int, ...],
) -> None:
    """In a container NVML lists the numbers that processes have on the host, or none."""
    assert others(pids=listed) is None


def test_a_worker_that_starts_while_nvml_looks_is_no_other() -> None:
    answers = iter([(ME,), (ME, WORKER)])
    assert others(lambda: next(answers), pids=(ME, WORKER)) == 0
    answers = iter([(ME, WORKER), (ME,)])
    assert others(lambda: next(answers), pids=(ME, WORKER)) == 0, "or ends"


def test_who_computes_through_mps_counts_and_once() -> None:
    assert others(pids=(ME, ONE), mps_pids=(ONE, TWO)) == 2
    assert others(pids=(ONE,), mps_pids=(ME,)) == 1, "and so may this one"


def test_the_server_of_mps_is_no_program_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    class Process:
        def __init__(self, pid: int) -> None:
            self.pid = pid

        def name(self) -> str:
            if self.pid == TWO:
                raise psutil.AccessDenied
            return "nvidia-cuda-mps-server"

    monkeypatch.setattr(psutil, "Process", Process)
    assert others(pids=(ME, ONE, TWO)) == 1


def test_a_driver_that_knows_no_mps_is_asked_for_the_rest() -> None:
    assert others(pids=(ME, ONE), mps_pids=FakeNvml.NVMLError("Not Supported")) == 1
    old = FakeNvml(pids=(ME, ONE))
    old.nvmlDeviceGetMPSComputeRunningProcesses = None  # type: ignore[method-assign, assignment]
    assert nvml.Monitor(old, "GPU-1", own=lambda: (ME,)).other_programs() == 1


def test_ones_own_are_this_process_and_all_that_it_has_started() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert {os.getpid(), child.pid} <= nvml.own_pids()
        assert os.getppid() not in nvml.own_pids()
        child.communicate(b"\n")


def test_the_driver_version_is_text() -> None:
    assert nvml.Monitor(FakeNvml(), "GPU-1").driver() == "575.57.08"


def test_a_monitor_is_opened_for_the_gpu_with_the_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(uuid="GPU-7", temperature=70))
    monitor = nvml.open_monitor("GPU-7")
    assert monitor is not None
    assert monitor.read().temperature_c == 70


@pytest.mark.parametrize(
    "library",
    [FakeNvml(uuid=""), FakeNvml(uuid="GPU-2"), None],
    ids=["no driver", "another GPU only", "not installed"],
)
def test_there_is_no_monitor_where_nvml_or_the_gpu_is_missing(
    monkeypatch: pytest.MonkeyPatch, library: FakeNvml | None
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", library)
    assert nvml.open_monitor("GPU-1") is None
