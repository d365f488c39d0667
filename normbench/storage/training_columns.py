"""``training.csv``: a row per evaluation of each run, and one for a run that ended early."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter

from normbench.records import Status, TrainingCurve, TrainingPoint
from normbench.storage.columns import Row, as_row

TRAINING: dict[str, str] = {
    "seed": "of weights and batches",
    "implementation": "of the norms: `provider-op`",
    "status": "`ok` for an evaluation; what a run ended with that ended early",
    "reason": "why it ended early",
    "step": "training steps before the evaluation; empty where a run ended early",
    "train_bits_per_byte": "mean over the batches since the evaluation before; empty at step 0",
    "bits_per_byte": "of held-out text, the mean of the corpora's",
    "by_corpus": "of each corpus's held-out text, in the order of `step.json`, separated by `;`",
}

_POINT = TypeAdapter(TrainingPoint)


def point_row(curve: TrainingCurve, point: TrainingPoint) -> Row:
    """The row of an evaluation."""
    return as_row(
        {
            "seed": curve.seed,
            "implementation": curve.implementation,
            "status": Status.OK,
            "reason": None,
            "step": point.step,
            "train_bits_per_byte": point.train_bits_per_byte,
            "bits_per_byte": point.bits_per_byte,
            "by_corpus": ";".join(map(str, point.by_corpus)),
        }
    )


def end_row(curve: TrainingCurve) -> Row:
    """The row of a run that ended early."""
    absent = dict.fromkeys(("step", "train_bits_per_byte", "bits_per_byte", "by_corpus"), None)
    return as_row(
        {
            "seed": curve.seed,
            "implementation": curve.implementation,
            "status": curve.status,
            "reason": curve.reason,
            **absent,
        }
    )


@dataclass(frozen=True, kw_only=True)
class TrainingRow:
    """What a row says: of which run, and a point or how the run ended."""

    seed: int
    implementation: str
    status: Status
    reason: str | None
    point: TrainingPoint | None

    def __post_init__(self) -> None:
        if (self.status is Status.OK) != (self.point is not None):
            raise ValueError("an evaluation has status ok, and nothing else has one")
        if (self.status is Status.OK) != (self.reason is None):
            raise ValueError("whatever did not end well has a reason, and nothing else has one")


_ROW = TypeAdapter(TrainingRow)


def row(fields: Mapping[str, str]) -> TrainingRow:
    """A row; pydantic's ValidationError where a field is not what it should be."""
    names = ("step", "train_bits_per_byte", "bits_per_byte")
    point = {name: fields[name] or None for name in names}
    by_corpus = fields["by_corpus"].split(";") if fields["by_corpus"] else []
    return _ROW.validate_python(
        {
            "seed": fields["seed"],
            "implementation": fields["implementation"],
            "status": fields["status"],
            "reason": fields["reason"] or None,
            "point": {**point, "by_corpus": by_corpus} if fields["step"] else None,
        }
    )


def curves(rows: Iterable[TrainingRow]) -> Iterator[TrainingCurve]:
    """The curves that rows make, which are in order and end once; in the order of their first rows."""
    by_run: dict[tuple[int, str], list[TrainingRow]] = {}
    for found in rows:
        by_run.setdefault((found.seed, found.implementation), []).append(found)
    for (seed, implementation), own in by_run.items():
        yield TrainingCurve(
            implementation=implementation,
            seed=seed,
            points=tuple(found.point for found in own if found.point is not None),
            status=own[-1].status,
            reason=own[-1].reason,
        )
