"""Every kind of cheat is caught with its reason, and costs its own row alone."""

from __future__ import annotations

import pytest
import torch

from normbench.implementations import by_name
from normbench.records import Mode, Status
from normbench.torch_state import TorchState
from tests.cheats import CHEATS, Cheat
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
