"""Asks every property of every implementation; never prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TypeVar

from normbench import compilation
from normbench.device import Device
from normbench.failures import RAISED, describe
from normbench.implementations import Bind, Implementation, Setting
from normbench.properties import QUESTIONS, Found, Subject
from normbench.properties.judging import broken, not_applicable
from normbench.properties.spots import spots
from normbench.properties.subject import NoResult, cell_of
from normbench.records import Check, CheckPlan, Mode, Property, Spot
from normbench.torch_state import TorchState
from normbench.watch import changed_settings

T = TypeVar("T")

_COMPILING = 16
"""What a piece of work takes whose calls are compiled, where the others take 1."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A piece of work that begins: one implementation at one spot.

    Args:
        number: How many were before it.
        count: How many there are.
        share: How much of the work those before it were, from 0 to below 1, by how long they should take.
        what: What it is.
    """

    number: int
    count: int
    share: float
    what: str


def examine(
    device: Device,
    plan: CheckPlan,
    implementations: Sequence[Implementation],
    told: Callable[[Piece], None] = lambda _piece: None,
) -> Iterator[Check]:
    """What there is to say of each implementation, one after the other.

    Args:
        device: Where.
        plan: Which properties, formats and widths.
        implementations: Whose.
        told: Told of each piece of work when it begins.
    """
    work = [
        (implementation, spot, properties)
        for implementation in implementations
        for dtype in plan.dtypes
        for spot, properties in spots(plan, dtype).items()
    ]
    efforts = [_COMPILING if implementation.compiled else 1 for implementation, _spot, _properties in work]
    *before, whole = accumulate(efforts, initial=0)
    for number, ((implementation, spot, properties), done) in enumerate(zip(work, before, strict=True)):
        told(Piece(number=number, count=len(work), share=done / whole, what=f"{implementation.name} {spot}"))
        yield from _at(device, plan, implementation, spot, properties)


def _at(
    device: Device, plan: CheckPlan, implementation: Implementation, spot: Spot, properties: Sequence[Property]
) -> Iterator[Check]:
    """Everything that is asked of one implementation at one spot."""
    setting = Setting(cell=cell_of(spot, Mode.FORWARD_BACKWARD), eps=plan.eps, device=str(device.torch_device))
    why_not = implementation.unsupported(setting, device.info)
    bind = [not_applicable(why_not)] if why_not else _contained(partial(_built, implementation, setting))
    for asked in properties:
        if isinstance(bind, list):
            found = bind
        else:
            subject = Subject(
                implementation=implementation,
                bind=bind,
                spot=spot,
                eps=plan.eps,
                seed=plan.seed,
                device=device.torch_device,
            )
            found = _contained(partial(_answers, asked, subject))
        yield from (one.of(implementation.name, asked, spot) for one in found)


def _built(implementation: Implementation, setting: Setting) -> Bind:
    """What calls are made on."""
    if implementation.compiled:
        compilation.reset()  # else the eighth spot would reach the limit of recompilations
    return implementation.build(setting)


def _answers(asked: Property, subject: Subject) -> list[Found]:
    return list(QUESTIONS[asked].ask(subject))


def _contained(work: Callable[[], T]) -> T | list[Found]:
    """What ``work`` gives; where user code raises, or leaves torch otherwise than it was, what is found of that."""
    state = TorchState.now()
    result: T | list[Found]
    try:
        result = work()
    except NoResult as nothing:
        result = [broken(str(nothing))]
    except RAISED as error:
        result = [broken(describe(error))]
    changes = state.restore()
    return result if changes is None else [broken(changed_settings(changes).reason)]
