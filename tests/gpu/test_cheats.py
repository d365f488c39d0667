"""Every wrong or cheating implementation that the CPU's tests know is caught on the device, with its reason.

Several share a cell, since those that are right in it take most of the time: each still costs its own row alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import count
from typing import Any

import pytest
import torch

from normbench.device import CudaDevice
from normbench.implementations import Implementation, by_name, naive
from normbench.implementations.adapting import adapted
from normbench.records import CellRecords, DType, Mode, Op, Property, Status
from normbench.torch_state import TorchState
from tests import cheats, cheats_of_adds
from tests.cheats import Cheat, Norm
from tests.cheats_of_adds import adding, in_forward
from tests.fakes import fake_sweep, quickly, row
from tests.gpu.rehearsal import RehearsalDevice
from tests.helpers import own
from tests.mistakes import INCORRECT
from tests.mutants import MUTANTS
from tests.wrong_norms import eps_outside, unbiased_layernorm, without_bias, without_gain, without_mean

OF_A_THREAD = {
    "cheat-threads-gradients": "OpenMP keeps the number of threads for each thread",
    "cheat-late-threads-gradients": "OpenMP keeps the number of threads for each thread",
    "cheat-denormals-gradients": "a processor flushes denormals for each thread",
    "cheat-late-denormals-gradients": "a processor flushes denormals for each thread",
}
"""What changes nothing on a GPU, and why: autograd runs a GPU's backward in a thread of its own."""
ASKED = tuple(cheat for cheat in (*cheats.CHEATS, *cheats.ON_A_GPU) if cheat.name not in OF_A_THREAD)
SHOWN = (Property.NORMAL_VALUES, Property.INPUTS_INTACT)
"""What usual values show of a wrong norm."""


def one_mode_each(asked: Iterable[Cheat]) -> list[tuple[Cheat, Mode]]:
    """Each in one of its modes, all of them in turn."""
    turns: dict[tuple[Mode, ...], Any] = defaultdict(count)
    return [(cheat, cheat.modes[next(turns[cheat.modes]) % len(cheat.modes)]) for cheat in asked]


def groups(cases: Iterable[tuple[Cheat, Mode]]) -> Mapping[str, tuple[Cheat, ...]]:
    """With whom each cheat shares a cell: up to eight of one mode."""
    of_mode: dict[Mode, list[Cheat]] = defaultdict(list)
    for cheat, mode in cases:
        of_mode[mode].append(cheat)
    shared = [tuple(all_[at : at + 8]) for all_ in of_mode.values() for at in range(0, len(all_), 8)]
    return {cheat.name: group for group in shared for cheat in group}


CASES = one_mode_each(ASKED)
BESIDE = groups(CASES)
ADDERS = [
    (name, cheat.modes[at % len(cheat.modes)]) for at, (name, cheat) in enumerate(cheats_of_adds.CHEATS.items())
]
KEEPING = [
    (cheats_of_adds.keeps_its_sum, "computed nothing for repeated inputs: h", Mode.FORWARD),
    (cheats_of_adds.keeps_its_residual, "on other inputs in the same memory: ", Mode.INFERENCE),
    (cheats_of_adds.one_buffer, "h lies in the same memory", Mode.FORWARD_BACKWARD),
]
WRONG = [
    (own(Op.LAYERNORM, unbiased_layernorm), DType.FP32, Mode.BACKWARD, "dx"),
    (own(Op.LAYERNORM, without_mean), DType.BF16, Mode.FORWARD, "y"),
    (own(Op.LAYERNORM, without_gain), DType.FP16, Mode.BACKWARD, "dx"),
    (own(Op.LAYERNORM, without_bias), DType.FP32, Mode.FORWARD_BACKWARD, "y"),
    (own(Op.RMSNORM, eps_outside), DType.FP32, Mode.FORWARD, "y"),
    (own(Op.RMSNORM, naive.rmsnorm), DType.FP16, Mode.INFERENCE, "on hard rows, y[0, 0] is "),
]


@pytest.fixture(autouse=True)
def a_backward_has_a_thread_of_its_own(gpu: CudaDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a rehearsal, too."""
    if isinstance(gpu, RehearsalDevice):
        monkeypatch.setattr(cheats, "with_gradients", threaded(cheats.with_gradients))


THREAD = ThreadPoolExecutor(1)


def threaded(with_gradients: Callable[..., Norm]) -> Callable[..., Norm]:
    """The same with its backward in another thread, which is waited for."""

    def elsewhere(forward: Any, backward: Callable[..., Any]) -> Norm:
        def run(*tensors: torch.Tensor) -> Any:
            with torch.no_grad():
                return backward(*tensors)

        return with_gradients(forward, lambda *tensors: THREAD.submit(run, *tensors).result())

    return elsewhere


def swept(gpu: CudaDevice, *implementations: Implementation, mode: Mode, dtype: DType = DType.FP32) -> CellRecords:
    """One cell of them between a floor and a baseline, by a clock that takes no time."""
    names = ("add-copy", "nn-add-layernorm") if implementations[0].op.adds else ("copy", "nn-layernorm")
    floor, baseline = map(by_name, names)
    (records,) = fake_sweep(
        (floor, *implementations, baseline),
        modes=(mode,),
        dtypes=(dtype,),
        rows=(200,),
        widths=(32,),
        precision=quickly(max_seconds=0.1 * len(implementations)),
        device=gpu,
    ).run()
    assert {row(records, name).reason for name in names} == {None}, "each costs its own row alone"
    return records


@cache
def together(gpu: CudaDevice, mode: Mode, group: tuple[Cheat, ...]) -> CellRecords:
    """A cell of several cheats, after which torch is set as it was before."""
    torch._dynamo.reset()
    before = TorchState.now()
    records = swept(gpu, *(cheat.implementation for cheat in group), mode=mode)
    assert before.restore() is None
    return records


def caught(records: CellRecords, name: str, reason: str, status: Status = Status.INCORRECT) -> None:
    result = row(records, name)
    assert (result.status, result.timing) == (status, None), result.reason
    assert reason in (result.reason or "")


@pytest.mark.parametrize(("cheat", "mode"), CASES, ids=[f"{cheat.name} {mode}" for cheat, mode in CASES])
def test_a_cheat_is_caught_with_its_reason_and_costs_its_own_row_alone(
    gpu: CudaDevice, cheat: Cheat, mode: Mode
) -> None:
    if cheat in cheats.ON_A_GPU and isinstance(gpu, RehearsalDevice):
        pytest.skip("there are no streams in a rehearsal")
    records = together(gpu, mode, BESIDE[cheat.name])
    status = Status.FAILED if "torch.compile " in cheat.reason else Status.INCORRECT
    caught(records, cheat.name, cheat.reason, status)
    assert any(sample.implementation == cheat.name for sample in records.samples) is cheat.late


def test_cheats_of_every_kind_are_tried_in_every_mode() -> None:
    assert len(CASES) > 100
    assert {(mode, cheat.late) for cheat, mode in CASES} == {(mode, late) for mode in Mode for late in (False, True)}


@pytest.mark.parametrize(("name", "mode"), ADDERS, ids=[f"{name} {mode}" for name, mode in ADDERS])
def test_a_cheat_of_a_residual_add_is_caught_with_its_reason(gpu: CudaDevice, name: str, mode: Mode) -> None:
    cheat = cheats_of_adds.CHEATS[name]
    caught(swept(gpu, adding(name, cheat.function), mode=mode), f"cheat-{name}", cheat.reason)


@pytest.mark.parametrize(("make", "reason", "mode"), KEEPING, ids=[make.__name__ for make, _, _ in KEEPING])
def test_what_a_residual_add_keeps_from_one_call_to_the_next_is_caught(
    gpu: CudaDevice, make: Callable[[], cheats_of_adds.Adder], reason: str, mode: Mode
) -> None:
    caught(swept(gpu, adding("keeps", in_forward(make())), mode=mode), "cheat-keeps", reason)


@pytest.mark.parametrize(
    ("implementation", "dtype", "mode", "reason"),
    WRONG,
    ids=["unbiased", "without-mean", "without-gain", "without-bias", "eps-outside", "in-float16"],
)
def test_a_norm_that_is_computed_wrongly_is_incorrect(
    gpu: CudaDevice, implementation: Implementation, dtype: DType, mode: Mode, reason: str
) -> None:
    caught(swept(gpu, implementation, mode=mode, dtype=dtype), implementation.name, reason)


@pytest.mark.parametrize("name", INCORRECT)
def test_what_users_get_wrong_is_incorrect(gpu: CudaDevice, name: str) -> None:
    text, reason = INCORRECT[name]
    names: dict[str, Any] = {}
    exec(text, names)
    brought = Implementation(
        name="own-rmsnorm",
        op=Op.RMSNORM,
        provider="own",
        summary=name,
        build=lambda setting: adapted(names["rms"], Op.RMSNORM, setting),
    )
    caught(swept(gpu, brought, mode=Mode.FORWARD), brought.name, reason)


def test_of_all_norms_with_a_fault_in_usual_values_none_is_timed(gpu: CudaDevice) -> None:
    """In one cell, beside two that are right; an odd number of rows, since some only lose the last of those.

    A fault that LayerNorm and RMSNorm can have is shown of the latter.
    """
    faulty = [one.implementation for one in MUTANTS if one.must_fail(SHOWN)]
    names = {one.name for one in faulty}
    wrong = [one for one in faulty if one.name.replace("-layernorm", "-rmsnorm") not in names - {one.name}]
    innocents = (by_name("copy"), by_name("nn-layernorm"))
    (records,) = fake_sweep(
        (*innocents, *wrong), modes=(Mode.FORWARD_BACKWARD,), rows=(201,), widths=(65,), device=gpu
    ).run()
    right = {result.case.implementation for result in records.results if result.status is Status.OK}
    assert len(wrong) > 30
    assert right == {one.name for one in innocents}


@pytest.mark.parametrize("mode", Mode)
def test_who_is_right_in_the_same_clothes_is_timed(gpu: CudaDevice, mode: Mode) -> None:
    right = cheats.built("none", lambda _setting: cheats.forward_only(cheats.right))
    result = row(swept(gpu, right, mode=mode), right.name)
    assert (result.status, result.reason) == (Status.OK, None)
    assert result.timing is not None
