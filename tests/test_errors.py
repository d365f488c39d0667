from __future__ import annotations

import pytest

from normbench.errors import (
    BusyError,
    FailedCheckError,
    IncompleteError,
    NormbenchError,
    RegressionError,
    StorageError,
    UsageError,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RegressionError, 1),
        (FailedCheckError, 1),
        (UsageError, 2),
        (IncompleteError, 3),
        (StorageError, 3),
        (BusyError, 3),
    ],
)
def test_each_error_ends_the_program_with_its_exit_code(error: type[NormbenchError], code: int) -> None:
    assert error("no such width").exit_code == code


@pytest.mark.parametrize("error", [RegressionError, UsageError, IncompleteError, StorageError])
def test_one_except_clause_catches_every_error_of_the_tree(error: type[NormbenchError]) -> None:
    with pytest.raises(NormbenchError) as caught:
        raise error("run.json is cut short", hint="measure again")

    assert caught.value.hint == "measure again"


def test_an_error_reads_as_its_message_alone() -> None:
    error = UsageError("--widths 0 is too small", hint="1 or more")

    assert str(error) == error.message == "--widths 0 is too small"


def test_a_hint_is_optional() -> None:
    assert StorageError("no run.json").hint is None


def test_no_error_means_success_and_only_what_got_worse_or_does_not_hold_means_1() -> None:
    kinds = [NormbenchError, *NormbenchError.__subclasses__()]

    assert {kind.exit_code for kind in kinds} == {1, 2, 3}
    assert [kind for kind in kinds if kind.exit_code == 1] == [RegressionError, FailedCheckError]
