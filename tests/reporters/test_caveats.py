"""What must be said beside a statement whose results are flagged."""

from __future__ import annotations

import pytest

from normbench.records import Case, Comparison, Flag, Status
from normbench.reporters import caveats
from normbench.reporters.caveats import Caveat
from tests.runs import TIMES, Times, make_cell, make_comparison, make_plan

CELLS = tuple(make_cell(width=width) for width in (64, 128, 256))
SILENT = {
    Flag.FEW_SAMPLES,
    Flag.DRIFTED,
    Flag.BIMODAL,
    Flag.COMPOSITE,
    Flag.COARSE_SUMS,
    Flag.NEAR_CACHE_SIZE,
    Flag.IN_PLACE,
    Flag.REUSED_OUTPUT,
    Flag.SHARED_INPUTS,
    Flag.VENDORED_QUACK,
}
"""Said elsewhere (coarse_sums in the advice, near_cache_size in how sure it is), or no reason to doubt a ratio."""


def case_of(width: int, name: str = "nn-rmsnorm") -> Case:
    return Case(cell=make_cell(width=width), implementation=name)


def comparison_of(times: Times = TIMES, width: int = 64) -> Comparison:
    return make_comparison(make_cell(width=width), "nn-rmsnorm", times, make_plan())


def test_every_flag_is_either_said_or_known_to_need_no_word() -> None:
    assert set(caveats.WORDS) | SILENT == set(Flag)
    assert not set(caveats.WORDS) & SILENT


def test_only_the_flags_of_what_is_relied_on_are_found_each_once_with_its_cells() -> None:
    flags = {
        case_of(64): (Flag.CACHE_RESIDENT, Flag.DRIFTED),
        case_of(64, "nn-layernorm"): (Flag.CACHE_RESIDENT,),
        case_of(128): (Flag.CACHE_RESIDENT, Flag.LAUNCH_BOUND),
        case_of(256): (Flag.THROTTLED,),
    }
    relied_on = [case_of(64), case_of(64, "nn-layernorm"), case_of(128)]

    assert caveats.caveats(flags, relied_on) == [
        Caveat(flag=Flag.LAUNCH_BOUND, cells=(make_cell(width=128),)),
        Caveat(flag=Flag.CACHE_RESIDENT, cells=(make_cell(width=64), make_cell(width=128))),
    ]


def test_a_case_without_a_result_has_no_caveat() -> None:
    assert caveats.caveats({}, [case_of(64)]) == []


def test_widths_are_named_unless_it_is_so_at_all_of_them() -> None:
    found = [
        Caveat(flag=Flag.THROTTLED, cells=CELLS),
        Caveat(flag=Flag.LAUNCH_BOUND, cells=CELLS[:2]),
        Caveat(flag=Flag.BUSY_MACHINE, cells=CELLS[2:]),
    ]

    assert caveats.at_widths(found, CELLS) == (
        "throttled; launch-bound at widths 64 and 128; beside other programs at width 256"
    )
    assert caveats.at_widths([], CELLS) == ""


def test_cells_are_counted_and_nothing_is_said_of_nothing() -> None:
    found = [Caveat(flag=Flag.THROTTLED, cells=CELLS), Caveat(flag=Flag.LAUNCH_BOUND, cells=CELLS[:2])]

    assert caveats.counted(found, 4) == "throttled in 3 of 4 cells and launch-bound in 2 of 4 cells"
    assert caveats.counted([], 4) is None


def test_a_comparison_rests_on_both_and_one_that_could_not_be_made_on_neither() -> None:
    failed = comparison_of({**TIMES, "nn-rmsnorm": Status.FAILED}, width=128)

    assert caveats.compared([comparison_of(), failed]) == [case_of(64, "nn-layernorm"), case_of(64)]


@pytest.mark.parametrize("name", ["nn-layernorm", "nn-rmsnorm"])
def test_the_sentence_counts_cells_in_which_either_is_flagged_among_those_compared(name: str) -> None:
    failed = comparison_of({**TIMES, "nn-rmsnorm": Status.FAILED}, width=256)
    found = [comparison_of(width=64), comparison_of(width=128), failed]

    assert caveats.sentence({case_of(64, name): (Flag.THROTTLED,)}, found) == (
        ". These results were throttled in 1 of 2 cells"
    )
    assert caveats.sentence({case_of(256, name): (Flag.THROTTLED,)}, found) == ""
