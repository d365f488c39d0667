"""Training in words."""

from __future__ import annotations

from dataclasses import replace

from normbench.records import Status, StepRun
from normbench.reporters import steps, steps_learning
from tests.step_runs import ENDS, make_curve, make_training_plan, training_run


def test_the_answer_is_each_difference_against_the_noise_of_the_seeds() -> None:
    assert steps.headline(training_run()) == (
        "On Some CPU, width 256, 4 layers, 400 steps, 3 seeds, against nn-layernorm: eager-rmsnorm +0.2017 bits per "
        "byte against a seed noise of 0.0400: learns worse; nn-rmsnorm +0.0013 bits per byte against a seed noise of "
        "0.0400: no difference"
    )


def test_each_candidate_has_its_interval() -> None:
    assert steps_learning.sentences(training_run())[1] == (
        "nn-rmsnorm: +0.0013 bits per byte against a seed noise of 0.0400: no difference (95 % interval +0.0006 to "
        "+0.0019, 3 seeds of both; more bits by no chance, but by less than another seed makes of the baseline)."
    )


def test_a_small_difference_that_may_be_chance_is_not_called_more_and_one_below_0_is_fewer() -> None:
    by_chance = {**ENDS, "nn-rmsnorm": (2.101, 2.139, 2.1803)}
    fewer = {**ENDS, "nn-rmsnorm": (2.0987, 2.139, 2.1785)}

    assert "3 seeds of both)." in steps_learning.sentences(training_run(by_chance))[1]
    assert "fewer bits by no chance" in steps_learning.sentences(training_run(fewer))[1]


def test_better_and_undecided_have_their_words() -> None:
    ends = {**ENDS, "nn-rmsnorm": (2.0, 2.04, 2.081), "eager-rmsnorm": (2.05, 2.2, 2.26)}
    worse, better = steps_learning.sentences(training_run(ends))

    assert "undecided (95 % interval" in worse
    assert "more --seeds would narrow it" in worse
    assert "-0.0997 bits per byte against a seed noise of 0.0400: learns better" in better


def test_one_seed_can_not_tell() -> None:
    run = training_run(seeds=(0,))

    assert "nn-rmsnorm +0.0013 bits per byte: cannot tell from fewer than two seeds" in steps.headline(run)
    assert [line.verdict for line in steps_learning.lines(run)] == ["cannot tell", "baseline", "cannot tell"]


def cut_run() -> StepRun:
    """One run was interrupted, one failed, the rest has ended."""
    run = training_run()
    half = make_curve("nn-rmsnorm", 2, 2.1, make_training_plan(), until=200)
    curves = {(curve.implementation, curve.seed): curve for curve in run.curves}
    lost = replace(curves["eager-rmsnorm", 1], status=Status.FAILED, reason="loss is NaN")
    curves |= {("nn-rmsnorm", 2): half, ("eager-rmsnorm", 1): lost}
    return replace(run, curves=tuple(curves.values()))


def test_a_run_that_did_not_end_has_no_figures_and_is_not_counted() -> None:
    lines = {(line.name, line.seed): line for line in steps_learning.curve_lines(cut_run())}
    half, lost = lines["nn-rmsnorm", 2], lines["eager-rmsnorm", 1]

    assert (half.steps, half.bits, half.corpora, half.status) == ("200 of 400", "-", ("-", "-"), "not at its end")
    assert (lost.bits, lost.status) == ("-", "failed")
    assert [line.runs for line in steps_learning.lines(cut_run())] == ["2 of 3", "3 of 3", "2 of 3"]


def test_a_run_that_ended_has_its_bits_for_each_corpus() -> None:
    line = steps_learning.curve_lines(training_run())[3]

    assert (line.name, line.seed, line.steps, line.bits, line.corpora, line.status) == (
        *("nn-layernorm", 0, "400 of 400", "2.1000"),
        *(("2.0000", "2.2000"), "ok"),
    )


def test_without_the_baseline_s_runs_there_is_no_verdict() -> None:
    run = training_run()
    nothing = replace(run, curves=())
    others = replace(run, curves=tuple(c for c in run.curves if c.implementation != "nn-layernorm"))

    assert steps.headline(nothing) == "On Some CPU: no verdict, since nothing has been trained yet"
    assert steps.headline(others) == "On Some CPU: no verdict, since no run of the baseline has ended"
    assert [line.bits for line in steps_learning.lines(nothing)] == ["-"] * 3


def test_texts_and_what_was_the_same_for_all_are_said() -> None:
    said = " ".join(steps_learning.notes(make_training_plan(warm_up=1)))

    assert "code (9.00 MiB to train on, 1.00 MiB held out) and prose (600 KiB to train on, 70.0 KiB held out)" in said
    assert "the same seeds (0, 1 and 2)" in said
    assert "learning rate up to 0.0006 over 1 step, then along a cosine" in said
    assert "16 batches each time" in said
