"""The model: nine norms are really swapped and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

import pytest
import torch

from normbench.decoder import Decoder
from normbench.implementations import Bind, Forward, Implementation, by_name
from normbench.records import PRESETS, DType, ModelShape, Op, StepCell
from tests.helpers import EVERY
from tests.models import bound_by, make_model, make_shape, make_step_cell, make_variant

TINY = StepCell(shape=PRESETS["tiny"], dtype=DType.FP32)
SWAPPED = [one for one in EVERY if one.op is not Op.COPY and one.name != "nn-layernorm"]


def _unbound(_gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
    raise AssertionError("nothing is run")


UNBOUND: Bind = _unbound


def count(shape: ModelShape, op: Op) -> int:
    """Of a model that has no memory."""
    with torch.device("meta"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Decoder, "_initialise", lambda _self, _seed: None)
        model = Decoder(shape, op, UNBOUND, seed=0)
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("vocabulary", "op", "parameters"),
    [
        # (2048 + 256)·256 of the embeddings, 4 layers of 12·256², 9 norms of 256 gains, and as many biases
        (2048, Op.LAYERNORM, 589_824 + 3_145_728 + 4_608),
        (2048, Op.RMSNORM, 3_737_856),
        (256, Op.LAYERNORM, 3_281_408),
        (256, Op.RMSNORM, 3_279_104),
    ],
)
def test_the_tiny_model_has_as_many_parameters_as_it_is_said_to_have(
    vocabulary: int, op: Op, parameters: int
) -> None:
    shape = replace(PRESETS["tiny"], vocabulary=vocabulary)

    assert count(shape, op) == shape.parameters(op) == parameters


def test_rmsnorm_saves_2304_parameters_of_3740160() -> None:
    shape = PRESETS["tiny"]

    assert shape.parameters(Op.LAYERNORM) == 3_740_160
    assert count(shape, Op.LAYERNORM) - count(shape, Op.RMSNORM) == 2_304
    assert shape.norm_parameters(Op.LAYERNORM) - shape.norm_parameters(Op.RMSNORM) == 2_304


@pytest.mark.parametrize("op", list(Op))
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(
    "shape", [*PRESETS.values(), make_shape(), make_shape(widening=3)], ids=lambda s: str(s.width)
)
def test_the_parameters_of_a_shape_are_those_of_the_model(shape: ModelShape, tied: bool, op: Op) -> None:
    shape = replace(shape, tied=tied)

    assert count(shape, op) == shape.parameters(op)


def test_an_untied_head_has_its_own_weights_and_a_tied_one_the_embedding_s_memory() -> None:
    tied, untied = (
        make_model(by_name("nn-rmsnorm"), make_step_cell(shape=make_shape(tied=t))) for t in (True, False)
    )

    assert tied.head.weight is tied.tokens.weight
    assert untied.head.weight is not untied.tokens.weight
    assert untied.head.weight.data_ptr() != untied.tokens.weight.data_ptr()
    saved = {name for name, _ in untied.named_parameters()} - {name for name, _ in tied.named_parameters()}
    assert saved == {"head.weight"}


@pytest.mark.parametrize("tied", [True, False])
def test_a_tied_head_stays_tied_where_weights_are_laid_out_anew(tied: bool) -> None:
    variant = make_variant(by_name("nn-rmsnorm"), make_step_cell(shape=make_shape(tied=tied)))
    variant.place()
    shares = variant.model.head.weight.data_ptr() == variant.model.tokens.weight.data_ptr()

    assert shares is tied


def norm_names(model: Decoder) -> list[str]:
    return [name for name, _ in model.named_parameters() if "norm" in name]


@pytest.mark.parametrize("norm", SWAPPED, ids=lambda one: one.name)
def test_everything_but_the_norms_is_bit_for_bit_the_same_whatever_the_norm(norm: Implementation) -> None:
    cell = make_step_cell()
    first, other = make_model(by_name("nn-layernorm"), cell), make_model(norm, cell)
    apart = [
        {name: p for name, p in model.named_parameters() if name not in norm_names(model)} for model in (first, other)
    ]

    assert list(apart[0]) == list(apart[1])
    assert len(apart[0]) == 2 + 4 * cell.shape.layers
    for name, parameter in apart[0].items():
        assert torch.equal(parameter, apart[1][name]), name
        assert 0.005 < float(parameter.detach().std()) < 0.03


def test_rmsnorm_has_layernorm_s_parameters_but_for_the_biases() -> None:
    layernorm, rmsnorm = (
        norm_names(make_model(by_name(name), make_step_cell())) for name in ("nn-layernorm", "nn-rmsnorm")
    )
    weights = [f"blocks.{at}.{name}.weight" for at in range(2) for name in ("attention_norm", "mlp_norm")]

    assert rmsnorm == [*weights, "last_norm.weight"]
    assert [name for name in layernorm if not name.endswith("bias")] == rmsnorm
    assert len(layernorm) == 2 * len(rmsnorm)


def test_every_norm_begins_with_gain_1_and_bias_0() -> None:
    for norm in make_model(by_name("nn-layernorm"), make_step_cell()).norms():
        assert norm.weight is not None
        assert norm.bias is not None
        assert bool((norm.weight == 1).all())
        assert not bool(norm.bias.any())


def test_other_seeds_are_other_weights_and_the_same_seed_the_same() -> None:
    one, same, other = (make_model(by_name("nn-rmsnorm"), make_step_cell(), seed) for seed in (0, 0, 1))

    assert torch.equal(one.tokens.weight, same.tokens.weight)
    assert not torch.equal(one.tokens.weight, other.tokens.weight)
    ends = one.blocks[0].mlp_out.weight.detach().std() / one.blocks[0].mlp_in.weight.detach().std()
    assert float(ends) == pytest.approx(0.5, rel=0.1)  # over the root of four branches


def heard(model: Decoder, tokens: torch.Tensor) -> list[tuple[int, torch.Size]]:
    """Which norms a forward runs, and on what."""
    seen: list[tuple[int, torch.Size]] = []

    def wrap(at: int) -> Callable[[Forward], Forward]:
        def around(forward: Forward) -> Forward:
            def run(x: torch.Tensor) -> torch.Tensor:
                seen.append((at, x.shape))
                return forward(x)

            return run

        return around

    with ExitStack() as stack, torch.no_grad():
        for at, norm in enumerate(model.norms()):
            stack.enter_context(norm.through(wrap(at)))
        model(tokens)
    return seen


def test_a_forward_of_the_tiny_model_runs_nine_norms_each_over_2048_rows_of_256() -> None:
    model = make_model(by_name("nn-rmsnorm"), TINY)

    assert heard(model, torch.zeros(8, 256, dtype=torch.int64)) == [(at, torch.Size([2048, 256])) for at in range(9)]
    assert TINY.shape.norms == 9
    assert TINY.shape.rows == 2048
    assert (TINY.norm_cell.rows, TINY.norm_cell.width) == (2048, 256)


def test_nothing_in_the_model_computes_a_norm_but_the_implementation() -> None:
    shape = make_shape()
    calls = list[torch.Tensor]()

    def make(gain: torch.Tensor, _bias: torch.Tensor | None, _eps: float) -> Forward:
        return lambda x: (calls.append(gain), 0 * x * gain)[1]  # type: ignore[func-returns-value]

    model = make_model(bound_by(Op.RMSNORM, make), make_step_cell(shape=shape))
    logits = model(torch.zeros(2, 4, dtype=torch.int64))

    assert [id(gain) for gain in calls] == [id(norm.weight) for norm in model.norms()]
    assert not bool(logits.any())  # the last norm gives nothing but zeros


@pytest.mark.parametrize("name", ["nn-layernorm", "eager-rmsnorm"])
def test_a_later_token_changes_no_earlier_logit_and_its_own(name: str) -> None:
    model = make_model(by_name(name), make_step_cell())
    tokens = torch.randint(64, (2, 15), generator=torch.Generator().manual_seed(0))
    for at in (1, 7, 14):
        changed = tokens.clone()
        changed[:, at] = (changed[:, at] + 1) % 64
        with torch.no_grad():
            before, after = model(tokens), model(changed)
        torch.testing.assert_close(after[:, :at], before[:, :at], rtol=0, atol=1e-6)
        assert bool(((after - before)[:, at:].abs().amax(-1) > 1e-5).all())


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("norm", [one for one in EVERY if one.op is not Op.COPY], ids=lambda one: one.name)
def test_gradients_reach_every_parameter_and_every_norm(norm: Implementation, tied: bool) -> None:
    variant = make_variant(norm, make_step_cell(shape=make_shape(tied=tied)))
    variant.loss().backward()  # type: ignore[no-untyped-call]
    sizes = {
        name: 0.0 if p.grad is None else float(p.grad.abs().max()) for name, p in variant.model.named_parameters()
    }

    assert [name for name, size in sizes.items() if not size > 0] == []
    assert sum("norm.weight" in name for name in sizes) == 5


def test_the_first_loss_is_about_that_of_a_guess() -> None:
    loss = make_variant(by_name("nn-rmsnorm")).loss().detach()

    assert float(loss) == pytest.approx(torch.tensor(64.0).log().item(), abs=0.1)


def test_a_norm_that_was_not_bound_says_so() -> None:
    model = Decoder(make_shape(), Op.RMSNORM, UNBOUND, seed=0)
    with pytest.raises(AssertionError, match="bound first"):
        model(torch.zeros(1, 2, dtype=torch.int64))


def test_what_a_norm_goes_through_for_a_while_is_gone_after_it_even_where_it_raises() -> None:
    norm = make_model(by_name("nn-rmsnorm"), make_step_cell()).norms()[0]
    before = norm.implementation

    def raising(_x: torch.Tensor) -> torch.Tensor:
        raise ValueError("within")

    with norm.through(lambda _forward: lambda x: x + 1):
        assert torch.equal(norm(torch.ones(1, 2, 32)), torch.full((1, 2, 32), 2.0))
    with pytest.raises(ValueError, match="within"), norm.through(lambda _forward: raising):
        norm(torch.ones(1, 2, 32))

    assert norm.implementation is before
