"""The answer of a run in a few lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from normbench import bounds, verdict
from normbench.records import Cell, DType, Estimate, Flag, Mode, NoiseFloor, Plan, Precision, Run, Status
from normbench.reporters import caveats, headline
from normbench.reporters.headline import Headline
from tests.runs import TIMES, Times, flagged, make_cell, make_plan, make_run

WIDE = make_plan(widths=(64, 128, 256))
SLOWER: Times = {"copy": 1e-6, "eager-rmsnorm": 8e-6, "nn-layernorm": 4e-6, "nn-rmsnorm": 5e-6}
FAILED: Times = {**TIMES, "nn-layernorm": Status.FAILED}


def said_of(run: Run) -> Headline:
    """The headline, without flags that only follow from times that are the same at every width."""
    return headline.headline(run, verdict.of_run(run), {result.case: result.flags for result in run.results})


def two_winners(cell: Cell) -> Times:
    return TIMES if cell.width == 64 else SLOWER


def scattered(cell: Cell) -> Times:
    """The winner changes with every width, and with the mode."""
    index = (64, 128, 256, 512).index(cell.width) + (cell.mode is Mode.BACKWARD)
    return TIMES if index % 2 else SLOWER


def run_of(plan: Plan, names: tuple[str, ...]) -> Run:
    return make_run(replace(plan, implementations=names))


def test_one_winner_everywhere_is_said_with_all_dtypes_modes_and_widths() -> None:
    run = make_run(make_plan(widths=(64, 128, 256), dtypes=(DType.FP32, DType.BF16), modes=tuple(Mode)[:2]))

    assert said_of(run) == Headline(
        use="On Some CPU, 32 rows: use nn-rmsnorm for fp32 and bf16, forward and backward, at widths 64, 128 and 256",
        rmsnorm="Does RMSNorm pay here? nn: yes, 2.00 times as fast; fastest of each: yes, 2.00 times as fast",
        others="Against nn-layernorm: eager-rmsnorm takes 2.00 times as long; nn-rmsnorm is 2.00 times as fast",
        certainty="How sure: 24 of 24 comparisons are decided (95 % intervals over placements, margin 2 %; "
        "half of them ±1 % or narrower)",
        caveat=None,
    )


def test_the_rest_follows_in_order_without_what_there_is_nothing_to_say_about() -> None:
    said = Headline(use="a", rmsnorm=None, others="b", certainty="c", caveat="d")

    assert said.rest == ["b", "c", "d"]
    assert replace(said, rmsnorm="r", caveat=None).rest == ["r", "b", "c"]


def test_several_winners_are_each_said_with_their_place() -> None:
    assert said_of(make_run(WIDE, two_winners)).use == (
        "On Some CPU, 32 rows: use nn-rmsnorm for fp32 forward at width 64; "
        "use nn-layernorm for fp32 forward at widths 128 and 256"
    )


def test_winners_in_too_many_places_are_counted() -> None:
    plan = make_plan(
        widths=(64, 128, 256, 512), dtypes=tuple(DType), rows=(32, 48), modes=(Mode.FORWARD, Mode.BACKWARD)
    )

    assert said_of(make_run(plan, scattered)).use == (
        "On Some CPU: use nn-layernorm in 24 and nn-rmsnorm in 24 of 48 cells (the tables say where)"
    )


def test_cells_without_a_verdict_are_counted_with_the_others() -> None:
    plan = make_plan(
        widths=(64, 128, 256, 512), dtypes=tuple(DType), rows=(32, 48), modes=(Mode.FORWARD, Mode.BACKWARD)
    )
    run = make_run(plan, lambda cell: FAILED if cell.width == 64 and cell.rows == 32 else scattered(cell))

    assert "use nn-rmsnorm in 21 and nn-layernorm in 21 of 48 cells; no verdict in 6 (" in said_of(run).use


def test_what_can_not_be_told_apart_from_the_winner_in_any_cell_is_said_beside_it() -> None:
    run = make_run(WIDE, {**TIMES, "eager-rmsnorm": 2.01e-6})

    assert "use nn-rmsnorm or eager-rmsnorm for fp32" in said_of(run).use


def test_each_candidate_is_said_to_be_faster_slower_or_as_fast_and_counted_where_it_depends() -> None:
    def times(cell: Cell) -> Times:
        return {**TIMES, "eager-rmsnorm": 4e-6, "nn-rmsnorm": 2e-6 * (1 + cell.width // 128)}

    assert said_of(make_run(WIDE, times)).others == (
        "Against nn-layernorm: eager-rmsnorm is as fast (within 2 %); "
        "nn-rmsnorm is faster in 1, slower in 1 and same in 1 of 3 cells (0.67 to 2.00 times as fast)"
    )


def test_a_slower_candidate_is_said_by_how_much_longer_it_takes() -> None:
    def times(cell: Cell) -> Times:
        return {**TIMES, "nn-rmsnorm": 5e-6 if cell.width == 64 else 8e-6}

    assert said_of(make_run(WIDE, times)).others == (
        "Against nn-layernorm: eager-rmsnorm takes 2.00 times as long; nn-rmsnorm takes 1.25 to 2.00 times as long"
    )


def test_of_many_candidates_the_first_eight_are_said_and_the_rest_is_counted() -> None:
    names = tuple(f"n{number}-rmsnorm" for number in range(11))
    plan = make_plan(implementations=("copy", "nn-layernorm", *names))
    others = said_of(make_run(plan, {"copy": 1e-6, "nn-layernorm": 4e-6, **dict.fromkeys(names, 2e-6)})).others

    assert [name for name in names if name in others] == list(names[:8])
    assert others.endswith("; and 3 more")


def test_where_somebody_may_be_faster_the_verdict_abstains() -> None:
    said = said_of(make_run(times={**SLOWER, "eager-rmsnorm": 4.1e-6}, spread=0.5))

    assert said.use == "On Some CPU, 32 rows: undecided for fp32, forward, at width 64"
    assert said.rmsnorm is not None
    assert "nn: undecided (0.80 times as fast)" in said.rmsnorm
    assert said.certainty.startswith("How sure: 0 of 2 comparisons are decided")


def test_without_a_baseline_there_is_no_verdict() -> None:
    said = said_of(make_run(times=FAILED))

    assert said.use == "On Some CPU, 32 rows: no verdict, since the baseline nn-layernorm has no time"
    assert said.others == "Nothing could be compared with nn-layernorm"
    assert said.certainty == "Not sure of anything: no comparison was possible"
    assert said.caveat is None


def test_a_baseline_alone_is_not_said_to_lack_a_time() -> None:
    said = said_of(make_run(make_plan(implementations=("copy", "nn-layernorm"))))

    assert said.use == "On Some CPU, 32 rows: no verdict, since nothing was compared with nn-layernorm"
    assert said.rmsnorm is None


def test_a_winner_is_not_claimed_for_cells_without_a_verdict() -> None:
    plan = make_plan(widths=(64, 128), dtypes=(DType.FP32, DType.BF16))
    run = make_run(plan, lambda cell: FAILED if (cell.width, cell.dtype) == (128, DType.FP32) else TIMES)

    assert said_of(run).use == (
        "On Some CPU, 32 rows: use nn-rmsnorm for fp32 forward at width 64, and for bf16 forward"
    )


@pytest.mark.parametrize(("count", "said"), [(2, "; 1 cell is missing"), (1, "; 2 cells are missing")])
def test_an_incomplete_run_says_how_much_is_missing(count: int, said: str) -> None:
    assert said_of(make_run(WIDE, cells=list(WIDE.cells())[:count])).certainty.endswith(said)


def test_intervals_are_said_to_be_over_what_they_are_over() -> None:
    plan = make_plan(precision=Precision(processes=5))

    assert "(95 % intervals over processes, " in said_of(make_run(plan)).certainty


def test_an_a_a_test_and_cells_of_the_caches_size_make_it_less_sure() -> None:
    noise = NoiseFloor(
        cell=make_cell(), implementation="nn-layernorm", ratio=Estimate(value=1.0, low=0.99, high=1.01)
    )
    run = flagged(make_run(WIDE), Flag.NEAR_CACHE_SIZE, lambda case: case.cell.width == 128)

    assert said_of(replace(run, noise=(noise,))).certainty.endswith(
        "; by an A/A test at 32×64 fp32 forward differences below 1 % cannot be told apart there; "
        "1 of 3 cells are about as large as the cache: a rerun may differ there"
    )


def test_busy_cells_are_said_in_the_first_line() -> None:
    run = make_run(WIDE)
    said = said_of(flagged(run, Flag.BUSY_MACHINE, lambda case: case.cell.width == 64))

    assert said.use.startswith(
        "Not reliable, since other programs ran beside 1 of 3 cells: on Some CPU, 32 rows: use "
    )
    assert said.certainty.endswith("; a quiet machine would tell more")
    assert "a quiet machine" not in said_of(run).certainty


@pytest.mark.parametrize("flag", caveats.WORDS)
@pytest.mark.parametrize("name", ["nn-layernorm", "nn-rmsnorm"])
def test_advice_that_rests_on_a_flagged_result_says_so(flag: Flag, name: str) -> None:
    run = flagged(make_run(WIDE), flag, lambda case: case.implementation == name and case.cell.width < 256)

    said = said_of(run).caveat or ""
    assert said.endswith(f" rests on results that were {caveats.WORDS[flag]} in 2 of 3 cells")


@pytest.mark.parametrize("flag", caveats.WORDS)
def test_what_is_said_of_the_others_and_of_rmsnorm_says_which_of_its_results_are_flagged(flag: Flag) -> None:
    run = flagged(make_run(WIDE), flag, lambda case: case.implementation == "nn-layernorm" and case.cell.width == 64)
    run = flagged(run, flag, lambda case: case.implementation == "eager-rmsnorm" and case.cell.width == 128)
    said = said_of(run)

    assert said.rmsnorm is not None
    assert said.rmsnorm.endswith(f". These results were {caveats.WORDS[flag]} in 1 of 3 cells")
    assert said.others.endswith(f". These results were {caveats.WORDS[flag]} in 2 of 3 cells")
    assert said.caveat == f"What to use rests on results that were {caveats.WORDS[flag]} in 1 of 3 cells"


@pytest.mark.parametrize("flag", caveats.WORDS)
def test_what_holds_of_every_statement_is_said_once(flag: Flag) -> None:
    said = said_of(flagged(make_run(WIDE), flag, lambda case: case.cell.width == 64))

    assert said.caveat == f"All of this rests on results that were {caveats.WORDS[flag]} in 1 of 3 cells"
    assert "These results" not in f"{said.rmsnorm} {said.others}"


def test_a_loser_that_is_flagged_is_said_where_it_is_spoken_of_and_not_of_the_advice() -> None:
    run = flagged(make_run(WIDE), Flag.LAUNCH_BOUND, lambda case: case.implementation == "eager-rmsnorm")
    said = said_of(run)

    assert said.others.endswith(". These results were launch-bound in 3 of 3 cells")
    assert said.caveat is None


def test_whoever_may_be_as_fast_as_the_winner_is_relied_on_too() -> None:
    run = make_run(times={**TIMES, "eager-rmsnorm": 2.01e-6})
    (group,) = verdict.of_run(run).groups

    names = [case.implementation for case in headline.relied_on_by(run, group.choices[0])]
    assert names == ["nn-layernorm", "nn-rmsnorm", "eager-rmsnorm"]


def test_an_abstention_relies_on_whoever_may_be_faster() -> None:
    run = make_run(times={**SLOWER, "nn-rmsnorm": 4.1e-6}, spread=0.3)
    (group,) = verdict.of_run(run).groups

    assert group.choices[0].is_open
    assert [case.implementation for case in headline.relied_on_by(run, group.choices[0])] == [
        "nn-layernorm",
        "nn-rmsnorm",
    ]


def test_flags_that_follow_from_the_whole_run_are_said_too() -> None:
    run = make_run(WIDE)
    said = headline.headline(run, verdict.of_run(run), bounds.flags(run))

    assert (said.caveat or "").endswith(" rests on results that were launch-bound in 2 of 3 cells")
