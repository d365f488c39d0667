"""Asks every property of every implementation; never prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from normbench import compilation
from normbench.device import Device
from normbench.failures import describe
from normbench.implementations import Bind, Implementation, Setting
from normbench.properties import QUESTIONS, Found, Subject
from normbench.properties.judging import broken, not_applicable
from normbench.properties.spots import spots
from normbench.properties.subject import NoResult, cell_of
from normbench.records import Check, CheckPlan, Mode, Property, Spot


def examine(
    device: Device,
    plan: CheckPlan,
    implementations: Sequence[Implementation],
    told: Callable[[int, int, str], None] = lambda _done, _count, _what: None,
) -> Iterator[Check]:
    """What there is to say of each implementation, one after the other.

    Args:
        device: Where.
        plan: Which properties, formats and widths.
        implementations: Whose.
        told: How many of how many pieces of work are done, and what comes next; the pieces take about equally long.
    """
    work = [
        (implementation, spot, properties)
        for implementation in implementations
        for dtype in plan.dtypes
        for spot, properties in spots(plan, dtype).items()
    ]
    for done, (implementation, spot, properties) in enumerate(work):
        told(done, len(work), f"{implementation.name} {spot}")
        yield from _at(device, plan, implementation, spot, properties)


def _at(
    device: Device, plan: CheckPlan, implementation: Implementation, spot: Spot, properties: Sequence[Property]
) -> Iterator[Check]:
    """Everything that is asked of one implementation at one spot."""
    setting = Setting(cell=cell_of(spot, Mode.FORWARD_BACKWARD), eps=plan.eps, device=str(device.torch_device))
    why_not = implementation.unsupported(setting, device.info)
    bind = why_not or _built(implementation, setting)
    for asked in properties:
        if isinstance(bind, str):
            found = [not_applicable(bind) if why_not else broken(bind)]
        else:
            subject = Subject(
                implementation=implementation,
                bind=bind,
                spot=spot,
                eps=plan.eps,
                seed=plan.seed,
                device=device.torch_device,
            )
            found = _asked(asked, subject)
        yield from (one.of(implementation.name, asked, spot) for one in found)


def _built(implementation: Implementation, setting: Setting) -> Bind | str:
    """What calls are made on, or why there is nothing."""
    if implementation.compiled:
        compilation.reset()  # else the eighth spot would reach the limit of recompilations
    try:
        return implementation.build(setting)
    except Exception as error:  # whatever user code raises is what is found
        return describe(error)


def _asked(asked: Property, subject: Subject) -> list[Found]:
    try:
        return list(QUESTIONS[asked].ask(subject))
    except NoResult as nothing:
        return [broken(str(nothing))]
    except Exception as error:  # whatever user code raises is what is found
        return [broken(describe(error))]
