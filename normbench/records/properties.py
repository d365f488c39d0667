"""The properties that ``check`` asks of an implementation: what each one means, and what it allows and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """What a property is.

    Args:
        asks: What must hold.
        allows: How far off a correct implementation may be, and why.
    """

    asks: str
    allows: str


class Property(StrEnum):
    """One thing that a norm does whatever it is computed by."""

    NORMAL_VALUES = "normal-values"
    LARGE_VALUES = "large-values"
    TINY_VALUES = "tiny-values"
    OUTLIER = "outlier"
    LARGE_OFFSET = "large-offset"
    ZEROS = "zeros"
    CONSTANT_ROWS = "constant-rows"
    SUBNORMALS = "subnormals"
    FP16_SQUARES_OVERFLOW = "fp16-squares-overflow"
    FP32_SQUARES_OVERFLOW = "fp32-squares-overflow"
    NO_ROWS = "no-rows"
    ONE_ROW = "one-row"
    ZERO_MEAN = "zero-mean"
    RETAINED_MEAN = "retained-mean"
    SHIFT_INVARIANCE = "shift-invariance"
    SHIFT_DEPENDENCE = "shift-dependence"
    SCALE_INVARIANCE = "scale-invariance"
    EPS_RULES = "eps-rules"
    SIGN_FLIP = "sign-flip"
    EQUAL_AT_ZERO_MEAN = "equal-at-zero-mean"
    POPULATION_VARIANCE = "population-variance"
    EPS_INSIDE_ROOT = "eps-inside-root"
    DEFAULT_EPS = "default-eps"
    ROWS_APART = "rows-apart"
    REQUESTS_APART = "requests-apart"
    NAN_STAYS = "nan-stays"
    INF_STAYS = "inf-stays"
    STRIDED = "strided"
    TRANSPOSED = "transposed"
    MIXED_PARAMETERS = "mixed-parameters"
    AUTOCAST = "autocast"
    NO_GRAD = "no-grad"
    INPUTS_INTACT = "inputs-intact"
    DETERMINISM = "determinism"
    FINITE_DIFFERENCES = "finite-differences"

    @property
    def asks(self) -> str:
        """What must hold, in a sentence."""
        return _MEANINGS[self].asks

    @property
    def allows(self) -> str:
        """How far off a correct implementation may be, and why, in a sentence."""
        return _MEANINGS[self].allows


ROUNDING = (
    "the rounding that a correct implementation commits: 4 roundings of x's format in y and 6 in a gradient, each of "
    "the size of the terms that the element is summed up from, and the statistic's in float32, 8·(1 + √(N/64))·2⁻²⁴"
)
"""What "rounding" means where ``Meaning.allows`` says it; :mod:`normbench.reference` has it in full."""

_ROUNDING = "rounding"
_BOTH = "both results' own rounding; powers of two add none"
_BITS = "nothing: the same arithmetic on the same numbers gives the same bits"

_MEANINGS = {
    Property.NORMAL_VALUES: Meaning(
        asks="y and every gradient agree with float64 for normal values of mean 0.5", allows=_ROUNDING
    ),
    Property.LARGE_VALUES: Meaning(
        asks="they agree for values so large that their squares just fit into x's format", allows=_ROUNDING
    ),
    Property.TINY_VALUES: Meaning(
        asks="they agree for values whose squares are about as large as eps",
        allows="rounding; and what underflows in x's format, times the root's reciprocal in a gradient",
    ),
    Property.OUTLIER: Meaning(
        asks="they agree where one value in each row is a hundred times the others and more", allows=_ROUNDING
    ),
    Property.LARGE_OFFSET: Meaning(
        asks="they agree where all of a row is a large number and a tiny spread, so that E[x²] - E[x]² cancels",
        allows="rounding; in LayerNorm times 1 + the mean of abs(x) ÷ σ: the mean's own error stays",
    ),
    Property.ZEROS: Meaning(
        asks="rows of zeros give the bias or 0, and finite gradients",
        allows="rounding of the bias and of dy ÷ √eps",
    ),
    Property.CONSTANT_ROWS: Meaning(
        asks="constant rows give LayerNorm's bias, and RMSNorm's gain with the sign of the constant",
        allows="rounding; in LayerNorm that of the mean ÷ √eps, since there is no other spread",
    ),
    Property.SUBNORMALS: Meaning(
        asks="they agree for subnormal numbers of x's format, which are values and no zeros", allows=_ROUNDING
    ),
    Property.FP16_SQUARES_OVERFLOW: Meaning(
        asks="they agree for values from 256 on, whose squares fp16 can't hold and float32 can", allows=_ROUNDING
    ),
    Property.FP32_SQUARES_OVERFLOW: Meaning(
        asks="they agree for values near 1e25, whose squares float32 can't hold", allows=_ROUNDING
    ),
    Property.NO_ROWS: Meaning(
        asks="an x without rows gives a y and a dx without rows, and gradients of the parameters that are 0",
        allows="nothing: a sum of nothing is 0",
    ),
    Property.ONE_ROW: Meaning(asks="y and every gradient agree with float64 for a single row", allows=_ROUNDING),
    Property.ZERO_MEAN: Meaning(
        asks="with gain 1 and bias 0 the mean of each row of LayerNorm's y is 0",
        allows="the mean of the elements' tolerances: what each may be off by, nothing cancelling",
    ),
    Property.RETAINED_MEAN: Meaning(
        asks="with gain 1 the mean of each row of RMSNorm's y is that of x ÷ root, and not 0",
        allows="the mean of the elements' tolerances",
    ),
    Property.SHIFT_INVARIANCE: Meaning(
        asks="a number added to all of a row, exactly, does not change LayerNorm's y", allows=_BOTH
    ),
    Property.SHIFT_DEPENDENCE: Meaning(
        asks="a number added to all of a row changes RMSNorm's y, by as much as in float64", allows=_BOTH
    ),
    Property.SCALE_INVARIANCE: Meaning(
        asks="x times 16 gives the same y, but for what eps is against the mean square", allows=_BOTH
    ),
    Property.EPS_RULES: Meaning(
        asks="where eps is large against the mean square, twice the x gives twice the y", allows=_BOTH
    ),
    Property.SIGN_FLIP: Meaning(asks="-x gives -y, the bias apart", allows=_BOTH),
    Property.EQUAL_AT_ZERO_MEAN: Meaning(
        asks="for rows of mean 0, without a bias, LayerNorm and RMSNorm are the same function",
        allows="rounding of its own formula, whose value is the other's",
    ),
    Property.POPULATION_VARIANCE: Meaning(
        asks="the mean of squares is over N and not N - 1, asked where the two can be told apart",
        allows="rounding; and as far as half precision's goes, what is nearer to N",
    ),
    Property.EPS_INSIDE_ROOT: Meaning(
        asks="for x = ±0.1·√eps, y is 0.0995, as x ÷ √(x² + eps) is, and not x ÷ (abs(x) + eps)", allows=_ROUNDING
    ),
    Property.DEFAULT_EPS: Meaning(
        asks="a module that is given no eps adds its own: nn.LayerNorm 1e-5, nn.RMSNorm 2⁻²³ whatever x's format is",
        allows=_ROUNDING,
    ),
    Property.ROWS_APART: Meaning(asks="another row's values change no bit of a row's y and dx", allows=_BITS),
    Property.REQUESTS_APART: Meaning(
        asks="rows in another order, next to other neighbours, have the same y and dx",
        allows="both results' own rounding: at another place a row may be summed up in another order",
    ),
    Property.NAN_STAYS: Meaning(
        asks="a NaN makes y NaN at its place, and no other row's y or dx is touched", allows=_ROUNDING
    ),
    Property.INF_STAYS: Meaning(
        asks="an infinity makes y no finite number at its place, and no other row's y or dx is touched",
        allows=_ROUNDING,
    ),
    Property.STRIDED: Meaning(
        asks="y and every gradient agree with float64 for an x and a dy that are the left half of wider tensors",
        allows=_ROUNDING,
    ),
    Property.TRANSPOSED: Meaning(
        asks="they agree for an x and a dy that lie column by column in memory", allows=_ROUNDING
    ),
    Property.MIXED_PARAMETERS: Meaning(
        asks="they agree for gain and bias of another dtype: float32 with half precision, bf16 with float32",
        allows="rounding, of the coarser of the two formats",
    ),
    Property.AUTOCAST: Meaning(
        asks="they agree under autocast to half precision",
        allows="rounding, of the coarser of the formats in play",
    ),
    Property.NO_GRAD: Meaning(asks="y agrees with float64 where no gradient is asked for", allows=_ROUNDING),
    Property.INPUTS_INTACT: Meaning(asks="x, dy, gain and bias hold the same bits after a call", allows="nothing"),
    Property.DETERMINISM: Meaning(asks="three calls give the same bits in y and in every gradient", allows=_BITS),
    Property.FINITE_DIFFERENCES: Meaning(
        asks="the gradients are those that differences of the float64 formula's y show",
        allows="rounding, and 1e-7 of the same terms for the differences, whose step is 1e-5 of the spread",
    ),
}
