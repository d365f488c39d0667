from __future__ import annotations

import pytest

from normbench.errors import IncompleteError, NormbenchError, StorageError, UsageError


@pytest.mark.parametrize(("error", "code"), [(UsageError, 2), (IncompleteError, 3), (StorageError, 3)])
def test_each_error_ends_the_program_with_its_exit_code(error: type[NormbenchError], code: int) -> None:
    assert error("no such width").exit_code == code


@pytest.mark.parametrize("error", [UsageError, IncompleteError, StorageError])
def test_one_except_clause_catches_every_error_of_the_tree(error: type[NormbenchError]) -> None:
    with pytest.raises(NormbenchError) as caught:
        raise error("run.json is cut short", hint="measure again")

    assert caught.value.hint == "measure again"


def test_an_error_reads_as_its_message_alone() -> None:
    error = UsageError("--widths 0 is too small", hint="1 or more")

    assert str(error) == error.message == "--widths 0 is too small"


def test_a_hint_is_optional() -> None:
    assert StorageError("no run.json").hint is None


def test_no_error_of_the_tree_has_an_exit_code_that_means_success_or_regression() -> None:
    codes = {NormbenchError.exit_code, *(error.exit_code for error in NormbenchError.__subclasses__())}

    assert codes == {2, 3}
