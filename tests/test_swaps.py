"""Does RMSNorm pay: who is compared with whom, from which samples, and what several comparisons say together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from normbench import swaps
from normbench.records import CaseResult, Cell, Comparison, Estimate, Outcome, Reason, Sample, Status
from normbench.swaps import BEST, Answer, Swap
from tests.runs import TIMES, Times, make_cell, make_info, make_plan, make_result, make_run

CELL = make_cell()
SIX = ("copy", "eager-layernorm", "eager-rmsnorm", "nn-layernorm", "nn-rmsnorm", "compile-rmsnorm")
INFOS = tuple(make_info(name) for name in SIX)
FAST = {"copy": 1.0, "eager-layernorm": 9.0, "eager-rmsnorm": 6.0, "nn-layernorm": 4.0, "nn-rmsnorm": 5.0}


def samples_of(times: dict[str, float], drift: float = 0.0) -> list[Sample]:
    """Six placements of three rounds; every round takes ``drift`` longer than the one before, for all."""
    return [
        Sample(
            implementation=name,
            process=0,
            placement=placement,
            round=round_,
            position=position,
            calls=1,
            seconds=time * (1 + drift * (3 * placement + round_)),
            clock="wall",
        )
        for placement in range(6)
        for round_ in range(3)
        for position, (name, time) in enumerate(times.items())
    ]


def results_of(times: Times) -> list[CaseResult]:
    return [make_result(name, CELL, time) for name, time in times.items()]


def compared(times: dict[str, float], drift: float = 0.0) -> dict[tuple[str, str], Comparison]:
    found = swaps.compare_swaps(results_of(times), samples_of(times, drift), INFOS, 0.02)
    assert len({(c.baseline, c.candidate) for c in found}) == len(found), "each pair once"
    return {(c.baseline, c.candidate): c for c in found}


def swap_of(*outcomes: Outcome) -> Swap:
    values = {Outcome.FASTER: 2.0, Outcome.SLOWER: 0.5, Outcome.SAME: 1.0, Outcome.UNDECIDED: 1.1}
    return Swap(
        provider="nn",
        comparisons=tuple(
            Comparison(
                cell=make_cell(width=64 * (n + 1)),
                baseline="nn-layernorm",
                candidate="nn-rmsnorm",
                speedup=Estimate(value=values[outcome], low=values[outcome] * 0.9, high=values[outcome] * 1.1),
                outcome=outcome,
                reason=Reason.INTERVAL_TOO_WIDE,
            )
            for n, outcome in enumerate(outcomes)
        ),
    )


def test_a_provider_has_a_pair_only_with_both_formulas() -> None:
    assert swaps.pairs(INFOS) == {
        "eager": ("eager-layernorm", "eager-rmsnorm"),
        "nn": ("nn-layernorm", "nn-rmsnorm"),
    }


def test_of_several_rmsnorms_of_a_provider_each_has_a_pair_by_its_own_name() -> None:
    other = replace(make_info("nn-rmsnorm"), name="nn-other")

    assert swaps.pairs((*INFOS[3:5], other)) == {
        "nn-rmsnorm": ("nn-layernorm", "nn-rmsnorm"),
        "nn-other": ("nn-layernorm", "nn-other"),
    }


def test_the_best_pair_is_the_fastest_of_each_formula_and_never_the_floor() -> None:
    assert swaps.best_pair(results_of({**FAST, "compile-rmsnorm": 3.0}), INFOS) == ("nn-layernorm", "compile-rmsnorm")


@pytest.mark.parametrize("gone", ["layernorm", "rmsnorm"])
def test_without_a_time_for_one_formula_there_is_no_best_pair(gone: str) -> None:
    times: Times = {name: Status.FAILED if name.endswith(f"-{gone}") else time for name, time in FAST.items()}

    assert swaps.best_pair(results_of(times), INFOS) is None


def test_each_pair_is_compared_and_the_fastest_of_each_once_more_where_they_are_of_two_providers() -> None:
    assert list(compared(FAST)) == [("eager-layernorm", "eager-rmsnorm"), ("nn-layernorm", "nn-rmsnorm")]
    assert list(compared({**FAST, "compile-rmsnorm": 3.0})) == [
        ("eager-layernorm", "eager-rmsnorm"),
        ("nn-layernorm", "nn-rmsnorm"),
        ("nn-layernorm", "compile-rmsnorm"),
    ]


def test_the_speedup_is_layernorms_time_by_rmsnorms_from_pairs_of_the_same_rounds() -> None:
    found = compared(FAST, drift=0.5)

    eager, nn = found["eager-layernorm", "eager-rmsnorm"], found["nn-layernorm", "nn-rmsnorm"]
    assert eager.speedup is not None
    assert nn.speedup is not None
    assert (eager.speedup.value, nn.speedup.value) == (pytest.approx(1.5), pytest.approx(0.8))
    assert eager.speedup.low == pytest.approx(1.5), "a drift that both of a round share is no noise"
    assert (eager.outcome, nn.outcome) == (Outcome.FASTER, Outcome.SLOWER)


@pytest.mark.parametrize(
    ("name", "reason"), [("nn-layernorm", Reason.NO_BASELINE), ("nn-rmsnorm", Reason.NO_CANDIDATE)]
)
def test_where_one_of_two_has_no_time_the_swap_is_undecided_and_says_who(name: str, reason: Reason) -> None:
    results = [make_result(n, CELL, Status.FAILED if n == name else t) for n, t in FAST.items()]
    found = swaps.compare_swaps(results, samples_of(FAST), INFOS, 0.02)
    (swap,) = (c for c in found if (c.baseline, c.candidate) == ("nn-layernorm", "nn-rmsnorm"))

    assert (swap.speedup, swap.outcome, swap.reason) == (None, Outcome.UNDECIDED, reason)


def test_what_was_not_run_is_not_compared() -> None:
    results = [make_result(name, CELL, Status.NOT_RUN) for name in FAST]

    assert swaps.compare_swaps(results, (), INFOS, 0.02) == ()


@pytest.mark.parametrize(
    ("outcomes", "answer"),
    [
        ((Outcome.FASTER, Outcome.FASTER), Answer.PAYS),
        ((Outcome.SLOWER,), Answer.COSTS),
        ((Outcome.SAME,), Answer.NO_DIFFERENCE),
        ((Outcome.UNDECIDED,), Answer.UNDECIDED),
        ((Outcome.FASTER, Outcome.UNDECIDED), Answer.PAYS),
        ((Outcome.FASTER, Outcome.SLOWER), Answer.DEPENDS),
        ((Outcome.FASTER, Outcome.SAME), Answer.DEPENDS),
        ((), Answer.UNDECIDED),
    ],
)
def test_the_answer_is_that_of_all_that_were_decided_if_they_agree(
    outcomes: tuple[Outcome, ...], answer: Answer
) -> None:
    assert swap_of(*outcomes).answer is answer


def test_speedups_ascend_and_leave_out_what_could_not_be_compared() -> None:
    swap = swap_of(Outcome.FASTER, Outcome.SLOWER, Outcome.UNDECIDED)
    *rest, last = swap.comparisons

    assert replace(swap, comparisons=(*rest, replace(last, speedup=None))).speedups == (0.5, 2.0)


def test_a_run_gives_a_swap_for_each_provider_with_both_formulas_and_for_the_fastest_of_each() -> None:
    plan = make_plan(widths=(64, 128), implementations=SIX)

    def times(cell: Cell) -> Times:
        return {**FAST, "compile-rmsnorm": 3.0 if cell.width == 64 else 7.0}

    run = make_run(plan, times)
    found = {swap.provider: swap for swap in swaps.of_cells(run, plan.cells())}

    assert list(found) == ["eager", "nn", BEST]
    assert [len(swap.comparisons) for swap in found.values()] == [2, 2, 2]
    assert [c.candidate for c in found[BEST].comparisons] == ["compile-rmsnorm", "nn-rmsnorm"]
    assert (found["eager"].answer, found[BEST].answer) == (Answer.PAYS, Answer.DEPENDS)


def test_a_provider_that_was_tried_in_none_of_the_cells_gives_no_swap() -> None:
    run = make_run(times=TIMES)

    assert swaps.of_cells(run, [make_cell(width=4096)]) == []


def test_where_a_provider_has_several_of_either_each_two_are_a_pair_by_both_names() -> None:
    infos = [replace(make_info(name), provider="x") for name in ("x-layernorm", "x-fast-layernorm", "x-rmsnorm")]

    assert swaps.pairs(infos) == {
        "x-rmsnorm for x-layernorm": ("x-layernorm", "x-rmsnorm"),
        "x-rmsnorm for x-fast-layernorm": ("x-fast-layernorm", "x-rmsnorm"),
    }


def test_the_fastest_of_each_has_no_answer_in_a_cell_where_one_formula_has_no_time() -> None:
    failed: Times = {**TIMES, "nn-rmsnorm": Status.FAILED, "eager-rmsnorm": Status.FAILED}
    run = make_run(make_plan(widths=(64, 128)), lambda cell: TIMES if cell.width == 64 else failed)
    (best,) = (swap for swap in swaps.of_cells(run, run.results_by_cell) if swap.provider == BEST)

    assert [swaps.answer_of(comparison) for comparison in best.comparisons] == [Answer.PAYS, Answer.UNDECIDED]
