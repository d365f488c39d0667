"""Norms that are wrong, each in one way, and which properties each must fail: what properties are for.

Where it is a matter of the values, of the width and of the format whether a property shows a fault, it stands under
``maybe``; all others must hold.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from math import nan

import torch

from normbench.implementations import Implementation
from normbench.records import Op, Property
from tests.faults import (
    AsSubclass,
    Make,
    by_position,
    eps_outside,
    every_third,
    in_float8,
    into_dy,
    largest_of_both,
    mean_of_sizes,
    nearly,
    of_another_dimension,
    of_packed_dy,
    of_the_other,
    on_parameters,
    on_x,
    on_y,
    only_in_autocast,
    only_mixed,
    only_of,
    only_without_gradients,
    other_default_eps,
    over_all_rows,
    over_one_less,
    packed,
    packed_rows,
    raising,
    scaled_by_the_batch,
    scaled_parameters,
    spreading,
    summed_over,
    tail_lost,
    uncentred,
    viewing_dy,
    where_infinite,
    where_nan,
    with_a_constant_root,
    with_eps,
    with_gradients,
    with_momentum,
    with_root,
    without_rows,
    without_subnormals,
    writing_into,
)
from tests.right_norms import LN, RMS, exact, implementation

BOTH = (LN, RMS)
EVERYTHING = " ".join(Property)


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A wrong norm.

    Args:
        implementation: What it is.
        fails: The properties that it fails wherever they are asked of it; None for all that it neither spares nor
            may fail.
        spares: Those that hold.
        maybe: Those of which either is possible.
    """

    implementation: Implementation
    fails: frozenset[Property] | None
    spares: frozenset[Property]
    maybe: frozenset[Property]

    @property
    def pointed(self) -> bool:
        """Whether a few properties fail, and all others hold, whatever the values are."""
        return self.fails is not None and not self.maybe

    def must_fail(self, asked: Collection[Property]) -> frozenset[Property]:
        """Those of the properties that were asked."""
        fails = frozenset(asked) - self.spares - self.maybe if self.fails is None else self.fails
        return fails & frozenset(asked)


def mutants(
    name: str,
    make: Make,
    *,
    fails: str | None = None,
    spares: str = "",
    maybe: str = "",
    ops: tuple[Op, ...] = BOTH,
    unset: bool = False,
) -> tuple[Mutant, ...]:
    """The same fault in each norm; properties by their names, with blanks between them."""

    def of(op: Op) -> Implementation:
        made = implementation(op, name, make(op))
        return replace(made, unset=other_default_eps(op)) if unset else made

    return tuple(
        Mutant(
            implementation=of(op),
            fails=None if fails is None else _named(fails),
            spares=_named(spares),
            maybe=_named(maybe),
        )
        for op in ops
    )


def _named(names: str) -> frozenset[Property]:
    return frozenset(map(Property, names.split()))


MUTANTS: tuple[Mutant, ...] = (
    *mutants("other-default-eps", exact, fails="default-eps", unset=True),
    *mutants(
        "unbiased",
        with_root(over_one_less),
        fails=(
            "normal-values large-values tiny-values outlier fp16-squares-overflow fp32-squares-overflow "
            "retained-mean shift-dependence equal-at-zero-mean population-variance nan-stays inf-stays "
            "finite-differences"
        ),
        maybe=(
            "large-offset constant-rows one-row scale-invariance eps-rules eps-inside-root strided transposed "
            "mixed-parameters autocast no-grad"
        ),
    ),
    *mutants(
        "eps-outside",
        with_root(eps_outside),
        fails="tiny-values zeros constant-rows subnormals eps-rules eps-inside-root",
        maybe=(
            "normal-values retained-mean shift-dependence scale-invariance equal-at-zero-mean population-variance "
            "nan-stays inf-stays finite-differences"
        ),
    ),
    *mutants(
        "eps-twice",
        with_eps(lambda eps: 2 * eps),
        fails="tiny-values zeros constant-rows subnormals eps-inside-root",
        maybe=(
            "normal-values retained-mean shift-dependence scale-invariance eps-rules equal-at-zero-mean "
            "population-variance nan-stays inf-stays transposed finite-differences"
        ),
    ),
    *mutants(
        "eps-own",
        with_eps(lambda _eps: 1e-5),
        fails="tiny-values zeros constant-rows subnormals eps-inside-root",
        maybe=(
            "normal-values one-row retained-mean shift-dependence scale-invariance eps-rules equal-at-zero-mean "
            "population-variance nan-stays inf-stays strided transposed no-grad finite-differences"
        ),
    ),
    *mutants(
        "eps-ignored",
        with_eps(lambda _eps: 0.0),
        fails=(
            "tiny-values zeros constant-rows subnormals zero-mean shift-invariance eps-rules equal-at-zero-mean "
            "eps-inside-root"
        ),
        maybe=(
            "normal-values large-values outlier large-offset fp16-squares-overflow fp32-squares-overflow "
            "retained-mean shift-dependence scale-invariance sign-flip population-variance requests-apart "
            "nan-stays inf-stays strided transposed finite-differences"
        ),
    ),
    *mutants(
        "eps-or-square",
        with_root(largest_of_both),
        fails="tiny-values",
        maybe=(
            "normal-values constant-rows subnormals retained-mean shift-dependence scale-invariance eps-rules "
            "equal-at-zero-mean population-variance eps-inside-root nan-stays inf-stays strided transposed "
            "finite-differences"
        ),
    ),
    *mutants(
        "mean-of-sizes",
        with_root(mean_of_sizes),
        spares=(
            "zeros no-rows zero-mean shift-invariance sign-flip rows-apart requests-apart inputs-intact determinism"
        ),
        maybe="large-offset constant-rows subnormals scale-invariance eps-rules",
    ),
    *mutants(
        "the-other",
        of_the_other,
        spares="no-rows sign-flip equal-at-zero-mean rows-apart requests-apart inputs-intact determinism",
        maybe="scale-invariance eps-rules",
    ),
    *mutants(
        "uncentred",
        uncentred,
        spares="no-rows equal-at-zero-mean rows-apart requests-apart inputs-intact determinism",
        maybe="zeros subnormals eps-rules sign-flip eps-inside-root",
    ),
    *mutants(
        "constant-root",
        with_root(with_a_constant_root),
        fails=(
            "normal-values large-values tiny-values outlier fp16-squares-overflow fp32-squares-overflow nan-stays "
            "inf-stays strided transposed mixed-parameters autocast finite-differences"
        ),
        maybe="large-offset constant-rows subnormals one-row scale-invariance eps-rules eps-inside-root",
    ),
    *mutants(
        "all-rows",
        with_root(over_all_rows),
        spares=(
            "zeros no-rows one-row zero-mean shift-invariance sign-flip requests-apart inputs-intact determinism"
        ),
        maybe="large-offset constant-rows subnormals scale-invariance eps-rules eps-inside-root",
    ),
    *mutants(
        "momentum",
        with_root(with_momentum),
        fails=(
            "normal-values large-values outlier fp16-squares-overflow fp32-squares-overflow retained-mean "
            "shift-dependence equal-at-zero-mean population-variance rows-apart requests-apart nan-stays "
            "inf-stays finite-differences"
        ),
        maybe=(
            "tiny-values large-offset constant-rows scale-invariance eps-rules eps-inside-root strided transposed "
            "mixed-parameters autocast no-grad"
        ),
    ),
    *mutants("another-dimension", of_another_dimension, fails="strided transposed"),
    *mutants("batch-bits", scaled_by_the_batch, fails="rows-apart"),
    *mutants(
        "position",
        on_y(by_position),
        spares="no-rows zero-mean shift-invariance scale-invariance rows-apart inputs-intact determinism",
        maybe="large-offset eps-rules sign-flip requests-apart",
    ),
    *mutants(
        "tail",
        on_y(tail_lost),
        spares="no-rows zero-mean shift-invariance rows-apart strided transposed inputs-intact determinism",
        maybe="scale-invariance eps-rules sign-flip",
    ),
    *mutants("nan-hidden", on_x(where_nan), fails="nan-stays"),
    *mutants("inf-swallowed", on_x(where_infinite), fails="inf-stays"),
    *mutants("spreading", on_x(spreading), fails="nan-stays inf-stays"),
    *mutants("packed-x", on_x(packed), fails="strided transposed"),
    *mutants("packed-rows", on_x(packed_rows), fails="strided"),
    *mutants("packed-dy", with_gradients(dx=of_packed_dy), fails="strided transposed"),
    *mutants("viewing-dy", with_gradients(dx=viewing_dy), fails="strided transposed"),
    *mutants("no-rows-raises", on_x(only_of(0, raising("there is nothing"))), fails="no-rows"),
    *mutants("no-rows-nan", with_gradients(dgain=without_rows(nan)), fails="no-rows"),
    *mutants("one-row-squeezed", on_y(lambda y: y.squeeze(0)), fails="one-row"),
    *mutants("one-row-wrong", on_y(only_of(1, lambda y: y * 2)), fails="one-row"),
    *mutants("nearly", on_y(nearly), fails="rows-apart determinism"),
    *mutants("third", every_third, fails="rows-apart determinism"),
    *mutants("writes-x", with_gradients(dx=writing_into(0)), fails="inputs-intact"),
    *mutants("writes-dy", with_gradients(dx=writing_into(1)), fails="inputs-intact"),
    *mutants("writes-gain", with_gradients(dx=writing_into(2)), fails="inputs-intact"),
    *mutants("into-dy", with_gradients(dx=into_dy), fails="inputs-intact"),
    *mutants("autocast-raises", on_y(only_in_autocast(raising("other dtypes"))), fails="autocast"),
    *mutants("autocast-float8", on_y(only_in_autocast(in_float8)), fails="autocast"),
    *mutants("no-grad", on_y(only_without_gradients(lambda y: y * 2)), fails="no-grad"),
    *mutants(
        "no-subnormals",
        on_x(without_subnormals),
        fails="subnormals",
        maybe=(  # in fp16 a normal value may be one by chance
            "tiny-values eps-rules normal-values outlier one-row retained-mean scale-invariance sign-flip "
            "equal-at-zero-mean population-variance nan-stays inf-stays strided transposed mixed-parameters "
            "autocast no-grad finite-differences"
        ),
    ),
    *mutants(
        "abs",
        on_y(torch.abs),
        spares="no-rows shift-invariance rows-apart requests-apart inputs-intact determinism",
        maybe="large-offset scale-invariance",
    ),
    *mutants(
        "abs-x",
        on_x(torch.abs),
        spares="large-offset no-rows zero-mean rows-apart requests-apart inputs-intact determinism",
        maybe="scale-invariance eps-rules",
    ),
    *mutants(
        "negated",
        on_y(torch.neg),
        spares="no-rows zero-mean shift-invariance rows-apart requests-apart inputs-intact determinism",
        maybe="scale-invariance sign-flip",
    ),
    *mutants(
        "clamped",
        on_x(lambda x: x.clamp(-1e4, 1e4)),
        fails="fp16-squares-overflow fp32-squares-overflow inf-stays",
        maybe="large-values",
    ),
    *mutants(
        "clamped-50",
        on_x(lambda x: x.clamp(-50, 50)),
        fails=(
            "large-values outlier large-offset constant-rows fp16-squares-overflow fp32-squares-overflow "
            "scale-invariance inf-stays"
        ),
    ),
    *mutants(
        "gain-float8",
        on_parameters(in_float8),
        spares=(
            "no-rows zero-mean retained-mean shift-invariance scale-invariance population-variance rows-apart "
            "requests-apart inputs-intact determinism"
        ),
        maybe=(
            "large-offset zeros constant-rows subnormals fp32-squares-overflow one-row eps-rules sign-flip "
            "finite-differences"
        ),
    ),
    *mutants("mixed-float8", only_mixed(in_float8), fails="mixed-parameters"),
    *mutants("mixed-raises", only_mixed(raising("other dtypes")), fails="mixed-parameters"),
    *mutants(
        "gain-ignored",
        on_parameters(lambda gain: torch.ones_like(gain) + 0 * gain),
        spares="no-rows retained-mean shift-invariance rows-apart requests-apart inputs-intact determinism",
        maybe="scale-invariance eps-rules sign-flip population-variance",
    ),
    *mutants(
        "gain-plus-one",
        scaled_parameters(gain_plus=1.0),
        spares="no-rows zero-mean shift-invariance sign-flip rows-apart requests-apart inputs-intact determinism",
        maybe="scale-invariance eps-rules",
    ),
    *mutants(
        "bias-ignored",
        scaled_parameters(bias_times=0.0),
        ops=(LN,),
        spares=(
            "no-rows zero-mean shift-invariance scale-invariance equal-at-zero-mean population-variance "
            "rows-apart requests-apart inputs-intact determinism"
        ),
    ),
    *mutants(
        "dx-without-along",
        with_gradients(dx=lambda k: k.r * (k.g - k.mean)),
        fails=(
            "normal-values large-values tiny-values outlier fp16-squares-overflow fp32-squares-overflow nan-stays "
            "inf-stays strided transposed mixed-parameters autocast finite-differences"
        ),
        maybe="large-offset constant-rows subnormals one-row scale-invariance eps-rules eps-inside-root",
    ),
    *mutants(
        "dx-without-mean",
        with_gradients(dx=lambda k: k.r * (k.g - k.along)),
        ops=(LN,),
        spares=(
            "no-rows zero-mean shift-invariance sign-flip equal-at-zero-mean population-variance rows-apart "
            "requests-apart no-grad inputs-intact determinism"
        ),
        maybe="scale-invariance eps-rules",
    ),
    *mutants(
        "dx-without-root",
        with_gradients(dx=lambda k: k.dx / k.r),
        spares=(
            "no-rows zero-mean retained-mean shift-invariance shift-dependence sign-flip equal-at-zero-mean "
            "population-variance rows-apart requests-apart no-grad inputs-intact determinism"
        ),
        maybe="large-offset one-row eps-rules",
    ),
    *mutants(
        "dx-without-gain",
        with_gradients(dx=lambda k: replace(k, gain=torch.ones_like(k.gain)).dx),
        spares=(
            "no-rows zero-mean retained-mean shift-invariance shift-dependence sign-flip equal-at-zero-mean "
            "population-variance rows-apart requests-apart no-grad inputs-intact determinism"
        ),
        maybe="large-offset scale-invariance eps-rules",
    ),
    *mutants(
        "dx-sum",
        with_gradients(dx=lambda k: k.r * (k.g - k.mean - k.along * k.h.shape[1])),
        spares=(
            "zeros no-rows zero-mean retained-mean shift-invariance shift-dependence sign-flip equal-at-zero-mean "
            "population-variance rows-apart requests-apart no-grad inputs-intact determinism"
        ),
        maybe="constant-rows subnormals scale-invariance eps-rules",
    ),
    *mutants(
        "dgain-without-h",
        with_gradients(dgain=lambda k: k.dy.sum(0)),
        spares=(
            "no-rows zero-mean retained-mean shift-invariance shift-dependence scale-invariance eps-rules "
            "sign-flip equal-at-zero-mean population-variance rows-apart requests-apart nan-stays inf-stays "
            "no-grad inputs-intact determinism"
        ),
        maybe="large-offset",
    ),
    *mutants(
        "dgain-mean",
        with_gradients(dgain=lambda k: k.dgain / max(k.h.shape[0], 1)),
        fails=(
            "normal-values large-values tiny-values outlier large-offset subnormals fp16-squares-overflow "
            "fp32-squares-overflow eps-inside-root strided transposed mixed-parameters autocast "
            "finite-differences"
        ),
        maybe="constant-rows",
    ),
    *mutants(
        "dgain-zero",
        with_gradients(dgain=lambda k: k.dgain * 0),
        spares=(
            "zeros no-rows zero-mean retained-mean shift-invariance shift-dependence scale-invariance eps-rules "
            "sign-flip equal-at-zero-mean population-variance rows-apart requests-apart nan-stays inf-stays "
            "no-grad inputs-intact determinism"
        ),
        maybe="constant-rows",
    ),
    *mutants(
        "dgain-of-x",
        with_gradients(dgain=lambda k: (k.dy * k.handed[0].double()).sum(0)),
        spares=(
            "zeros no-rows zero-mean retained-mean shift-invariance shift-dependence scale-invariance eps-rules "
            "sign-flip equal-at-zero-mean population-variance rows-apart requests-apart nan-stays inf-stays "
            "no-grad inputs-intact determinism"
        ),
        maybe="one-row",
    ),
    *mutants(
        "dgain-32-rows",
        with_gradients(dgain=summed_over(32, lambda k: k.dy * k.h)),
        fails=(
            "normal-values large-values tiny-values outlier subnormals fp16-squares-overflow "
            "fp32-squares-overflow eps-inside-root strided transposed mixed-parameters autocast "
            "finite-differences"
        ),
        maybe="large-offset constant-rows",
    ),
    *mutants(
        "dbias-zero",
        with_gradients(dbias=lambda k: k.dbias * 0),
        ops=(LN,),
        spares=(
            "no-rows zero-mean shift-invariance scale-invariance eps-rules sign-flip equal-at-zero-mean "
            "population-variance rows-apart requests-apart nan-stays inf-stays no-grad inputs-intact determinism"
        ),
    ),
    *mutants(
        "dbias-32",
        with_gradients(dbias=summed_over(32, lambda k: k.dy)),
        ops=(LN,),
        spares=(
            "no-rows one-row zero-mean shift-invariance scale-invariance eps-rules sign-flip equal-at-zero-mean "
            "population-variance rows-apart requests-apart nan-stays inf-stays no-grad inputs-intact determinism"
        ),
    ),
    *mutants(
        "dbias-with-gain",
        with_gradients(dbias=lambda k: k.g.sum(0)),
        ops=(LN,),
        spares=(
            "no-rows zero-mean shift-invariance scale-invariance eps-rules sign-flip equal-at-zero-mean "
            "population-variance rows-apart requests-apart nan-stays inf-stays no-grad inputs-intact determinism"
        ),
    ),
    *mutants("transposed-result", on_y(lambda y: y.t()), fails=EVERYTHING),
    *mutants("subclass", on_y(AsSubclass.apply), fails=EVERYTHING),
    *mutants("integer", on_y(lambda y: y.to(torch.int32)), fails=EVERYTHING),
    *mutants("raises", on_y(raising("not today")), fails=EVERYTHING),
)
