"""Calls a task on its inputs as they are, changed without a trace, and unchanged, and says what is wrong with it.

An implementation is no enemy, but it may be mistaken: it keeps a result that belongs to other values, hands out a
buffer that its next call overwrites, or leaves work to a thread or a stream that nobody waits for. All of those give
right values to whoever calls once, waits, and looks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil
from typing import Any

import torch

from normbench import correctness
from normbench.calls import Caller, Odd, Seen, Subject, all_finite, restore_inputs, same_bits, written_input
from normbench.correctness import Finding
from normbench.inputs import OF_ROWS, Operands

_CHOSEN_ROWS = 64
_FEW, _MANY = 1 / 16, 1 / 2
_ARRIVING = ("dy", "dh")
"""What flows back, which is nothing in the rows that are not looked at when all else is."""


class Inspection:
    """Several calls of one task, each judged by some rows of its results that can't be guessed.

    What it writes into the inputs is put back by ``close``.

    Args:
        subject: Whose task.
        seed: Chooses the rows.
    """

    def __init__(self, subject: Subject, seed: int) -> None:
        exact, count = subject.exact, subject.cell.rows
        self._subject = subject
        self._random = random.Random(seed)
        self._numbers = sorted(self._random.sample(range(count), min(count, _CHOSEN_ROWS)))
        self._rows = torch.tensor(self._numbers, device=exact.x.device)
        self._caller = Caller(subject, self._rows)
        self._chosen = exact.map_rows(lambda tensor: tensor.index_select(0, self._rows))
        self._only_chosen = len(self._numbers) == count
        self._before: Mapping[str, torch.Tensor] = {}
        self._last: Seen | None = None

    def first(self, *, whole: bool) -> Finding:
        """What there is to say about a call on the inputs as they are, by all of its results or by chosen rows."""
        try:
            seen = self._caller.call()
        except Odd as odd:
            return correctness.refusal(str(odd))
        finding = self._check_whole(seen) if whole else self._check(seen)
        problem = finding.problem and self._explained(seen, finding.problem)
        return replace(finding, problem=problem or self._keep(seen))

    def again(self, *, few: bool, unchanged: bool) -> str | None:
        """What is wrong with calls on other values in the same memory.

        Args:
            few: Whether to change only a few rows first.
            unchanged: Whether to call it once more on what it was called with before.
        """
        return (
            (self._judge(self._change_few) if few else None)
            or (self._judge(None) if unchanged else None)
            or self._judge(self._change_many)
            or self._infinite()
        )

    def close(self) -> str | None:
        """Put the inputs back; the name of one that held something else than what was written there."""
        written = written_input(self._subject.operands, self._expected())
        restore_inputs(self._subject)
        return written

    def _judge(self, change: Callable[[], torch.Tensor] | None) -> str | None:
        """What is wrong with a call after ``change``, which says in which of the chosen rows results change."""
        changed = None if change is None else change()
        try:
            seen = self._caller.call(self._write if change else lambda: None)
        except Odd as odd:
            return str(odd)
        problem = self._check(seen).problem
        return self._keep(seen) if problem is None else self._explained(seen, problem, changed)

    def _keep(self, seen: Seen) -> str | None:
        """Take a call's values for right; what is wrong with it all the same."""
        self._before, self._last = seen.part, seen
        return self._caller.overlap(seen)

    def _infinite(self) -> str | None:
        """In all rows: what a call leaves undone between the chosen ones is often no number."""
        assert self._last is not None
        tensors = self._last.tensors.items()
        return next((f"{name} is not finite everywhere" for name, tensor in tensors if not all_finite(tensor)), None)

    def _explained(self, seen: Seen, problem: str, changed: torch.Tensor | None = None) -> str:
        if not self._caller.was_done(seen):
            return f"returned before its work was done: {problem}"
        if not self._before:
            return problem
        if changed is None:
            return f"changed its result between calls on the same inputs: {problem}"
        stale = [name for name, part in seen.part.items() if self._is_stale(name, part, changed)]
        if stale:
            return f"computed nothing for repeated inputs: {stale[0]} is what it was before they held other values"
        return f"on other inputs in the same memory: {problem}"

    def _is_stale(self, name: str, part: torch.Tensor, changed: torch.Tensor) -> bool:
        """Whether an output that had to change is what it was, in one of the rows at least."""
        if name in correctness.OF_ROWS:
            return any(same_bits(part[row], self._before[name][row]) for row in changed)
        return self._only_chosen and same_bits(part, self._before[name])

    def _check_whole(self, seen: Seen) -> Finding:
        subject = self._subject
        return correctness.check(self._caller.whole(seen), subject.op, subject.cell, subject.exact, subject.eps)

    def _check(self, seen: Seen) -> Finding:
        """Compare the chosen rows; the parameters' gradients too where no other rows contribute to them."""
        subject = self._subject
        judged = seen.part if self._only_chosen else {n: t for n, t in seen.part.items() if n in correctness.OF_ROWS}
        return correctness.check(
            judged,
            subject.op,
            replace(subject.cell, rows=len(self._numbers)),
            self._chosen,
            subject.eps,
            probe=not self._only_chosen,
            numbers=self._numbers,
        )

    def _change_few(self) -> torch.Tensor:
        """Other values in a few rows: who knows inputs again by some of their values does not see that."""
        ends = (0, self._subject.cell.rows - 1)  # where most would look
        inner = [at for at, number in enumerate(self._numbers) if number not in ends]
        return self._change(inner or list(range(len(self._numbers))), _FEW)

    def _change_many(self) -> torch.Tensor:
        """Other values in many, for who computes some rows; nothing flows back from rows that are not looked at."""
        self._only_chosen = True
        return self._change(list(range(len(self._numbers))), _MANY)

    def _change(self, among: list[int], share: float) -> torch.Tensor:
        """Change every result; x and the residual not alike, which would keep what the norm divides by."""
        some = self._random.sample(among, ceil(share * len(among)))
        chosen = self._chosen
        rows = torch.tensor(some, device=chosen.x.device)
        for tensor, factor in ((chosen.x, -1), (chosen.residual, 2), (chosen.dy, 2), (chosen.dh, 2)):
            if tensor is not None:
                tensor[rows] = factor * tensor[rows]
        return rows

    def _write(self) -> None:
        """Through ``data``, so that no version counter tells."""
        for name in OF_ROWS:
            there, rows = getattr(self._subject.operands, name), getattr(self._chosen, name)
            if there is not None and rows is not None:
                if self._only_chosen and name in _ARRIVING:
                    there.data.zero_()
                there.data.index_copy_(0, self._rows, rows.to(there.dtype))

    def _expected(self) -> Operands:
        """What the inputs should hold."""

        def written(name: str, whole: torch.Tensor | None, rows: torch.Tensor | None) -> torch.Tensor | None:
            if whole is None or rows is None:
                return None
            around = torch.zeros_like(whole) if self._only_chosen and name in _ARRIVING else whole
            return around.index_copy(0, self._rows, rows)

        exact, chosen = self._subject.exact, self._chosen
        found: dict[str, Any] = {n: written(n, getattr(exact, n), getattr(chosen, n)) for n in OF_ROWS}
        return replace(exact, **found)
