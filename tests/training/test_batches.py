from __future__ import annotations

from collections import Counter
from dataclasses import replace

import torch

from normbench.steps.variants import Batch
from normbench.training.batches import Batches
from normbench.training.corpora import Text
from tests.minute import SHAPE


def text_of(first: int) -> Text:
    """A text whose bytes count up from ``first`` to 127 above it, again and again; what is held out too."""
    whole = bytes(first + number for number in range(128))
    return Text.of(f"from {first}", [whole] * 20)


def make(seed: int = 0, texts: tuple[int, ...] = (0, 128), batch: int = 4) -> Batches:
    shape = replace(SHAPE, batch=batch)
    found = [text_of(first) for first in texts]
    return Batches(texts=found, shape=shape, seed=seed, device=torch.device("cpu"))


def same(one: Batch, other: Batch) -> bool:
    return torch.equal(one.tokens, other.tokens) and torch.equal(one.following, other.following)


def sources(batch: Batch) -> Counter[bool]:
    """How many sequences come from the upper text."""
    return Counter(bool(sequence[0] >= 128) for sequence in batch.tokens)


def test_what_follows_is_the_next_byte() -> None:
    batch = make().drawn(1, 1)

    assert batch.tokens.shape == batch.following.shape == (4, 8)
    assert torch.equal(batch.tokens[:, 1:], batch.following[:, :-1])
    assert torch.equal((batch.following - batch.tokens) % 128, torch.ones(4, 8, dtype=torch.int64))


def test_the_same_seed_and_step_draw_the_same_batch_and_others_another() -> None:
    batches = make()

    assert same(batches.drawn(1, 5), make().drawn(1, 5))
    assert not same(batches.drawn(1, 5), batches.drawn(1, 6))
    assert not same(batches.drawn(1, 5), batches.drawn(2, 5))
    assert not same(batches.drawn(1, 5), make(seed=1).drawn(1, 5))


def test_half_of_a_batch_comes_from_each_of_two_texts() -> None:
    assert sources(make().drawn(1, 1)) == {False: 2, True: 2}


def test_shares_that_one_batch_can_not_have_equal_are_so_over_several() -> None:
    assert sum((sources(make(batch=3).drawn(1, step)) for step in (1, 2)), Counter()) == {False: 3, True: 3}


def test_windows_come_from_all_over_the_text() -> None:
    batches = make(texts=(0,), batch=64)
    seen = {int(token) for step in range(20) for token in batches.drawn(1, step).following[:, -1]}

    assert seen == set(range(128))


def test_an_evaluation_shares_its_batches_among_the_texts() -> None:
    assert [len(batches) for batches in make().held_out(6)] == [3, 3]
    assert [len(batches) for batches in make().held_out(5)] == [3, 2]
    assert [len(batches) for batches in make().held_out(1)] == [1, 1]


def test_an_evaluation_reads_what_is_held_out_from_the_first_byte_to_the_last() -> None:
    own = Text(corpus=text_of(0).corpus, train=b"\xff" * 100, held_out=bytes(range(200)))
    (batches,) = Batches(texts=[own], shape=SHAPE, seed=0, device=torch.device("cpu")).held_out(2)
    seen = torch.cat([torch.cat([batch.tokens, batch.following]).flatten() for batch in batches])

    assert (int(seen.min()), int(seen.max())) == (0, 199)
    assert len({int(batch.tokens[row, 0]) for batch in batches for row in range(4)}) == 8
