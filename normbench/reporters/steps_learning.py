"""Training in words: whether a model learns as well with other norms, against the noise of the seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import mean

from normbench import quality, units
from normbench.quality import Learned, Quality
from normbench.records import Status, StepRun, TrainingCurve, TrainingPlan
from normbench.reporters import statements

_MOST_NAMES = 8

OUTCOMES = {
    Learned.BETTER: "learns better",
    Learned.WORSE: "learns worse",
    Learned.SAME: "no difference",
    Learned.UNDECIDED: "undecided",
}
"""What each verdict on learning is called."""


@dataclass(frozen=True, kw_only=True)
class LearningLine:
    """One implementation's row: how its runs ended, as text."""

    name: str
    runs: str
    bits: str
    difference: str
    noise: str
    verdict: str


@dataclass(frozen=True, kw_only=True)
class CurveLine:
    """One run's row: how far it got and what it ended with, as text; ``corpora`` in the plan's order."""

    name: str
    seed: int
    steps: str
    bits: str
    corpora: tuple[str, ...]
    status: str


def headline(run: StepRun) -> str:
    """The answer of a run that trained, in a sentence without its full stop."""
    plan, training = run.header.plan, run.header.plan.training
    assert training is not None
    on = f"On {statements.clipped(run.header.device.name)}"
    if not quality.finals_by_seed(run, plan.baseline):
        started = any(curve.implementation == plan.baseline and curve.points for curve in run.curves)
        why = "no run of the baseline has ended" if started or run.curves else "nothing has been trained yet"
        return f"{on}: no verdict, since {why}"
    parts = [f"{each.candidate} {verdict(each)}" for each in quality.of_run(run)]
    against = "; ".join(statements.first_few(parts, _MOST_NAMES, "and ")) or "nothing was trained beside it"
    return f"{on}, {described(training)}, against {plan.baseline}: {against}"


def described(training: TrainingPlan) -> str:
    """What is trained: ``width 256, 4 layers, 400 steps, 3 seeds``."""
    shape = training.shape
    layers, steps = units.count(shape.layers, "layer"), units.count(training.steps, "step")
    return f"width {shape.width}, {layers}, {steps}, {units.count(len(training.seeds), 'seed')}"


def verdict(found: Quality) -> str:
    """``+0.0013 bits per byte against a seed noise of 0.0434: no difference``."""
    if found.difference is None:
        return "has no run that ended with a seed of the baseline's"
    difference = f"{units.bits(found.difference, signed=True)} bits per byte"
    if found.noise is None or found.half_width is None:
        return f"{difference}: cannot tell from fewer than two seeds (--seeds 3)"
    return f"{difference} against a seed noise of {units.bits(found.noise)}: {OUTCOMES[found.outcome]}"


def sentences(run: StepRun) -> list[str]:
    """What each candidate ended with, its interval, and what that means."""
    return [f"{found.candidate}: {verdict(found)}{_interval(found)}." for found in quality.of_run(run)]


def _interval(found: Quality) -> str:
    if found.half_width is None or found.difference is None or found.noise is None:
        return ""
    ends = (units.bits(found.difference + side * found.half_width, signed=True) for side in (-1, 1))
    said = f" (95 % interval {' to '.join(ends)}, {units.count(found.seeds, 'seed')} of both"
    if found.outcome is Learned.SAME and found.is_systematic:
        more = "more" if found.difference > 0 else "fewer"
        said += f"; {more} bits by no chance, but by less than another seed makes of the baseline"
    if found.outcome is Learned.UNDECIDED:
        said += "; it neither lies within the seed noise nor clears 0 and that noise: more --seeds would narrow it"
    return f"{said})"


def lines(run: StepRun) -> list[LearningLine]:
    """A row for each implementation, the baseline among them."""
    found = {each.candidate: each for each in quality.of_run(run)}
    noise = next((each.noise for each in found.values()), None)
    return [_line(run, name, found.get(name), noise) for name in run.header.plan.implementations]


def _line(run: StepRun, name: str, found: Quality | None, noise: float | None) -> LearningLine:
    training = run.header.plan.training
    assert training is not None
    finals = quality.finals_by_seed(run, name)
    return LearningLine(
        name=name,
        runs=f"{len(finals)} of {len(training.seeds)}",
        bits=units.bits(mean(finals.values()) if finals else None),
        difference=units.ABSENT if found is None else _with_interval(found),
        noise=units.bits(noise),
        verdict=_verdict(found, finals),
    )


def _verdict(found: Quality | None, finals: Mapping[int, float]) -> str:
    if found is None:
        return "baseline"
    if not finals:
        return "no run ended"
    return "cannot tell" if found.half_width is None or found.noise is None else OUTCOMES[found.outcome]


def _with_interval(found: Quality) -> str:
    if found.difference is None:
        return units.ABSENT
    text = units.bits(found.difference, signed=True)
    return text if found.half_width is None else f"{text} ± {units.bits(found.half_width)}"


def curve_lines(run: StepRun) -> list[CurveLine]:
    """A row for each run, in the order of implementations and seeds."""
    training = run.header.plan.training
    if training is None:
        return []
    order = {name: place for place, name in enumerate(run.header.plan.implementations)}
    curves = sorted(run.curves, key=lambda curve: (order.get(curve.implementation, len(order)), curve.seed))
    return [_curve(curve, training) for curve in curves]


def _curve(curve: TrainingCurve, training: TrainingPlan) -> CurveLine:
    last = curve.points[-1] if curve.points else None
    reached = last.step if last else 0
    ended = curve.status is Status.OK and reached == training.steps
    by_corpus = last.by_corpus if last and ended else ()
    return CurveLine(
        name=curve.implementation,
        seed=curve.seed,
        steps=f"{reached} of {training.steps}",
        bits=units.bits(last.bits_per_byte if last and ended else None),
        corpora=tuple(map(units.bits, by_corpus)) or (units.ABSENT,) * len(training.corpora),
        status=str(curve.status) if ended or curve.status is not Status.OK else "not at its end",
    )


def notes(training: TrainingPlan) -> list[str]:
    """How training went, and what the verdict rests on, a sentence each."""
    texts = [
        f"{statements.clipped(corpus.name)} ({units.size(corpus.train_bytes)} to train on, "
        f"{units.size(corpus.held_out_bytes)} held out)"
        for corpus in training.corpora
    ]
    autocast = f", autocast {training.autocast}" if training.autocast else ""
    return [
        f"Every variant was trained from the same seeds ({_seeds(training)}): the same other weights, the same "
        f"batches in the same order, {training.shape.batch}×{training.shape.context} bytes a step, "
        f"{training.dtype}{autocast}, {'compiled' if training.compiled else 'eager'} model.",
        f"AdamW, gradients clipped to a norm of {training.clip:g}, learning rate up to {training.learning_rate:g} "
        f"over {units.count(training.warm_up, 'step')}, then along a cosine down to a tenth.",
        f"Text: {units.join(texts)}. Held out bits per byte are the mean of the corpora's, over the same "
        f"{units.count(training.held_out_batches, 'batch')} each time.",
        "Difference: the mean over seeds of the candidate's held-out bits per byte less the baseline's of the same "
        "seed, with Student's t interval (95 %). Seed noise: the standard deviation of the baseline's own runs. No "
        "difference: the whole interval lies within that noise; better or worse: the interval excludes 0 and the "
        "difference exceeds the noise.",
    ]


def _seeds(training: TrainingPlan) -> str:
    seeds = training.seeds
    return units.numbers(seeds) if len(seeds) <= _MOST_NAMES else f"{len(seeds)} of them"
