from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch

from normbench import checking, compilation
from normbench.checking import Piece, examine
from normbench.device import CpuDevice
from normbench.implementations import Implementation, compiled, eager, nn
from normbench.records import Check, DType, Mark, Op, Output, Property
from tests.faults import on_y
from tests.helpers import COMPILED_EAGERLY
from tests.properties.asking import ALL, applicable, examined, failing, plan
from tests.right_norms import LN, RMS, exact, implementation

ONE = (Property.NORMAL_VALUES,)
EXACT = {op: implementation(op, "exact", exact(op)) for op in (LN, RMS)}
OVERFLOW = {Property.FP32_SQUARES_OVERFLOW}


def raising(_setting: Any) -> Any:
    raise ValueError("needs a licence")


def test_every_property_is_asked_of_each_implementation_in_each_format() -> None:
    checks = examined(list(EXACT.values()), dtypes=tuple(DType))
    for one in EXACT.values():
        for dtype in DType:
            assert {c.property for c in checks if (c.implementation, c.spot.dtype) == (one.name, dtype)} == set(ALL)


def test_implementations_come_one_after_the_other_and_formats_and_spots_within() -> None:
    checks = examined(
        [eager.RMSNORM, eager.LAYERNORM], dtypes=(DType.FP16, DType.FP32), properties=ONE, widths=(3, 1)
    )
    seen = list(dict.fromkeys((c.implementation, str(c.spot)) for c in checks))

    assert seen == [
        (name, f"33×{width} {dtype}")
        for name in ("eager-rmsnorm", "eager-layernorm")
        for dtype in ("fp16", "fp32")
        for width in (3, 1)
    ]


def test_nothing_is_asked_that_was_not_asked_for() -> None:
    assert {c.property for c in examined([EXACT[LN]], properties=(Property.ZEROS, Property.SIGN_FLIP))} == {
        Property.ZEROS,
        Property.SIGN_FLIP,
    }


def test_how_far_it_has_got_is_told_before_each_piece_of_work() -> None:
    told: list[Piece] = []
    slow = replace(EXACT[RMS], compiled=True)
    checks = examine(CpuDevice(), plan(properties=ONE, widths=(1, 3)), [EXACT[LN], slow], told.append)
    next(checks)
    assert [(piece.number, piece.count, piece.what) for piece in told] == [(0, 4, "exact-layernorm 33×1 fp32")]

    list(checks)
    assert [(piece.number, piece.count, piece.what) for piece in told[1:]] == [
        (1, 4, "exact-layernorm 33×3 fp32"),
        (2, 4, "exact-rmsnorm 33×1 fp32"),
        (3, 4, "exact-rmsnorm 33×3 fp32"),
    ]
    assert [piece.share for piece in told] == [0, 1 / 34, 2 / 34, 18 / 34]  # what compiles takes far longer


def test_who_can_not_run_here_is_not_asked_and_says_why() -> None:
    one = replace(EXACT[RMS], unsupported=lambda setting, _device: "needs a GPU" if setting.cell.width > 1 else None)
    marks = {(c.spot.width, c.mark, c.reason) for c in examined([one], properties=ONE, widths=(1, 3))}

    assert marks == {(1, Mark.PASS, None), (3, Mark.NOT_APPLICABLE, "needs a GPU")}


def test_what_is_not_asked_is_said_once_for_each_property_and_not_built() -> None:
    one = replace(EXACT[RMS], unsupported=lambda _setting, _device: "needs a GPU", build=raising)
    checks = examined([one], widths=(64,))

    assert Counter(c.property for c in checks) == Counter(dict.fromkeys(ALL, 1))
    assert applicable(checks) == set()


def test_who_can_not_be_built_fails_everything_and_says_why() -> None:
    checks = examined([replace(EXACT[RMS], build=raising)], widths=(64,))

    assert failing(checks) == set(ALL)
    assert {(c.output, c.reason) for c in checks} == {(None, "ValueError: needs a licence")}


def test_an_error_costs_the_property_that_met_it_and_no_other() -> None:
    def odd(x: torch.Tensor) -> torch.Tensor:
        if not x.numel():
            raise IndexError("nothing there")
        return x

    checks = examined([implementation(RMS, "one", on_y(odd)(RMS))])
    (failed,) = (c for c in checks if c.mark is Mark.FAIL)

    assert (failed.property, failed.output) == (Property.NO_ROWS, None)
    assert failed.reason == "IndexError: nothing there"


def test_a_result_that_can_not_be_compared_says_what_it_is() -> None:
    (check,) = examined(
        [implementation(RMS, "one", on_y(lambda y: y[:, 1:])(RMS))], properties=(Property.NO_GRAD,), widths=(64,)
    )

    assert (check.mark, check.output, check.reason) == (Mark.FAIL, None, "y has shape (33, 63), not (33, 64)")


def test_it_is_built_once_for_each_spot_with_its_formats_and_eps() -> None:
    built: list[tuple[int, int, DType, DType, DType | None, float]] = []

    def build(setting: Any) -> Any:
        cell = setting.cell
        built.append((cell.rows, cell.width, cell.dtype, cell.parameter_dtype, cell.autocast, setting.eps))
        return EXACT[RMS].build(setting)

    examined([replace(EXACT[RMS], build=build)], widths=(3, 64), eps=1e-4)

    assert sorted(built, key=str) == sorted(
        [
            (33, 3, DType.FP32, DType.FP32, None, 1e-4),
            (33, 64, DType.FP32, DType.FP32, None, 1e-4),
            (1, 64, DType.FP32, DType.FP32, None, 1e-4),  # no rows
            (1, 64, DType.FP32, DType.FP32, None, 1e-4),
            (64, 64, DType.FP32, DType.FP32, None, 1e-4),
            (33, 64, DType.FP32, DType.BF16, None, 1e-4),
            (33, 64, DType.FP32, DType.FP32, DType.BF16, 1e-4),
        ],
        key=str,
    )


def test_all_implementations_get_the_same_values_and_another_seed_gives_others() -> None:
    seen: dict[tuple[str, int], torch.Tensor] = {}

    def looking(name: str, seed: int) -> Implementation:
        def function(x: torch.Tensor, gain: Any, bias: Any, eps: float) -> torch.Tensor:
            seen[name, seed] = x.detach().clone()
            return exact(LN)(x, gain, bias, eps)

        return implementation(LN, name, function)

    for seed in (0, 1):
        examined([looking("one", seed), looking("other", seed)], properties=ONE, widths=(3,), seed=seed)

    assert torch.equal(seen["one", 0], seen["other", 0])
    assert not torch.equal(seen["one", 0], seen["one", 1])


@pytest.mark.parametrize(("is_compiled", "times"), [(True, 3), (False, 0)])
def test_a_compiler_forgets_its_graphs_before_each_spot(
    is_compiled: bool, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    resets: list[int] = []
    monkeypatch.setattr(checking.compilation, "reset", lambda: resets.append(1))
    examined([replace(EXACT[RMS], compiled=is_compiled)], properties=ONE, widths=(1, 3, 64))

    assert len(resets) == times


@pytest.mark.parametrize("one", COMPILED_EAGERLY, ids=lambda i: i.name)
def test_twelve_widths_in_one_process_reach_no_limit_of_recompilations(one: Implementation) -> None:
    checks = examined([one], properties=(*ONE, Property.NO_GRAD, Property.STRIDED), widths=tuple(range(1, 13)))

    assert failing(checks) == set()
    assert Counter(c.property for c in checks if c.output is Output.Y)[Property.NORMAL_VALUES] == 12


@pytest.mark.parametrize("one", [compiled.LAYERNORM, compiled.RMSNORM], ids=lambda i: i.name)
def test_compiled_code_passes_what_its_chain_passes(one: Implementation) -> None:
    if compilation.missing_compiler("cpu"):
        pytest.skip("no C++ compiler")
    properties = tuple(
        Property(name) for name in ("normal-values", "fp32-squares-overflow", "determinism", "no-grad")
    )

    assert failing(examined([one], properties=properties, widths=(8,))) == OVERFLOW


@pytest.mark.slow
@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("one", [compiled.LAYERNORM, compiled.RMSNORM], ids=lambda i: i.name)
def test_compiled_code_passes_every_property_but_what_float32_can_not(one: Implementation, dtype: DType) -> None:
    checks = examined([one], dtypes=(dtype,), widths=(8, 64))

    assert failing(checks) == (set() if dtype is DType.FP16 else OVERFLOW)
    assert applicable(checks) >= set(ALL) - OVERFLOW - {Property.DEFAULT_EPS} - _of_the_other(one.op)


def _of_the_other(op: Op) -> set[Property]:
    laws = {
        LN: (Property.ZERO_MEAN, Property.SHIFT_INVARIANCE),
        RMS: (Property.RETAINED_MEAN, Property.SHIFT_DEPENDENCE),
    }
    return set(laws[RMS if op is LN else LN])


def test_what_is_not_applicable_has_a_reason_and_what_passes_has_none() -> None:
    checks: list[Check] = examined([nn.LAYERNORM, nn.RMSNORM], dtypes=(DType.FP16,))

    assert {c.mark for c in checks} == {Mark.PASS, Mark.FAIL, Mark.NOT_APPLICABLE}
    assert all((c.reason is None) is (c.mark is Mark.PASS) for c in checks)
    assert all(c.gap is not None for c in checks if c.mark is Mark.PASS and c.output is Output.Y and c.spot.rows)


def test_who_exits_or_changes_torch_for_everyone_fails_by_that_and_the_next_is_asked_as_before() -> None:
    def leaving(*_: object) -> torch.Tensor:
        raise SystemExit(0)

    def changing(x: torch.Tensor, gain: torch.Tensor | None, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        y = eager.rmsnorm(x, gain, bias, eps)
        torch.set_grad_enabled(False)
        return y

    before = torch.is_grad_enabled()
    bad = [implementation(RMS, function.__name__, function) for function in (leaving, changing)]
    checks = examined([*bad, EXACT[RMS]], properties=(Property.ZEROS,))
    reasons = {check.implementation: check.reason for check in checks}

    assert torch.is_grad_enabled() == before
    assert "SystemExit" in (reasons["leaving-rmsnorm"] or "")
    assert "grad" in (reasons["changing-rmsnorm"] or "")
    assert reasons[EXACT[RMS].name] is None
