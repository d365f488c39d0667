"""The properties of a norm: for each one where it is asked, and what answers it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from math import inf, nan

from normbench.properties import agreement, definitions, differences, laws, separation, values
from normbench.properties.agreement import Contained, LaidOut, OnValues
from normbench.properties.judging import Found
from normbench.properties.laws import MeanOfRows
from normbench.properties.subject import Subject
from normbench.records import DType, Op, Property


class Where(Enum):
    """At which spots a property is asked, for each format of x."""

    WIDTHS = auto()
    """At every width, with the same few rows and parameters of x's format."""
    ONE_WIDTH = auto()
    """The same at one width: what does not depend on it, and where the pass is another."""
    SQUARE = auto()
    """With as many rows as columns, so that only their strides tell them apart."""
    NO_ROWS = auto()
    ONE_ROW = auto()
    MIXED = auto()
    """With parameters of another format."""
    AUTOCAST = auto()


Ask = Callable[[Subject], Iterable[Found]]


@dataclass(frozen=True, kw_only=True)
class Question:
    """How a property is asked.

    Args:
        where: At which spots.
        ask: What is found of each output there.
    """

    where: Where
    ask: Ask


def _everywhere(ask: Ask) -> Question:
    return Question(where=Where.WIDTHS, ask=ask)


def _once(ask: Ask) -> Question:
    return Question(where=Where.ONE_WIDTH, ask=ask)


QUESTIONS: Mapping[Property, Question] = {
    Property.NORMAL_VALUES: _everywhere(OnValues(values.normal)),
    Property.LARGE_VALUES: _everywhere(OnValues(values.large)),
    Property.TINY_VALUES: _everywhere(OnValues(values.tiny)),
    Property.OUTLIER: _everywhere(OnValues(values.outlier)),
    Property.LARGE_OFFSET: _everywhere(OnValues(values.offset)),
    Property.ZEROS: _everywhere(OnValues(values.zeros)),
    Property.CONSTANT_ROWS: _everywhere(OnValues(values.constants)),
    Property.SUBNORMALS: _everywhere(OnValues(values.subnormals)),
    Property.FP16_SQUARES_OVERFLOW: _everywhere(OnValues(values.beyond_fp16)),
    Property.FP32_SQUARES_OVERFLOW: _everywhere(OnValues(values.beyond_fp32, skipped=(DType.FP16,))),
    Property.NO_ROWS: Question(where=Where.NO_ROWS, ask=agreement.on_no_rows),
    Property.ONE_ROW: Question(where=Where.ONE_ROW, ask=OnValues(values.normal)),
    Property.ZERO_MEAN: _everywhere(MeanOfRows(only=Op.LAYERNORM)),
    Property.RETAINED_MEAN: _everywhere(MeanOfRows(only=Op.RMSNORM)),
    Property.SHIFT_INVARIANCE: _everywhere(laws.SHIFT_INVARIANCE),
    Property.SHIFT_DEPENDENCE: _everywhere(laws.SHIFT_DEPENDENCE),
    Property.SCALE_INVARIANCE: _everywhere(laws.SCALE_INVARIANCE),
    Property.EPS_RULES: _everywhere(laws.EPS_RULES),
    Property.SIGN_FLIP: _everywhere(laws.SIGN_FLIP),
    Property.EQUAL_AT_ZERO_MEAN: _everywhere(definitions.equal_at_zero_mean),
    Property.POPULATION_VARIANCE: _everywhere(definitions.population_variance),
    Property.EPS_INSIDE_ROOT: _everywhere(OnValues(values.below_eps)),
    Property.DEFAULT_EPS: _once(definitions.default_eps),
    Property.ROWS_APART: _everywhere(separation.rows_apart),
    Property.REQUESTS_APART: _everywhere(separation.requests_apart),
    Property.NAN_STAYS: _everywhere(Contained(nan)),
    Property.INF_STAYS: _everywhere(Contained(inf)),
    Property.STRIDED: Question(where=Where.SQUARE, ask=LaidOut("strided", agreement.left_half)),
    Property.TRANSPOSED: Question(where=Where.SQUARE, ask=LaidOut("transposed", agreement.by_columns)),
    Property.MIXED_PARAMETERS: Question(where=Where.MIXED, ask=OnValues(values.normal)),
    Property.AUTOCAST: Question(where=Where.AUTOCAST, ask=OnValues(values.normal)),
    Property.NO_GRAD: _once(agreement.under_no_grad),
    Property.INPUTS_INTACT: _once(separation.inputs_intact),
    Property.DETERMINISM: _everywhere(separation.deterministic),
    Property.FINITE_DIFFERENCES: _everywhere(differences.finite_differences),
}
"""Every property, in the order of reports."""

__all__ = ["QUESTIONS", "Ask", "Found", "Question", "Subject", "Where"]
