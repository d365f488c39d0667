from __future__ import annotations

from pathlib import Path

import pytest

from normbench.errors import UsageError
from normbench.records import Brought
from normbench.sources import asked_for, is_spec, parts


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty; a home beside it."""
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    return here


def asked(value: str, *taken: str) -> Brought:
    return asked_for("--impls", value, taken)


def refused(value: str, *taken: str) -> tuple[str, str]:
    with pytest.raises(UsageError) as caught:
        asked(value, *taken)
    return caught.value.message, caught.value.hint or ""


@pytest.mark.parametrize(
    ("value", "name", "target", "revision"),
    [
        ("rms.py:fused", "fused-rmsnorm", "rms.py:fused", None),
        ("norms.py:FusedRMSNorm", "norms-fused-rmsnorm", "norms.py:FusedRMSNorm", None),
        ("kernels/fast.py:layer_norm", "fast-layernorm", "kernels/fast.py:layer_norm", None),
        ("./kernels//fast.py:ln", "fast-layernorm", "kernels/fast.py:ln", None),
        ("../up/fast.py:ln", "fast-layernorm", "../up/fast.py:ln", None),
        ("mine=rms.py:fused", "mine", "rms.py:fused", None),
        ("mine-rmsnorm=x.py:f@main", "mine-rmsnorm", "x.py:f", "main"),
        ("rms.py:A.B.c@HEAD~2", "a-b-c-rmsnorm", "rms.py:A.B.c", "HEAD~2"),
        ("rms.py:f@HEAD@{1}", "f-rmsnorm", "rms.py:f", "HEAD@{1}"),
        ("rms.py:f@feature/x:y=z", "f-rmsnorm", "rms.py:f", "feature/x:y=z"),
        ("a@b/c:d/rms.py:f", "f-rmsnorm", "a@b/c:d/rms.py:f", None),
        ("größe/rms.py:größe", "gr-e-rmsnorm", "größe/rms.py:größe", None),
        ("my kernels/rms.py:f", "f-rmsnorm", "my kernels/rms.py:f", None),
        ("torch.nn:RMSNorm", "nn-rmsnorm", "torch.nn:RMSNorm", None),
        ("layernorm:f", "f-layernorm", "layernorm:f", None),
        ("a.b_c=pkg.mod:rms", "a.b_c", "pkg.mod:rms", None),
    ],
)
def test_what_names_code(value: str, name: str, target: str, revision: str | None) -> None:
    assert is_spec(value)
    assert asked(value) == Brought(name=name, target=target, revision=revision)


@pytest.mark.parametrize("value", ["nn-rmsnorm", "mine", "eager-layernorm", "kernels/rms", "pkg.mod"])
def test_a_plain_name_names_no_code(value: str) -> None:
    assert not is_spec(value)


def test_a_home_and_a_path_from_the_root_are_said_from_the_current_folder_where_that_holds_them(folder: Path) -> None:
    assert asked("~/rms.py:f").target == f"{folder.parent}/home/rms.py:f"
    assert asked(f"{folder}/sub/rms.py:f").target == "sub/rms.py:f"
    assert asked(f"{folder.parent}/rms.py:f").published.target == "rms.py:f"


@pytest.mark.parametrize(
    ("value", "message", "hint"),
    [
        ("rms.py", "which function or class of it?", "say it: rms.py:NAME"),
        ("mine=rms.py", "which function or class of it?", "say it: mine=rms.py:NAME"),
        ("rms.py:", "'rms.py:' names no code", "allowed: [NAME=]path/to/file.py:attribute[@GIT_REVISION] or"),
        (":f", "names no code", "allowed:"),
        ("=rms.py:f=", "names no code", "allowed:"),
        ("rms.py:1f", "names no code", "allowed:"),
        ("rms.py:f g", "names no code", "allowed:"),
        ("rms.py:f()", "names no code", "allowed:"),
        ("rms.py:f.", "names no code", "allowed:"),
        ("a=b=rms.py:f", "names no code", "allowed:"),
        ("./rms.cu:f", "'./rms.cu' is neither a .py file nor a module", "allowed:"),
        ("kernels/rms:f", "'kernels/rms' is neither a .py file nor a module", "allowed:"),
        ("C:\\rms:f", "is neither a .py file nor a module", "allowed:"),
        ("rms.py:f@", "names no code", "allowed:"),
        ("rms.py:f@-x", "@-x: is no git revision", "allowed:"),
        ("rms.py:f@a b", "@a b: is no git revision", "allowed:"),
        ("pkg.rms:f@main", "@main: is of files in a git repository, not of modules", "allowed:"),
        ("=rms.py:f", "'' is no name", "allowed: letters, digits, and inside . _ -; up to 64"),
        ("my norm=rms.py:f", "'my norm' is no name", "allowed: letters"),
        ("-x=rms.py:f", "'-x' is no name", "allowed: letters"),
        ("größe=rms.py:f", "'größe' is no name", "allowed: letters"),
        (f"{'x' * 65}=rms.py:f", "is no name", "up to 64"),
        (
            "norms.py:f",
            "does f compute LayerNorm or RMSNorm?",
            "end its name in its formula: NAME-rmsnorm=norms.py:f",
        ),
        ("pkg.mod:Norm@x", "@x", "allowed"),
        ("~no-such-user-here/rms.py:f", "there is no such home", "name the path itself"),
    ],
)
def test_what_is_wrong_is_named_and_what_is_allowed_said(value: str, message: str, hint: str) -> None:
    said = refused(value)

    assert message in said[0]
    assert said[0].startswith("--impls: ")
    assert hint in said[1]


def test_a_name_that_is_taken_is_refused_and_another_shown() -> None:
    message, hint = refused("nn-rmsnorm=rms.py:f@main", "nn-rmsnorm")

    assert message == "--impls: nn-rmsnorm=rms.py:f@main: there is an implementation 'nn-rmsnorm' already"
    assert hint == "another name: NAME=rms.py:f@main"
    assert refused("rms.py:f@main", "f-rmsnorm")[1] == "another name: NAME=rms.py:f@main"


def test_values_are_split_at_commas_spaces_and_repeats() -> None:
    values = ["nn-rmsnorm,rms.py:f", " a b\tc,", "mine=x.py:f, y.py:g@h"]

    assert parts("--impls", values) == ["nn-rmsnorm", "rms.py:f", "a", "b", "c", "mine=x.py:f", "y.py:g@h"]


def test_a_file_whose_path_has_spaces_or_commas_is_one(folder: Path) -> None:
    for name in ("my norms.py", "a,b.py", "a, b c.py"):
        (folder / name).touch()

    assert parts("--impls", ["x=my norms.py:f"]) == ["x=my norms.py:f"]
    assert parts("--impls", ["a,b.py:f", " a, b c.py:f@main "]) == ["a,b.py:f", "a, b c.py:f@main"]
    assert parts("--impls", ["nn-rmsnorm,my norms.py:f"]) == ["nn-rmsnorm", "my norms.py:f"]


def test_a_path_that_can_t_be_looked_at_is_split_as_any_other() -> None:
    long = "x" * 5000

    assert parts("--impls", [f"{long}.py:f g"]) == [f"{long}.py:f", "g"]


@pytest.mark.parametrize("values", [[""], [" "], [","], [" , ", ""]])
def test_no_value_is_refused(values: list[str]) -> None:
    with pytest.raises(UsageError, match="--impls: no value"):
        parts("--impls", values)


def test_spelled_out_it_can_be_asked_for_again() -> None:
    one = asked("mine=rms.py:A.f@main")

    assert str(one) == "mine=rms.py:A.f@main"
    assert asked(str(one)) == one
