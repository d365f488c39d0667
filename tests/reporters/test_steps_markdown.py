"""``verdict.md`` of steps: the answer first, tables that GitHub reads, and never too long."""

from __future__ import annotations

from dataclasses import replace

import pytest

from normbench.records import Corpus, Status, StepRun
from normbench.reporters import steps
from normbench.reporters.markdown import MOST_CHARACTERS
from normbench.reporters.steps_markdown import render
from tests.hostile_texts import TEXTS
from tests.reporters.reading import (
    GITHUB,
    NO_WIDTH,
    assert_tables_keep_their_shape,
    environment,
    flat,
    parsed,
    table_after,
    tables,
)
from tests.runs import make_device, make_environment
from tests.step_runs import (
    ENDS,
    RATIOS,
    complete_run,
    empty_run,
    failed_run,
    make_alone,
    make_cell,
    make_curve,
    make_step_header,
    make_step_plan,
    make_step_run,
    make_training_plan,
    training_run,
)


@pytest.mark.parametrize("run", [complete_run(), failed_run(), empty_run(), training_run()])
def test_the_first_line_is_the_answer(run: StepRun) -> None:
    assert flat(render(run).splitlines()[0].replace("\\", "")) == f"**{steps.headline(run)}.**"


def test_each_cell_is_a_table_of_its_variants() -> None:
    text = render(complete_run())

    found = [table for table in tables(text) if table[0][:2] == ["implementation", "step"]]
    assert len(found) == 4
    assert found[0][0] == [
        *("implementation", "step", "÷ baseline", "outcome", "tokens/s", "forward", "backward", "optimizer", "peak"),
        *("saved", "parameters", "norms' share", "flags"),
    ]
    assert found[0][2] == [
        *("eager-rmsnorm", "109 ms [108, 110]", "1.087 [1.079, 1.095]", "slower", "18,800", "32.6 ms", "59.8 ms"),
        *("13.0 ms", "50.0 MiB", "42.0 MiB", "3,737,856", "17 %", "drifted"),
    ]
    assert found[0][3][:4] == ["nn-layernorm", "100 ms [99, 101]", "-", "baseline"]
    assert text.index("### Width 256, 4 layers, 8×256 tokens, fp32, eager model") < text.index("compiled model\n")


def test_whoever_has_no_time_has_its_status_in_the_table_and_its_reason_below() -> None:
    text = render(failed_run())

    assert table_after(text, "Step times")[1] == [
        *("eager-layernorm", "-", "-", "out_of_memory", "-", "-", "-", "-", "-", "-", "3,740,160", "-", ""),
    ]
    assert table_after(text, "Without a result")[1] == [
        *("eager-layernorm: out_of_memory", "width 256, 4 layers, 8×256 tokens, fp32, eager model", "because"),
    ]


def test_predicted_stands_against_measured() -> None:
    rows = table_after(render(complete_run()), "Predicted against measured")

    assert len(rows) == 1 + 4 * 5
    assert rows[5] == [
        *("compile-rmsnorm", "width 256, 4 layers, 8×256 tokens, fp32, eager model", "-333 µs [-341, -326]"),
        *("-3.00 ms [-3.07, -2.93]", "-6.00 ms [-6.65, -5.34]", "3.00 ms less than predicted"),
    ]
    assert "could be saved" in render(complete_run())


def test_what_was_learnt_is_a_table_by_variant_and_one_by_run() -> None:
    text = render(training_run())

    assert table_after(text, "What was learnt")[2:] == [
        ["nn-layernorm", "3 of 3", "2.1400", "-", "0.0400", "baseline"],
        ["nn-rmsnorm", "3 of 3", "2.1413", "+0.0013 ± 0.0006", "0.0400", "no difference"],
    ]
    runs = table_after(text, "Every run")
    assert runs[0] == ["implementation", "seed", "steps", "bits per byte", "code", "prose", "status"]
    assert runs[1] == ["eager-rmsnorm", "0", "400 of 400", "2.3000", "2.2000", "2.4000", "ok"]
    assert len(runs) == 10
    assert "## Step times" not in text


def test_an_empty_run_has_no_empty_part() -> None:
    text = render(empty_run())

    assert "This run is incomplete: 4 of 4 cells lack a final status" in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == []
    assert "## Without a result" not in render(complete_run())


def test_how_it_was_measured_on_what_and_the_command_are_there() -> None:
    run = make_step_run(environment=make_environment(packages=(("some", "1.0"),)))
    text = render(run)

    assert ["some", "1.0"] in environment(text)
    for said in ("gradient clipping and the update by AdamW", "against itself gives", "with a float64 reference"):
        assert said in text
    assert text.endswith(f"Again: `{' '.join(run.header.command)}`\n")


def many(names: int, cells: int, name: str = "x") -> StepRun:
    """So many implementations at so many widths, of which each fifth fails."""
    implementations = ("nn-layernorm", *(f"{name}{number}-rmsnorm" for number in range(names)))
    ratios = {
        each: Status.FAILED if place % 5 == 4 else 1.0 + place / 100 for place, each in enumerate(implementations)
    }
    plan = make_step_plan(
        cells=tuple(make_cell(256 * (1 + number)) for number in range(cells)), implementations=implementations
    )
    return make_step_run(plan, ratios, alone=make_alone(plan, dict.fromkeys(implementations[1:], 1.5)))


def trained(seeds: int, corpora: int, name: str = "text") -> StepRun:
    """So many seeds on so many texts."""
    texts = tuple(
        Corpus(name=f"{name}{n}", train_bytes=9, held_out_bytes=1, digest="00" * 32) for n in range(corpora)
    )
    training = make_training_plan(seeds=tuple(range(seeds)), corpora=texts, evaluate_every=400)
    plan = make_step_plan(cells=(), implementations=("nn-layernorm", "nn-rmsnorm"), training=training)
    curves = [make_curve(who, seed, 2.0, training) for seed in training.seeds for who in plan.implementations]
    return StepRun(header=make_step_header(plan), curves=tuple(curves))


@pytest.mark.parametrize(
    "run",
    [
        many(60, 2),
        many(8, 40),
        many(300, 3),
        many(30, 3, "|" * 120),
        many(10, 2, "é" * 150),
        trained(1000, 2),
        trained(3, 3000),
        trained(40, 60, "|`*" * 50),
    ],
    ids=[
        *("many", "many cells", "very many", "long names", "letters of two bytes", "seeds", "texts", "long texts"),
    ],
)
def test_however_much_there_is_it_stays_short_and_its_tables_whole(run: StepRun) -> None:
    text = render(run)

    assert len(text) < MOST_CHARACTERS
    assert text.startswith("**On Some CPU, ")
    assert_tables_keep_their_shape(text)
    assert len(list(tables(text))) >= 2


def test_what_is_left_out_is_counted() -> None:
    run = many(300, 3)
    text = render(run)
    shown = sum(len(table) - 1 for table in tables(text) if table[0][:2] == ["implementation", "step"])

    assert f"60,000 characters: {3 * 301 - shown} results; " in text


def test_a_usual_run_is_shown_whole() -> None:
    assert all("Left out" not in render(run) for run in (complete_run(), failed_run(), training_run()))


def hostile(text: str) -> StepRun:
    """A run in which every text from outside is one."""
    changes = {
        "device": make_device(name=text),
        "environment": make_environment(torch=text, packages=((text, text),)),
    }
    run = make_step_run(
        make_step_plan(), {**RATIOS, "nn-rmsnorm": Status.FAILED}, command=("normbench", text), **changes
    )
    return replace(run, results=tuple(replace(r, reason=text) if r.reason else r for r in run.results))


def hostile_training(text: str) -> StepRun:
    """Training on a text with such a name, of which a run failed with such a reason."""
    corpora = (Corpus(name=text, train_bytes=9, held_out_bytes=1, digest="00" * 32),)
    run = training_run(ENDS, corpora=corpora)
    lost = replace(run.curves[0], status=Status.FAILED, reason=text)
    header = replace(run.header, device=make_device(name=text))
    return replace(run, header=header, curves=(lost, *run.curves[1:]))


@pytest.mark.parametrize("make", [hostile, hostile_training])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_text_from_outside_is_read_as_markup(make: object, text: str) -> None:
    assert callable(make)
    found, harmless = (render(make(each)) for each in (text, "a"))
    shown = parsed(GITHUB.render(found))

    assert shown.elements == parsed(GITHUB.render(harmless)).elements
    assert flat(text) in " ".join("".join(shown.text).replace(NO_WIDTH, "").split())
    assert_tables_keep_their_shape(found)
