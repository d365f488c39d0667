"""Every fault is found by the properties that it breaks, and by no other."""

from __future__ import annotations

import pytest

from normbench.records import DType, Property
from tests.mutants import MUTANTS, Mutant
from tests.properties.asking import applicable, examined, failing, plan

POINTED = tuple(mutant for mutant in MUTANTS if mutant.pointed)
BROAD = tuple(mutant for mutant in MUTANTS if not mutant.pointed)


def assert_found(mutant: Mutant, dtype: DType, seed: int = 0) -> None:
    checks = examined([mutant.implementation], dtypes=(dtype,), seed=seed)
    asked, found = applicable(checks), failing(checks)
    must = mutant.must_fail(asked)

    assert must - found == set(), "not found"
    assert found - must - mutant.maybe == set(), "found where there is no fault"


def named(mutant: Mutant) -> str:
    return mutant.implementation.name


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("mutant", POINTED, ids=named)
def test_a_fault_breaks_the_properties_that_it_is_about_and_no_other(mutant: Mutant, dtype: DType) -> None:
    assert_found(mutant, dtype)


@pytest.mark.parametrize("mutant", BROAD, ids=named)
def test_a_fault_in_most_values_breaks_what_looks_at_them_and_spares_the_rest(mutant: Mutant) -> None:
    assert_found(mutant, DType.FP32)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 14))
@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("mutant", BROAD, ids=named)
def test_so_it_does_in_every_format_and_whatever_the_values(mutant: Mutant, dtype: DType, seed: int) -> None:
    assert_found(mutant, dtype, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 14))
@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("mutant", POINTED, ids=named)
def test_a_pointed_fault_is_found_whatever_the_values(mutant: Mutant, dtype: DType, seed: int) -> None:
    assert_found(mutant, dtype, seed)


def test_every_property_is_broken_by_some_fault_without_fail() -> None:
    sure = {one for mutant in MUTANTS for one in mutant.must_fail(plan().properties)}

    assert set(Property) - sure == set()


def test_each_mutant_has_a_name_of_its_own() -> None:
    assert len({named(mutant) for mutant in MUTANTS}) == len(MUTANTS)
