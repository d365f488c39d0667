from __future__ import annotations

import os
import sys

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
