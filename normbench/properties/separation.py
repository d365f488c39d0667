"""Rows have nothing to do with each other, and a call leaves nothing behind: what must be equal to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from normbench.calls import INPUTS, same_bits
from normbench.expected import Expected
from normbench.properties import values
from normbench.properties.judging import Found, broken, compared, held, not_applicable, same, truth
from normbench.properties.subject import Subject, as_leaves
from normbench.records import Mark, Mode, Output

_CALLS = 3


def rows_apart(subject: Subject) -> Iterator[Found]:
    """One row gets other values: no bit of the others changes."""
    before = values.operands(subject, "rows apart", values.normal)
    changed = subject.spot.rows // 2
    x = before.x.clone()
    x[changed] = x[changed] * -3 + 2
    others = torch.arange(subject.spot.rows, device=subject.device) != changed
    one, other = subject.call(before), subject.call(replace(before, x=x))
    for output in (Output.Y, Output.DX):
        yield same(output, one[output][others], other[output][others], "another row's values changed this one's")


def requests_apart(subject: Subject) -> Iterator[Found]:
    """The rows in another order."""
    before = values.operands(subject, "requests apart", values.normal).of(subject.op)
    order = values.Draw(subject, "order").order(subject.spot.rows).to(subject.device)
    right = truth(subject, before)
    one, other = subject.call(before), subject.call(values.rows_of(before, order))
    for output in (Output.Y, Output.DX):
        actual = other[output].double() - one[output][order].double()
        fine, coarse = (_nothing(part[output], order) for part in (right.fine, right.coarse))
        yield compared(output, actual, fine, coarse, one[output].dtype)


def _nothing(expected: Expected, order: torch.Tensor) -> Expected:
    """No difference, where each of two results may be off by its own."""
    return Expected(
        value=torch.zeros_like(expected.value), tolerance=2 * expected.tolerance[order], scale=expected.scale[order]
    )


def deterministic(subject: Subject) -> Iterator[Found]:
    """The same bits each time."""
    operands = values.operands(subject, "determinism", values.normal)
    first, *others = (subject.call(operands) for _ in range(_CALLS))
    for output, tensor in first.items():
        found = [same(output, tensor, other[output], "another call gave another result") for other in others]
        yield next((one for one in found if one.mark is Mark.FAIL), found[0])


def inputs_intact(subject: Subject) -> Iterator[Found]:
    """What a call was given holds what it held."""
    if subject.implementation.writes_in(Mode.FORWARD_BACKWARD):
        yield not_applicable("it says that it writes into its inputs, and gets copies")
        return
    given = as_leaves(values.operands(subject, "inputs intact", values.normal).of(subject.op))
    before = {name: t.detach().clone() for name in INPUTS if (t := getattr(given, name)) is not None}
    subject.run(given)
    written = [name for name, tensor in before.items() if not same_bits(tensor, getattr(given, name).detach())]
    yield broken(f"it has written into {written[0]}") if written else held()
