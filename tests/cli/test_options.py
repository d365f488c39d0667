from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normbench.cli import options
from normbench.errors import UsageError
from normbench.records import DType
from normbench.storage import RunFolder
from tests.cli.command import normbench, sweep
from tests.runs import write_run

SIZE_FORMS = "whole numbers from 1, and ranges first:last:xFACTOR or first:last:STEP, such as 256:8192:x2"


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs in an empty folder."""
    monkeypatch.chdir(tmp_path)


def widths(*words: str) -> list[int]:
    """The widths of the cells that a dry run lists."""
    done = sweep("--dry-run", *words)
    assert done.code == 0, done.err
    cells = [line.split()[0] for line in done.out.splitlines() if " fp32 forward warm: " in line]
    return [int(shape.partition("×")[2]) for shape in cells]


def refused(*words: str | Path) -> str:
    """What is said when these words are refused before anything ran."""
    with patch.object(RunFolder, "create", side_effect=AssertionError("a run was begun")):
        done = normbench("sweep", *words)
    assert (done.code, done.out) == (2, "")
    return done.err


@pytest.mark.parametrize(
    "words",
    [
        ["--widths", "256", "512", "4096"],
        ["--widths", "256,512,4096"],
        ["--widths", "256", "--widths", "512", "--width", "4096"],
        ["--widths=256", "512", "4096"],
        ["--width=256,512", "4096"],
        ["--widths", "256, 512,", "4096"],
        ["--widths", "256 512 4096"],
        ["--widths", "256", "512", "--rows", "32", "--width", "4096"],
        ["--widths", "256", "512", "256", "4096", "512"],
    ],
)
def test_all_ways_to_write_a_list_mean_the_same(words: list[str]) -> None:
    assert widths(*words) == [256, 512, 4096]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("256:8192:x2", [256, 512, 1024, 2048, 4096, 8192]),
        ("256:1024:256", [256, 512, 768, 1024]),
        ("256:1000:x2", [256, 512]),
        ("7:7:x2", [7]),
        ("4096 256:1024:x2 512", [4096, 256, 512, 1024]),
    ],
)
def test_ranges_go_by_a_factor_or_a_step_up_to_the_last(text: str, expected: list[int]) -> None:
    assert widths("--widths", *text.split()) == expected


@pytest.mark.parametrize(
    "value",
    [
        "0",
        "-1",
        "abc",
        "2.5",
        "1e3",
        "1:2",
        "8:4:x2",
        "4:8:x1",
        "4:8:0",
        "0:8:x2",
        "4:8:-1",
        "²",
        "1:3:\u0663",
        "1:2:3:4",
    ],
)
@pytest.mark.parametrize("option", ["--widths", "--rows"])
def test_a_bad_size_is_refused_by_its_value_with_what_is_allowed(option: str, value: str) -> None:
    expected = f"error: {option}: {value!r} is not a size\nhint: allowed: {SIZE_FORMS}\n"

    assert refused(option, "64", value) == refused(option, f"{value},64") == expected


@pytest.mark.parametrize("option", ["--widths", "--dtypes", "--impls", "--modes"])
@pytest.mark.parametrize("value", ["", ",", " "])
def test_a_list_without_a_value_in_it_is_refused_and_not_taken_for_the_default(option: str, value: str) -> None:
    assert f"error: {option}: {value!r} holds no value" in refused(option, value, "--dry-run")


@pytest.mark.parametrize("words", [["--widths"], ["--widths", "--dry-run"], ["--widths="], ["--widths", "--", "64"]])
def test_a_list_option_at_which_values_are_missing_says_so(words: list[str]) -> None:
    assert "error: --widths: a value is missing" in refused(*words)


def test_a_single_option_at_which_the_value_is_missing_says_so() -> None:
    assert "--eps" in refused("--widths", "64", "--eps")


@pytest.mark.parametrize("words", [["--out", "--json"], ["--out", "--"], ["--seed", "-q"], ["--out", "-"]])
def test_an_option_is_not_taken_for_the_value_of_the_one_before_it(words: list[str], tmp_path: Path) -> None:
    assert f"error: {words[0]}: a value is missing" in refused(*words)
    assert list(tmp_path.iterdir()) == []


def test_a_value_that_looks_like_an_option_can_be_given_all_the_same() -> None:
    assert widths("--width", "16", "--eps", "1e-5", "--out=--json", "--seed", "-1") == [16]


def test_what_follows_two_dashes_is_no_value_of_a_list() -> None:
    assert "unexpected extra argument (512)" in refused("--widths", "256", "--", "512").replace("(s)", "")


def test_an_option_ends_the_list_before_it() -> None:
    assert widths("--widths", "64", "--seed", "-5", "--eps", "1e-5") == [64]
    assert "unexpected extra argument (512)" in refused("--widths", "64", "--quiet", "512").replace("(s)", "")


sizes = st.lists(st.integers(min_value=1, max_value=10**18), min_size=1, max_size=8)


@given(sizes, st.sampled_from(["--widths", "--width"]), st.booleans())
def test_spaces_commas_and_repeats_are_the_same_list(values: list[int], name: str, joined: bool) -> None:
    texts = [str(value) for value in values]
    first = [f"{name}={texts[0]}", *texts[1:]] if joined else [name, *texts]
    expanded = options.expand(["--quick", *first, "--eps", "1"])

    assert expanded == ["--quick", *(word for text in texts for word in (name, text)), "--eps", "1"]
    assert (
        options.sizes(name, expanded[2:-2:2])
        == options.sizes(name, [",".join(texts)])
        == tuple(dict.fromkeys(values))
    )
    assert options.expand(expanded) == expanded


@pytest.mark.parametrize("name", ["float32", "torch.float32", "FP32", "float"])
def test_torchs_names_of_a_dtype_mean_the_same(name: str) -> None:
    assert options.dtype("--dtype", name) is DType.FP32


def test_every_dtype_has_both_names() -> None:
    for dtype in DType:
        assert options.dtype("", str(dtype)) is options.dtype("", dtype.torch_name) is dtype
    assert options.dtype("", "half") is DType.FP16


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--dtypes", "fp32", "bf61"],
            "--dtypes: unknown dtype 'bf61'\nhint: did you mean bf16? allowed: fp32, bf16",
        ),
        (["--dtype", "float31"], "--dtypes: unknown dtype 'float31'\nhint: did you mean float32? allowed: "),
        (["--param-dtype", "fp23"], "--param-dtypes: unknown dtype 'fp23'\nhint: did you mean fp32?"),
        (
            ["--impls", "nn-layernrom"],
            "--impls: unknown implementation 'nn-layernrom'\nhint: did you mean nn-layernorm?",
        ),
        (["--impls", "zzz"], "--impls: unknown implementation 'zzz'\nhint: allowed: copy, eager-layernorm"),
        (["--modes", "foward"], "--modes: unknown mode 'foward'\nhint: did you mean forward?"),
        (["--cache", "hot"], "--caches: unknown cache 'hot'\nhint: allowed: cold, warm"),
        (["--baseline", "copy"], "--baseline: unknown implementation 'copy'\nhint: allowed: eager-layernorm"),
        (["--compile-mode", "fast"], "--compile-mode: unknown mode 'fast'\nhint: allowed: default"),
        (["--autocast", "fp32"], "--autocasts: 'fp32' is no autocast dtype\nhint: allowed: off, bf16, fp16"),
        (["--target", "0"], "--target: '0' is not a fraction\nhint: allowed: above 0 and below 1, as 0.01 or 1%"),
        (["--target", "150%"], "--target: '150%' is not a fraction"),
        (["--target", "-1%"], "--target: '-1%' is not a fraction"),
        (["--target", "one"], "--target: 'one' is not a fraction"),
        (["--placements", "1"], "--placements: 1 is too few\nhint: allowed: 5 and more"),
        (["--eps", "-1"], "--eps: -1 is not a number above 0"),
        (["--eps", "nan"], "--eps: nan is not a number above 0"),
        (["--max-seconds", "0"], "--max-seconds: 0 is not a number above 0"),
        (["--total-seconds", "inf"], "--total-seconds: inf is not a number above 0"),
        (["--device", "cuda:99"], "--device cuda:99: there is no such device here\nhint: available: cpu"),
        (["--device", "tpu"], "--device tpu: there is no such device here\nhint: available: cpu"),
        (["--device", ""], "--device '': there is no such device here"),
    ],
)
def test_a_bad_value_is_refused_by_name_with_the_nearest_or_what_is_allowed(words: list[str], said: str) -> None:
    assert refused("--widths", "64", *words).startswith(f"error: {said}")


@pytest.mark.parametrize("words", [["--seed", "x"], ["--placements", "2.5"], ["--eps", "small"], ["--bogus"]])
def test_what_is_no_value_of_its_option_is_refused_naming_it(words: list[str]) -> None:
    assert any(word in refused("--widths", "64", *words) for word in words)


@pytest.mark.parametrize(("text", "value"), [("1%", 0.01), ("0.01", 0.01), ("2.5 %", 0.025), ("1e-3", 1e-3)])
def test_a_fraction_is_a_number_or_a_percentage(text: str, value: float) -> None:
    assert options.fraction("--target", text) == value


def test_an_existing_folder_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("kept", encoding="utf-8")

    assert refused("--out", "mine").startswith("error: --out mine: exists, and no run is ever overwritten\n")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes"]


@pytest.mark.parametrize("out", ["file/run", "file/deep/run", "n" * 300])
def test_a_folder_that_cannot_be_made_is_refused_naming_it(tmp_path: Path, out: str) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = sweep("--widths", "64", "--out", out)

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: --out {out}: can't be written: ")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--widths", "64", "128"], "--resume: another plan: --widths: the run has 64, asked for 64 128"),
        (["--quick"], "--resume: another plan: --widths: the run has 64, asked for 256 1024"),
        (["--seed", "1"], "--resume: another plan: --seed: the run has 0, asked for 1"),
        (["--out", "new"], "--resume writes into the run's own folder"),
    ],
)
def test_another_plan_beside_resume_is_refused(tmp_path: Path, words: list[str], said: str) -> None:
    before = sorted(write_run(tmp_path / "run").path.iterdir())

    assert f"error: {said}" in refused("--resume", "run", *words)
    assert sorted((tmp_path / "run").iterdir()) == before


@pytest.mark.parametrize("value", ["1:1000000000000:1", "1:1001:1"])
def test_a_range_of_too_many_sizes_is_refused_before_it_is_made(value: str) -> None:
    with pytest.raises(UsageError, match="sizes"):
        options.sizes("--widths", [value])


def test_a_range_of_a_thousand_sizes_is_taken() -> None:
    assert len(options.sizes("--widths", ["1:1000:1"])) == 1000


@pytest.mark.parametrize("value", ["9" * 400, "9" * 5000, "1:" + "9" * 400 + ":x2", "1:10:x" + "9" * 400])
def test_an_absurd_size_is_refused_and_no_overflow(value: str) -> None:
    with pytest.raises(UsageError):
        options.sizes("--widths", [value])
