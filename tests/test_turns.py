from __future__ import annotations

import pytest

from normbench.turns import Turn, Turns
from tests.fakes import Timer


def test_a_turn_is_told_while_it_lasts_and_how_long_it_has() -> None:
    timer = Timer()
    turns = Turns(now=timer)
    with turns.take("nn-layernorm"):
        timer.advance(3.0)
        assert turns.current == Turn(name="nn-layernorm", seconds=3.0)
    timer.advance(2.0)
    assert turns.current == Turn(name=None, seconds=2.0)


def test_the_next_turn_begins_anew() -> None:
    timer = Timer()
    turns = Turns(now=timer)
    for name in ("one", "other"):
        with turns.take(name):
            timer.advance(1.0)
            assert turns.current == Turn(name=name, seconds=1.0)


def test_an_error_ends_a_turn_and_an_exit_of_the_process_does_not() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="boom"), turns.take("one"):
        raise ValueError("boom")
    assert turns.current.name is None
    with pytest.raises(SystemExit), turns.take("other"):
        raise SystemExit
    assert turns.current.name == "other"


def test_a_pause_is_nobodys_turn() -> None:
    timer = Timer()
    turns = Turns(now=timer)
    timer.advance(5.0)
    turns.pause()
    assert turns.current == Turn(name=None, seconds=0.0)


@pytest.mark.parametrize("name", ["path/to/file.py:Класс[0]", "n" * 2000])
def test_any_name_can_be_told(name: str) -> None:
    turns = Turns()
    with turns.take(name):
        assert name.startswith(turns.current.name or "?")
