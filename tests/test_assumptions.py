"""The stand-in for ``torch.cuda`` is as it assumes, and one that is not is found out."""

from __future__ import annotations

import pytest

from tests.assumptions import Recording, asked_in_a_hold, eviction, passing, resolution, spin
from tests.fake_cuda import FakeCuda, FakeEvent

EVENT_S = 2.0**-20
QUEUEING_S = 2.0**-16


class InstantSpin(FakeCuda):
    """A spin that takes no time."""

    def _sleep(self, cycles: int) -> None:
        self.launch(f"sleep {cycles}")


class ConstantSpin(FakeCuda):
    """A spin that is as long whatever it is told."""

    def _sleep(self, cycles: int) -> None:
        self.launch(f"sleep {cycles}", device_s=1e-3)


class SlowHost(FakeCuda):
    """Queueing takes longer than a spin."""

    def launch(self, name: str, *, device_s: float = 0.0, host_s: float = 0.0) -> None:
        super().launch(name, device_s=device_s, host_s=2e-3 if name == "call" else host_s)


class OtherEvents(FakeCuda):
    """Events with something wrong about them."""

    def __init__(self, kind: type[FakeEvent]) -> None:
        super().__init__(event_s=EVENT_S)
        self._kind = kind

    def Event(self, *, enable_timing: bool = False) -> FakeEvent:  # noqa: N802 - torch's name
        assert enable_timing
        return self._kind(self)


class Coarse(FakeEvent):
    def elapsed_time(self, end: FakeEvent) -> float:
        return round(super().elapsed_time(end) / 0.004) * 0.004


class Backward(FakeEvent):
    def elapsed_time(self, end: FakeEvent) -> float:
        return -super().elapsed_time(end)


class Adding(FakeEvent):
    """Each time has a little in it that is not there."""

    def elapsed_time(self, end: FakeEvent) -> float:
        return super().elapsed_time(end) + 0.001


class NeverPassing(FakeEvent):
    def query(self) -> bool:
        return False


class Unlogged(FakeCuda):
    def synchronize(self) -> None:
        self.host_s = max(self.host_s, self.device_s)


class Caching(FakeCuda):
    """A device with a cache of one unit, of which a flush takes as much as it is told."""

    cached = 0.0

    def read(self) -> None:
        self.launch("read", device_s=2.0**-18 * (2 - self.cached))
        self.cached = 1.0

    def flush(self, share: float) -> None:
        self.launch("flush", device_s=2.0**-14)
        self.cached = max(0.0, self.cached - share)


def small_call(cuda: FakeCuda) -> None:
    cuda.launch("call", device_s=QUEUEING_S, host_s=QUEUEING_S)


def evicted(share: float) -> str | None:
    cuda = Caching()
    return eviction(
        cuda, read=cuda.read, flush=lambda: cuda.flush(share), twice=lambda: cuda.flush(2 * share)
    ).problem


def spun(cuda: FakeCuda) -> str | None:
    return spin(cuda, lambda: small_call(cuda)).problem


def test_the_stand_in_is_as_it_assumes() -> None:
    assert passing(FakeCuda()).problem is None
    assert resolution(FakeCuda(event_s=EVENT_S)).problem is None
    assert spun(FakeCuda()) is None
    assert evicted(1.0) is None


def test_its_figures_are_exact() -> None:
    found = resolution(FakeCuda(event_s=EVENT_S))
    assert found.step_s == pytest.approx(37 / FakeCuda.hz, rel=1e-9)
    assert found.least_s == pytest.approx(1000 / FakeCuda.hz + EVENT_S, rel=1e-9)
    assert spin(FakeCuda(), lambda: None).once_s == pytest.approx(1e6 / FakeCuda.hz, rel=1e-9)


def test_what_is_recorded_of_it_is_its_own_log() -> None:
    own, inner, unlogged = FakeCuda(), FakeCuda(), Unlogged()
    recording = Recording(inner)

    def launch(name: str) -> None:
        recording.log.append(name)
        inner.launch(name)

    said = asked_in_a_hold(own, own.launch)
    assert asked_in_a_hold(recording, launch) == said
    assert said[:5] == ["synchronize", "sleep", "prepare", "flush", "record"]
    assert asked_in_a_hold(unlogged, unlogged.launch) != said


@pytest.mark.parametrize(
    ("cuda", "problem"),
    [
        (InstantSpin(), "an event has passed before the spin ahead of it"),
        (OtherEvents(NeverPassing), "an event has not passed once everything is done"),
    ],
)
def test_events_that_pass_at_the_wrong_time_are_found_out(cuda: FakeCuda, problem: str) -> None:
    assert passing(cuda).problem == problem


@pytest.mark.parametrize(
    ("cuda", "problem"),
    [
        (OtherEvents(Coarse), "times between events are too coarse"),
        (FakeCuda(event_s=-1e-5), "time runs backwards between two events"),
        (OtherEvents(Backward), "time runs backwards between two events"),
        (OtherEvents(Adding), "the parts are not the whole"),
        (InstantSpin(event_s=EVENT_S), "times between events are too coarse"),
    ],
)
def test_times_that_are_none_are_found_out(cuda: FakeCuda, problem: str) -> None:
    assert resolution(cuda).problem == problem


@pytest.mark.parametrize(
    ("cuda", "problem"),
    [
        (InstantSpin(event_s=EVENT_S), "a spin is too short or too long"),
        (ConstantSpin(), "twice the cycles do not last twice as long"),
        (SlowHost(), "a spin is over before a few calls are queued"),
    ],
)
def test_spins_that_hold_nothing_are_found_out(cuda: FakeCuda, problem: str) -> None:
    assert spun(cuda) == problem


@pytest.mark.parametrize(
    ("share", "problem"),
    [(0.0, "a flush leaves in the cache what was there"), (0.4, "a flush leaves a part of it")],
)
def test_a_flush_that_is_too_small_is_found_out(share: float, problem: str) -> None:
    assert evicted(share) == problem
