"""Where the answer changes along the widths."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from normbench import crossover, verdict
from normbench.crossover import Advice, Crossover
from normbench.records import Cell
from normbench.verdict import Choice, Group
from tests.runs import Times, make_cell, make_plan, make_run

OPEN = "open"


def group_of(by_width: Mapping[int, str | None]) -> Group:
    """What to use at each width; ``OPEN`` where the verdict abstains, None where there is none."""
    cells = {width: make_cell(width=width) for width in by_width}
    choices = tuple(
        Choice(cell=cells[width], best="nn-layernorm" if best == OPEN else best, is_open=best == OPEN)
        for width, best in by_width.items()
    )
    return Group(cells=tuple(cells.values()), choices=choices)


def changes(by_width: Mapping[int, str | None]) -> list[Crossover]:
    return crossover.crossovers(crossover.advised(group_of(by_width)))


def test_neighbouring_widths_with_the_same_answer_are_one_stretch() -> None:
    found = crossover.advised(group_of({64: "a", 128: "a", 256: "b", 512: "a"}))

    assert [(s.answer.best, s.widths) for s in found] == [("a", (64, 128)), ("b", (256,)), ("a", (512,))]
    assert [(s.is_first, s.is_last) for s in found] == [(True, False), (False, False), (False, True)]


def test_one_answer_everywhere_is_first_and_last() -> None:
    (stretch,) = crossover.advised(group_of({64: "a", 128: "a"}))

    assert (stretch.is_first, stretch.is_last) == (True, True)
    assert [choice.cell.width for choice in stretch.items] == [64, 128]


def test_items_in_any_order_are_cut_by_ascending_width() -> None:
    found = crossover.stretches([512, 64, 128], width=int, answer=lambda n: n > 100)

    assert [(s.answer, s.widths) for s in found] == [(False, (64,)), (True, (128, 512))]


@given(st.lists(st.tuples(st.integers(1, 40), st.sampled_from("abc")), unique_by=lambda pair: pair[0]))
def test_stretches_hold_everything_once_and_no_two_neighbours_agree(items: list[tuple[int, str]]) -> None:
    found = crossover.stretches(items, width=lambda pair: pair[0], answer=lambda pair: pair[1])

    assert [item for stretch in found for item in stretch.items] == sorted(items)
    assert all(one.answer != other.answer for one, other in pairwise(found))
    assert [s.is_first for s in found] == [n == 0 for n in range(len(found))]


def test_the_winner_changes_between_two_tested_widths() -> None:
    assert changes({64: "a", 128: "b", 256: "b", 512: "a"}) == [
        Crossover(below=64, above=128, before="a", after="b"),
        Crossover(below=256, above=512, before="b", after="a"),
    ]


def test_one_winner_everywhere_never_changes() -> None:
    assert changes({64: "a", 128: "a"}) == []


def test_widths_without_a_winner_lie_within_the_gap_and_change_nothing_themselves() -> None:
    assert changes({64: "a", 128: OPEN, 256: None, 512: "b"}) == [
        Crossover(below=64, above=512, before="a", after="b")
    ]
    assert changes({64: "a", 128: OPEN, 256: "a"}) == []
    assert changes({64: OPEN, 128: "a", 256: None}) == []


def test_an_open_choice_advises_nobody() -> None:
    open_one, settled = (Choice(cell=make_cell(), best="a", is_open=is_open) for is_open in (True, False))

    assert crossover.advice_of(open_one) == Advice(best=None, is_open=True)
    assert crossover.advice_of(settled) == Advice(best="a", is_open=False)


def test_widths_that_are_open_between_others_do_not_share_an_answer() -> None:
    cells = [make_cell(width=width) for width in (64, 128, 256)]
    between = [("b",), ("c",), ("c",)]
    choices = tuple(
        Choice(cell=cell, best="a", is_open=True, rivals=("b", "c"), undecided=names)
        for cell, names in zip(cells, between, strict=True)
    )
    found = crossover.advised(Group(cells=tuple(cells), choices=choices))

    assert [(sorted(s.answer.among), s.widths) for s in found] == [(["a", "b"], (64,)), (["a", "c"], (128, 256))]


def test_alternatives_are_those_that_are_as_good_in_every_cell_in_the_first_ones_order() -> None:
    one = Choice(cell=make_cell(), best="a", rivals=("d", "b", "c"))
    other = Choice(cell=make_cell(width=128), best="a", rivals=("c", "d"))

    assert crossover.alternatives([one, other]) == ("d", "c")
    assert crossover.alternatives([]) == ()


def test_a_measured_run_crosses_over_where_its_comparisons_do() -> None:
    plan = make_plan(widths=(64, 128, 256))

    def times(cell: Cell) -> Times:
        return {"copy": 1e-6, "eager-rmsnorm": 9e-6, "nn-layernorm": 4e-6, "nn-rmsnorm": 1e-6 * cell.width / 25.6}

    (group,) = verdict.of_run(make_run(plan, times)).groups
    assert crossover.crossovers(crossover.advised(group)) == [
        Crossover(below=64, above=128, before="nn-rmsnorm", after="nn-layernorm")
    ]


def test_whoever_may_be_anywhere_is_no_alternative() -> None:
    open_one = Choice(cell=make_cell(), best="a", rivals=("b", "c"), undecided=("b",))

    assert open_one.equals == ("c",)
    assert crossover.alternatives([open_one]) == ("c",)
