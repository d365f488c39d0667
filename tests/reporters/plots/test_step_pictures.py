"""The pictures of steps and of training: which there are, and what can be seen in them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normbench.records import Status, StepCell, StepRun
from normbench.reporters.plots import inline_svg, steps
from tests.reporters.plots.looking import labels, lines, points, texts, x_ticks, y_ticks
from tests.step_runs import (
    CELLS,
    RATIOS,
    Ratios,
    complete_run,
    empty_run,
    failed_run,
    make_alone,
    make_cell,
    make_curve,
    make_step_plan,
    make_step_run,
    make_training_plan,
    training_run,
)


def panels(run: StepRun, figures: list[Figure], name: str) -> list[Axes]:
    """The panels of one picture."""
    list(steps.draw(run))
    return figures[steps.planned(run).index(name)].axes


def test_each_picture_that_a_run_has_comes_as_png_and_svg() -> None:
    files = dict(steps.draw(complete_run()))

    assert list(files) == [
        *("step.png", "step.svg", "step-parts.png", "step-parts.svg", "prediction.png", "prediction.svg"),
    ]
    assert all(data.startswith(b"\x89PNG") == name.endswith("png") for name, data in files.items())
    assert [name for name, _ in steps.draw(training_run()) if name.endswith("svg")] == [
        *("training.svg", "training-difference.svg"),
    ]


def test_there_is_no_picture_of_what_was_not_measured() -> None:
    nobody = make_step_run(ratios=dict.fromkeys(RATIOS, Status.FAILED))
    no_baseline = make_step_run(ratios={**RATIOS, "nn-layernorm": Status.FAILED})

    assert list(steps.draw(empty_run())) == []
    assert steps.planned(nobody) == []
    assert steps.planned(no_baseline) == ["step-parts"]
    assert steps.planned(make_step_run()) == ["step", "step-parts"]
    assert steps.planned(replace(training_run(), curves=())) == []


def test_the_same_run_gives_the_same_bytes() -> None:
    assert list(steps.draw(complete_run())) == list(steps.draw(complete_run()))


@pytest.mark.parametrize("run", [complete_run(), training_run()])
def test_each_picture_can_stand_in_a_page(run: StepRun) -> None:
    for name, data in steps.draw(run):
        if name.endswith("svg"):
            assert inline_svg(data, "p").startswith("<svg")


def test_eager_and_compiled_have_a_panel_each_with_ratio_interval_and_margin(figures: list[Figure]) -> None:
    eager, compiled = panels(complete_run(), figures, "step")

    assert (eager.get_xlabel(), compiled.get_xlabel()) == (
        "width (eager model, fp32)",
        "width (compiled model, fp32)",
    )
    assert x_ticks(eager) == ["256", "512"]
    assert [y for _x, y in points(eager, "eager-rmsnorm")] == pytest.approx([1.087, 1.087])
    assert [y for _x, y in points(compiled, "eager-rmsnorm")] == pytest.approx([1.003, 1.003])
    assert [x for x, _y in points(eager, "nn-rmsnorm")] == pytest.approx([256, 512], rel=0.06)
    (bars,) = lines(eager)["eager-rmsnorm"].lines[2]
    assert bars.get_paths()[0].vertices[:, 1] == pytest.approx((1.087 / 1.007, 1.087 * 1.007))
    for panel in (eager, compiled):
        (band,) = panel.patches
        extents = band.get_extents().transformed(panel.transData.inverted())
        assert extents.intervaly == pytest.approx([1 / 1.02, 1.02])


def test_candidates_of_one_width_stand_beside_each_other_in_the_panel(figures: list[Figure]) -> None:
    (panel,) = panels(make_step_run(), figures, "step")
    at = [points(panel, name)[0][0] for name in lines(panel)]

    assert at == sorted(set(at))
    assert panel.get_xlim()[0] < at[0]
    assert at[-1] < panel.get_xlim()[1]


def test_every_candidate_is_named_and_the_baseline_is_not(figures: list[Figure]) -> None:
    panel = panels(failed_run(), figures, "step")[-1]

    assert sorted(text.get_text() for text in labels(panel)) == [
        *("compile-layernorm", "compile-rmsnorm (no time)", "eager-layernorm (no time)", "eager-rmsnorm"),
        "nn-rmsnorm (no time)",
    ]


@pytest.mark.parametrize("name", ["step", "step-parts"])
def test_whoever_has_no_time_is_named_under_the_picture_with_its_status(figures: list[Figure], name: str) -> None:
    (panel,) = panels(failed_run(), figures, name)
    said = " ".join(panel.get_xlabel().split())

    assert "without a time: eager-layernorm (out_of_memory); nn-rmsnorm (incorrect); compile-rmsnorm (unsupp" in said


def test_of_several_widths_it_is_said_where_somebody_has_no_time(figures: list[Figure]) -> None:
    def ratios(cell: StepCell) -> Ratios:
        return {**RATIOS, "nn-rmsnorm": Status.FAILED} if cell.shape.width == 512 else RATIOS

    (panel,) = panels(make_step_run(make_step_plan(cells=CELLS[:2]), ratios), figures, "step")

    assert "nn-rmsnorm (failed) at 512" in " ".join(panel.get_xlabel().split())
    assert len(points(panel, "nn-rmsnorm")) == 1


def test_parts_are_stacked_and_the_whole_step_stands_at_its_own_height(figures: list[Figure]) -> None:
    found = panels(complete_run(), figures, "step-parts")

    assert [panel.get_xlabel() for panel in found] == [
        *("width 256, eager model, fp32", "width 512, eager model, fp32"),
        *("width 256, compiled model, fp32", "width 512, compiled model, fp32"),
    ]
    bars = list(found[0].patches)[:3]
    assert [bar.get_height() for bar in bars] == pytest.approx([0.0336, 0.0616, 0.01344])  # type: ignore[attr-defined]
    assert [bar.get_y() for bar in bars] == pytest.approx([0, 0.0336, 0.0952])  # type: ignore[attr-defined]
    step = [line for line in found[0].lines if line.get_marker() == "D"]
    assert [float(line.get_ydata()[0]) for line in step][:3] == pytest.approx([0.112, 0.1087, 0.1])  # type: ignore[index]
    assert x_ticks(found[0])[2] == "nn-layernorm"
    assert 4 <= len(y_ticks(found[0])) <= 9


def test_four_panels_stand_in_two_rows_of_two(figures: list[Figure]) -> None:
    places = [panel.get_position() for panel in panels(complete_run(), figures, "step-parts")]

    assert [place.x0 for place in places] == pytest.approx([places[0].x0, places[1].x0] * 2)
    assert places[0].x0 < places[1].x0
    assert places[2].y1 < places[0].y0


def test_predicted_is_hollow_beside_what_was_measured_as_a_share_of_the_step(figures: list[Figure]) -> None:
    plan = make_step_plan(implementations=("nn-layernorm", "eager-rmsnorm"))
    run = make_step_run(plan, alone=make_alone(plan, {"eager-rmsnorm": 1.5}))
    (panel,) = panels(run, figures, "prediction")
    marks = [line for line in panel.lines if line.get_marker() == "s"]

    assert [float(line.get_ydata()[0]) for line in marks] == pytest.approx([0.05, 0.087])  # type: ignore[index]
    assert marks[0].get_markerfacecolor() == "none"
    assert marks[1].get_markerfacecolor() != "none"
    assert x_ticks(panel) == ["eager-rmsnorm"]


def test_curves_have_a_thin_line_for_each_seed_a_thick_one_for_the_mean_and_the_noise(figures: list[Figure]) -> None:
    (panel,) = panels(training_run(), figures, "training")
    widths = [line.get_linewidth() for line in panel.lines if len(line.get_xydata()) == 9]

    assert (widths.count(0.6), widths.count(1.8)) == (9, 3)
    mean = next(line for line in panel.lines if line.get_label() == "nn-layernorm")
    assert tuple(mean.get_xydata()[-1]) == pytest.approx((400, 2.14))
    (band,) = panel.collections
    last = [y for x, y in band.get_paths()[0].vertices if x == 400]
    assert (min(last), max(last)) == pytest.approx((2.10, 2.18))
    assert [text.get_text() for text in labels(panel)] == ["eager-rmsnorm", "nn-rmsnorm", "nn-layernorm"]


def test_differences_are_taken_seed_by_seed_against_a_noise_around_0(figures: list[Figure]) -> None:
    (panel,) = panels(training_run(), figures, "training-difference")
    mean = next(line for line in panel.lines if line.get_label() == "nn-rmsnorm")
    (band,) = panel.collections
    last = [y for x, y in band.get_paths()[0].vertices if x == 400]

    assert tuple(mean.get_xydata()[-1]) == pytest.approx((400, 0.0012667), abs=1e-6)
    assert (min(last), max(last)) == pytest.approx((-0.04, 0.04))


def test_training_that_was_cut_or_failed_is_drawn_as_far_as_it_got_and_said(figures: list[Figure]) -> None:
    training = make_training_plan(seeds=(0,))
    half = make_curve("nn-rmsnorm", 0, 2.0, training, until=200)
    lost = make_curve("eager-rmsnorm", 0, 2.0, training, until=100, status=Status.FAILED, reason="loss is NaN")
    whole = training_run(seeds=(0,))
    run = replace(whole, curves=(whole.curves[1], half, lost))
    (panel,) = panels(run, figures, "training")
    said = " ".join(panel.get_xlabel().split())

    assert said == "training step without an end: eager-rmsnorm, seed 0 (failed); 1 run not at step 400"
    assert {"nn-rmsnorm (no end)", "eager-rmsnorm (no end)"} <= {text.get_text() for text in labels(panel)}
    assert list(panel.collections) == []


def test_bits_per_byte_of_0_have_no_place_and_break_nothing() -> None:
    training = make_training_plan(seeds=(0,), evaluate_every=400)
    run = training_run(seeds=(0,))
    zero = tuple(
        replace(c, points=tuple(replace(p, bits_per_byte=0.0, by_corpus=(0.0, 0.0)) for p in c.points))
        for c in run.curves
    )

    assert training.steps == 400
    assert len(list(steps.draw(replace(run, curves=zero)))) == 4


def test_more_cells_than_panels_are_counted() -> None:
    plan = make_step_plan(cells=tuple(make_cell(256 * n) for n in range(1, 15)), implementations=("nn-layernorm",))
    files = dict(steps.draw(make_step_run(plan)))

    assert any("2 cells not drawn" in text for text in texts(files["step-parts.svg"]))
