"""Run folders of strangers through the commands: every file and stream is text, whatever the folder holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from normbench.records import Status
from normbench.storage import RunFolder
from tests.checked import write_check
from tests.cli.command import Done, normbench
from tests.hostile_texts import CONTROL, MARKUP, hostile_check, spoiled
from tests.runs import TIMES, make_device, make_environment, make_header, make_plan, make_records

TEXTS = {"all markup at once": " ".join(MARKUP.values()), **CONTROL}
TEXTS.pop("half a character")  # which no file of text can hold


def folder_of(path: Path, text: str, factor: float) -> Path:
    """A run folder in which every text begins with this one."""
    plan = make_plan(widths=(64, 128))
    environment = make_environment(packages=(("some", "1"),), cuda="13", driver="580")
    header = make_header(plan, device=make_device(), environment=environment)
    folder = RunFolder.create(path, spoiled(header, text))
    times = {**{name: time * factor for name, time in TIMES.items()}, "eager-rmsnorm": Status.FAILED}
    for cell in plan.cells():
        folder.write(spoiled(make_records(cell, times, plan), text))
    return path


def let_everything_pass(patch: pytest.MonkeyPatch) -> None:
    """Write what a stranger may have written, and read it: the outputs rely on no refusal of those who read."""
    for objection in ("json_object.name_objection", "strict_json.objection", "table.field_objection"):
        patch.setattr(f"normbench.storage.{objection}", lambda _text: None)
    for clean in ("strict_json.cleaned", "table.cleaned_field"):
        patch.setattr(f"normbench.storage.{clean}", lambda text: text)


def assert_no_character_acts(text: str, where: str) -> None:
    acting = {c for c in text if c != "\n" and (not c.isprintable() or c in "\u3164\u034f")}
    assert not acting, f"{acting!r} in {where}"


@pytest.mark.parametrize("name", TEXTS)
def test_reports_and_comparisons_of_a_hostile_folder_are_text_or_the_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("normbench.reporters.plots.choice.MOST", 1)
    let_everything_pass(monkeypatch)
    try:
        one, other = (folder_of(tmp_path / n, TEXTS[name], f) for n, f in (("one", 1.0), ("other", 1.2)))
    except ValueError:
        pytest.skip("records refuse it")
    done: dict[str, Done] = {
        "report": normbench("report", one),
        "report of two": normbench("report", one, other, "--out", tmp_path / "both"),
        "compare": normbench("compare", one, other),
        "compare as markdown": normbench("compare", one, other, "--format", "markdown"),
        "compare as JSON": normbench("compare", one, other, "--json"),
        "gate": normbench("compare", one, other, "--fail-on", "slower:5%"),
    }

    allowed = {0, 3} if name in CONTROL else {0}
    for what, end in done.items():
        assert end.code in (allowed if what != "gate" else {1, 3}), (what, end.err)
        assert_no_character_acts(end.out, what)
        if end.code != 3:  # errors are made visible by the stream, which tests of consoles see
            assert_no_character_acts(end.err, what)
    made = [*(one / "plots").glob("*.svg"), *tmp_path.rglob("*.md"), *tmp_path.rglob("*.html")]
    assert made or name in CONTROL
    for path in made:
        assert_no_character_acts(path.read_text(encoding="utf-8"), path.name)


@pytest.mark.parametrize("name", TEXTS)
def test_reports_of_a_hostile_check_are_text_or_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    let_everything_pass(monkeypatch)
    path = write_check(tmp_path / "check", hostile_check(TEXTS[name]))

    for words in (("report", path), ("report", path, "--json")):
        done = normbench(*words)
        assert done.code in ({0, 3} if name in CONTROL else {0}), done.err
        assert_no_character_acts(done.out, str(words))
    made = path / "check.md"
    assert made.exists() or name in CONTROL
    if made.exists():
        assert_no_character_acts(made.read_text(encoding="utf-8"), made.name)
