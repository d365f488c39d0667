"""Every kind of cheat is caught with its reason, and costs its own row alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch

from normbench.implementations import by_name
from normbench.records import Flag, Mode, Status
from normbench.torch_state import TorchState
from tests.cheats import BACKWARD, CHEATS, Cheat
from tests.fakes import fake_sweep, row

OTHERS = (by_name("copy"), by_name("nn-layernorm"))
CASES = [(cheat, mode) for cheat in CHEATS for mode in cheat.modes]


@pytest.mark.parametrize(("cheat", "mode"), CASES, ids=[f"{cheat.name} {mode}" for cheat, mode in CASES])
def test_a_cheat_is_caught_with_its_reason_and_costs_its_own_row_alone(cheat: Cheat, mode: Mode) -> None:
    torch._dynamo.reset()
    before = TorchState.now()
    (records,) = fake_sweep(
        (OTHERS[0], cheat.implementation, OTHERS[1]), modes=(mode,), rows=(200,), widths=(32,)
    ).run()
    result = row(records, cheat.name)
    assert result.status is (Status.FAILED if "torch.compile " in cheat.reason else Status.INCORRECT)
    assert cheat.reason in (result.reason or "")
    assert result.timing is None
    assert any(sample.implementation == cheat.name for sample in records.samples) is cheat.late
    assert {row(records, other.name).status for other in OTHERS} == {Status.OK}
    assert before.restore() is None


def test_each_cheat_has_a_name_of_its_own() -> None:
    assert len({cheat.name for cheat in CHEATS}) == len(CHEATS)


def test_who_declares_to_write_into_its_inputs_may_still_not_write_into_its_parameters() -> None:
    into_gain = next(cheat for cheat in CHEATS if cheat.name == "cheat-into-gain-y").implementation
    (records,) = fake_sweep((*OTHERS, replace(into_gain, mutates=True))).run()
    assert row(records, into_gain.name).reason == "wrote into gain without declaring it"


def test_the_memory_that_is_overwritten_by_design_is_no_cheat_where_it_is_declared_and_the_row_says_so() -> None:
    one_buffer = next(cheat for cheat in CHEATS if cheat.name == "cheat-one-buffer-y").implementation
    (records,) = fake_sweep((*OTHERS, replace(one_buffer, reuses_output=lambda _setting: True))).run()
    result = row(records, one_buffer.name)
    assert result.status is Status.OK
    assert result.flags == (Flag.REUSED_OUTPUT,)


def test_there_is_a_cheat_of_each_kind_on_y_and_on_gradients_before_timing_and_while_it_is_timed() -> None:
    kinds = Counter((cheat.late, cheat.modes is BACKWARD) for cheat in CHEATS)
    assert set(kinds) == {(late, backward) for late in (False, True) for backward in (False, True)}
    assert min(kinds.values()) >= 20
