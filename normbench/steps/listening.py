"""What passes through the norms of a model in one forward and backward: each as it was, and as it is afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import torch

from normbench import correctness
from normbench.calls import Odd, all_finite, same_bits
from normbench.decoder import Norm
from normbench.implementations import Forward
from normbench.inputs import Operands


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A tensor as it was when it passed by, and the memory in which it did."""

    value: torch.Tensor
    memory: torch.Tensor

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Moment:
        """This moment; the memory is not handed out again as long as it is kept."""
        memory = tensor.detach()
        return cls(value=memory.clone(), memory=memory)

    @property
    def is_past(self) -> bool:
        """Whether the memory holds something else now."""
        return not same_bits(self.value, self.memory)


class Ear:
    """Hears what one norm is given and gives, at the very border between the model and the implementation.

    The copies are made before the implementation runs: one that writes into x or dy is compared with what it was
    given. Nothing is put between the two, and no memory is freed, so that whoever hands out a buffer twice is seen.

    Args:
        norm: The one.
        autocast: Whether autocast is on, so that y may have another format than x.
    """

    def __init__(self, norm: Norm, *, autocast: bool) -> None:
        self.norm = norm
        self.x: Moment | None = None
        self.y: Moment | None = None
        self.dx: Moment | None = None
        self.dy: Moment | None = None
        self.odd: str | None = None
        self.spoilt_x = False
        self._autocast = autocast
        self._parameters = {
            name: Moment.of(parameter)
            for name, parameter in (("gain", norm.weight), ("bias", norm.bias))
            if parameter is not None
        }

    def listening(self, forward: Forward) -> Forward:
        """The forward, listened to.

        Raises:
            Odd: What it returns can't be compared, or the model can't go on with it.
        """

        def listened(x: torch.Tensor) -> torch.Tensor:
            self.x = Moment.of(x)
            x.register_hook(self._hear_dx)  # type: ignore[no-untyped-call]
            y: torch.Tensor = forward(x)
            self.odd = self._oddity(x, y)
            if self.odd is not None:
                raise Odd(self.odd)
            self.y = Moment.of(y)
            self.spoilt_x = self.x.is_past
            y.register_hook(self._hear_dy)  # type: ignore[no-untyped-call]
            return y

        return listened

    @property
    def was_given_numbers(self) -> bool:
        """Whether x and dy, as far as they came, are finite: what is wrong may be its own fault."""
        return all(all_finite(moment.value) for moment in (self.x, self.dy) if moment is not None)

    def overwritten(self) -> str | None:
        """What is not what it was, though the model still needs it; None where all of that is."""
        if self.spoilt_x:
            return "wrote into x, which the model adds to what comes of y"
        if self.y is not None and self.y.is_past:
            return "y was overwritten after it was returned, and before the model had read it for the last time"
        return next((f"wrote into {name}" for name, moment in self._parameters.items() if moment.is_past), None)

    def undeclared(self, *, mutates: bool, reuses_output: bool) -> str | None:
        """What was written into besides, which harms no model; None where it was declared, or nothing was."""
        watched = {} if mutates else {"x": self.x, "dy": self.dy}
        for name, moment in watched.items():
            if moment is not None and moment.is_past:
                return f"wrote into {name} without declaring it"
        if self.dx is not None and self.dx.is_past and not reuses_output:
            return "dx was overwritten after it was returned: whoever keeps it has another's"
        return None

    def _oddity(self, x: torch.Tensor, y: torch.Tensor) -> str | None:
        odd = correctness.wrong_shape({"y": y}, Operands(x=x, dy=None, gain=None, bias=None))
        if odd is not None:
            return odd
        if y.dtype is not x.dtype and not self._autocast:
            return f"y is {y.dtype}, not {x.dtype} as x is: without autocast the next layer can't multiply that"
        return None if y.requires_grad else "y does not require grad: no gradient flows back, as it must in training"

    def _hear_dx(self, dx: torch.Tensor) -> None:
        self.dx = Moment.of(dx)

    def _hear_dy(self, dy: torch.Tensor) -> None:
        self.dy = Moment.of(dy)


def listen(norms: Sequence[Norm], backward: Callable[[], None], *, autocast: bool) -> list[Ear]:
    """What each norm hears in one forward and backward, in the order of ``norms``.

    Raises:
        Odd: What is odd about the first that is so, with its number.
        Exception: Whatever else the pass raises, where nothing was overwritten that would explain it.
    """
    ears = [Ear(norm, autocast=autocast) for norm in norms]
    with ExitStack() as stack:
        for ear in ears:
            stack.enter_context(ear.norm.through(ear.listening))
        try:
            backward()
        except Exception as error:
            for number, ear in enumerate(ears, start=1):
                problem = ear.odd or ear.overwritten()  # torch itself finds some of that, and can't say whose it is
                if problem is not None:
                    raise Odd(numbered(number, len(ears), problem)) from error
            raise
    return ears


def numbered(number: int, count: int, problem: str) -> str:
    """A problem of one norm of several: ``norm 2 of 9: …``."""
    return f"norm {number} of {count}: {problem}"
