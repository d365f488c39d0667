"""What a plan file may say: keys made of the command's options, and faults told by file, key and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.core import TyperCommand
from typer.main import get_command

from normbench.cli import app
from normbench.cli.keys import NOT_OF_A_PLAN, Keys, Kind, keys_of
from normbench.cli.plan_file import Setting, parsed, settings
from normbench.errors import UsageError


def command(name: str) -> TyperCommand:
    found = get_command(app).commands[name]  # type: ignore[attr-defined]
    assert isinstance(found, TyperCommand)
    return found


def keys(name: str = "sweep") -> Keys:
    other = {"sweep": "profile", "profile": "sweep"}[name]
    return keys_of(command(name), {other: command(other)})


def said(text: str, name: str = "sweep", **how: bool) -> dict[str, Any]:
    """What a plan file of this text gives the command's parameters."""
    found = settings(parsed(text.encode(), "sweep.toml"), keys(name), "sweep.toml", **how)
    return {parameter: setting.value for parameter, setting in found.items()}


def fault(text: str | bytes, name: str = "sweep") -> tuple[str, str]:
    """What is wrong with a plan file of this text, and the hint."""
    with pytest.raises(UsageError) as raised:
        settings(parsed(text if isinstance(text, bytes) else text.encode(), "sweep.toml"), keys(name), "sweep.toml")
    return raised.value.message, raised.value.hint or ""


@pytest.mark.parametrize("name", ["sweep", "profile"])
def test_every_option_is_a_key_or_belongs_on_the_command_line(name: str) -> None:
    parameters = {option.name for option in command(name).params if option.name != "help"}
    known = {key.parameter for key in keys(name).known}

    assert parameters - known == parameters & NOT_OF_A_PLAN
    assert "widths" in known
    assert "out" not in known


def test_no_name_stands_on_the_list_that_is_no_option_of_either() -> None:
    parameters = {option.name for name in ("sweep", "profile") for option in command(name).params}

    assert parameters >= NOT_OF_A_PLAN


def test_a_key_has_every_long_name_of_its_option_and_those_that_turn_it_off() -> None:
    by_parameter = {key.parameter: key for key in keys().known}

    assert by_parameter["dtypes"].names == ("dtypes", "dtype")
    assert (by_parameter["graphs"].names, by_parameter["graphs"].opposites) == (("graphs",), ("no-graphs",))
    assert by_parameter["no_isolate"].opposites == ("isolate",)
    kinds = {name: by_parameter[name].kind for name in ("widths", "quick", "seed", "eps", "target", "device")}
    assert list(kinds.values()) == [Kind.LIST, Kind.FLAG, Kind.INTEGER, Kind.NUMBER, Kind.TEXT, Kind.TEXT]


@pytest.mark.parametrize("name", ["max-seconds", "max_seconds"])
def test_a_key_may_be_written_with_either_dash(name: str) -> None:
    assert said(f"{name} = 5") == {"max_seconds": 5}


def test_values_become_the_words_of_the_command_line() -> None:
    sizes = 'widths = [256, "512:4096:x2"]\nrows = 32\ndtype = "bf16"\n'

    assert said(f"{sizes}quick = true\nmax-seconds = 0.5\ntarget = 0.01\nseed = -1") == {
        "widths": ["256", "512:4096:x2"],
        "rows": ["32"],
        "dtypes": ["bf16"],
        "quick": True,
        "max_seconds": 0.5,
        "target": "0.01",
        "seed": -1,
    }


def test_a_flag_can_be_said_by_its_opposite() -> None:
    assert said("isolate = false\nno-graphs = true\nprofile = false") == {
        "no_isolate": True,
        "graphs": False,
        "profile": False,
    }


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("widhts = [1]", "sweep.toml: unknown key 'widhts'", "did you mean widths? allowed: widths, rows, dtypes"),
        ("zzz = 1", "sweep.toml: unknown key 'zzz'", "allowed: widths, rows"),
        ("Widths = 1", "sweep.toml: unknown key 'Widths'", "did you mean widths?"),
        ("width = 1\nwidths = 2", "sweep.toml: widths: width is the same key", "leave one of them out"),
        ("isolate = true\nno_isolate = false", "sweep.toml: no_isolate: isolate is the same key", "leave one"),
        ('out = "x"', "sweep.toml: out: belongs on the command line, as --out", "leave it out: a plan says what"),
        ("dry_run = true", "sweep.toml: dry_run: belongs on the command line, as --dry-run", "leave it out"),
        ('plan = "x"', "sweep.toml: plan: belongs on the command line, as --plan", "leave it out"),
        ("wait = true", "sweep.toml: wait: belongs on the command line, as --wait", "leave it out"),
        ("json = true", "sweep.toml: json: belongs on the command line, as --json", "leave it out"),
        ("quick = 1", "sweep.toml: quick: 1 is not allowed", "allowed: true or false"),
        ('quick = "true"', "sweep.toml: quick: 'true' is not allowed", "allowed: true or false"),
        ('eps = "1"', "sweep.toml: eps: '1' is not allowed", "allowed: a number"),
        ("eps = [1]", "sweep.toml: eps: a list is not allowed", "allowed: a number"),
        ("eps = nan", "sweep.toml: eps: nan is not allowed", "allowed: a number"),
        ("total-seconds = inf", "sweep.toml: total-seconds: inf is not allowed", "allowed: a number"),
        ("target = nan", "sweep.toml: target: nan is not allowed", "allowed: a text or a number"),
        ("target = true", "sweep.toml: target: true is not allowed", "allowed: a text or a number"),
        ("eps = true", "sweep.toml: eps: true is not allowed", "allowed: a number"),
        ("seed = true", "sweep.toml: seed: true is not allowed", "allowed: a whole number"),
        ("seed = 1.0", "sweep.toml: seed: 1.0 is not allowed", "allowed: a whole number"),
        ("seed = 1979-05-27", "sweep.toml: seed: the date 1979-05-27 is not allowed", "allowed: a whole number"),
        ("widths = 07:32:00", "sweep.toml: widths: the time 07:32:00 is not allowed", "allowed: texts or numbers"),
        ("widths = [[1]]", "sweep.toml: widths: a list is not allowed", "one or a list of them"),
        ("widths = [true]", "sweep.toml: widths: true is not allowed", "one or a list of them"),
        ("widths = []", "sweep.toml: widths: [] holds no value", "give one or more, or leave the key out"),
        ("[widths]\na = 1", "sweep.toml: widths: a table is not allowed", "one or a list of them"),
        (f"seed = 0x1{'f' * 100}", "sweep.toml: seed: too large a number", "allowed: a whole number"),
        ("widths = [1", "sweep.toml: no TOML: Unclosed array, line 1: widths = [1", "lines are like: widths = "),
        ("seed = 1\nseed = 2\n", "sweep.toml: no TOML: Cannot overwrite a value, line 2: seed = 2", "lines are"),
        ("seed", "sweep.toml: no TOML: Expected '=' after a key in a key/value pair, line 1: seed", "lines are"),
        (f"seed = {'9' * 5000}", "sweep.toml: no TOML: Exceeds the limit", "lines are"),
        (f"widths = {'[' * 5000}", "sweep.toml: no TOML: maximum recursion depth", "lines are"),
        (b"seed = 1\n# \xff", "sweep.toml: line 2 is not UTF-8", "save it as UTF-8"),
        (b"\xef\xbb\xbfseed = 1", "sweep.toml: begins with a byte order mark", "save it as UTF-8 without one"),
    ],
)
def test_a_fault_names_file_and_key_and_what_is_allowed(text: str | bytes, message: str, hint: str) -> None:
    found = fault(text)

    assert found[0].startswith(message)
    assert found[1].startswith(hint) or hint in found[1]


def test_a_key_of_sweep_alone_is_a_fault_in_a_profiles_file_and_passed_over_in_what_serves_both() -> None:
    message, hint = fault("processes = 5", "profile")

    assert message == "sweep.toml: processes: a key of sweep alone, which profile does not have"
    assert hint == "leave it out"
    assert said("processes = 5\nwidths = 64", "profile", serves_all=True) == {"widths": ["64"]}
    with pytest.raises(UsageError, match="unknown key 'procesess'"):
        said("procesess = 5", "profile", serves_all=True)


TYPES = {Kind.LIST: list, Kind.FLAG: bool, Kind.INTEGER: int, Kind.NUMBER: int | float, Kind.TEXT: str}


def outcome(call: Callable[[], dict[str, Setting]]) -> dict[str, Setting] | UsageError:
    try:
        return call()
    except UsageError as error:
        return error


@given(st.binary(max_size=200))
def test_any_bytes_are_a_plan_or_a_usage_error(text: bytes) -> None:
    found = outcome(lambda: settings(parsed(text, "sweep.toml"), keys(), "sweep.toml"))

    assert not isinstance(found, UsageError) or found.message.startswith("sweep.toml: ")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*keys().by_name, "out", "zzz"]), values, max_size=4))
def test_any_values_are_taken_as_they_would_be_on_the_command_line_or_refused(mapping: dict[str, object]) -> None:
    found = outcome(lambda: settings(mapping, keys(), "sweep.toml"))

    if isinstance(found, UsageError):
        assert found.message.startswith("sweep.toml: ")
        assert found.hint
        return
    for setting in found.values():
        assert isinstance(setting.value, TYPES[setting.key.kind])
        assert setting.value != []
