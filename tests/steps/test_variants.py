from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
import torch._dynamo

from normbench import compilation
from normbench.decoder import Norm
from normbench.implementations import Implementation
from normbench.records import DType, Op, Optimizer, Part
from normbench.steps.variants import CLIP, Learner, StepPlaces, Variant
from tests.minute import CELL, EAGER, LAYERNORM, RMSNORM, SHAPE, compiled, make_entry

pytestmark = pytest.mark.usefixtures("one_thread")


def make_variant(implementation: Implementation = LAYERNORM, cell=CELL, name: str | None = None) -> Variant:  # type: ignore[no-untyped-def]
    entry = make_entry(cell)
    return Variant(name or implementation.name, cell, entry.model(implementation), entry.batch)


def values(variant: Variant) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in variant.model.parameters()]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("implementation", [LAYERNORM, RMSNORM, EAGER])
def test_a_step_gives_every_parameter_a_gradient_and_another_value(implementation: Implementation) -> None:
    variant = make_variant(implementation)
    before = values(variant)
    variant.step()

    assert all(parameter.grad is not None for parameter in variant.model.parameters())
    assert not any(torch.equal(old, new) for old, new in zip(before, values(variant), strict=True))


def test_gradients_are_of_one_step_and_together_no_larger_than_the_clip() -> None:
    variant = make_variant()
    variant.learner.clip = 1e-3
    for _step in range(2):
        variant.step()
    gradients = [parameter.grad for parameter in variant.model.parameters() if parameter.grad is not None]

    assert torch.nn.utils.get_total_norm(gradients).item() == pytest.approx(1e-3, rel=1e-3)
    assert CLIP == Learner.clip == 1.0


def test_a_step_is_what_a_training_loop_in_plain_torch_does() -> None:
    variant, entry = make_variant(), make_entry()
    model = entry.model(LAYERNORM)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4)
    for _step in range(3):
        optimizer.zero_grad()
        logits = model(entry.batch.tokens).reshape(-1, 256)
        torch.nn.functional.cross_entropy(logits, entry.batch.following.reshape(-1)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        variant.step()

    assert same(values(variant), [parameter.detach() for parameter in model.parameters()])


def test_a_learner_gives_the_loss_before_the_update() -> None:
    variant, batch = make_variant(), make_entry().batch
    before = variant.loss().item()
    loss = variant.learner.step(batch)

    assert loss.item() == before > variant.loss().item()
    assert not loss.requires_grad


def test_a_placement_has_the_initial_values_at_new_addresses_in_the_same_parameters() -> None:
    variant = make_variant()
    initial, parameters = values(variant), list(variant.model.parameters())
    variant.step()
    old = {parameter.data_ptr() for parameter in parameters}
    variant.place()

    assert same(values(variant), initial)
    assert not {p.data_ptr() for p in parameters} & old
    assert [id(p) for p in variant.model.parameters()] == [id(p) for p in parameters]
    assert all(parameter.grad is None for parameter in parameters)


def test_a_placement_begins_with_a_fresh_optimizer() -> None:
    variant = make_variant()
    variant.step()
    after_one = values(variant)
    variant.step()
    variant.place()
    variant.step()

    assert same(values(variant), after_one)


def test_placements_lie_at_new_addresses_each_time_and_hold_every_variant() -> None:
    variants = [make_variant(LAYERNORM), make_variant(RMSNORM)]
    places = StepPlaces(variants, Part.STEP, 0)
    addresses = []
    for _placement in range(4):
        tasks = places()
        assert {task.name for task in tasks} == {"nn-layernorm", "nn-rmsnorm"}
        addresses.append([{p.data_ptr() for p in variant.model.parameters()} for variant in variants])

    for one in range(2):
        assert all(not before[one] & after[one] for before, after in pairwise(addresses))


@pytest.mark.parametrize(("optimizer", "kind"), [("adamw", torch.optim.AdamW), ("sgd", torch.optim.SGD)])
def test_the_cell_says_which_optimizer_updates(optimizer: str, kind: type[torch.optim.Optimizer]) -> None:
    variant = make_variant(cell=replace(CELL, optimizer=Optimizer(optimizer)))
    before = values(variant)
    variant.step()

    assert type(variant.learner.optimizer) is kind
    assert not same(before, values(variant))


def test_sgd_keeps_a_momentum() -> None:
    variant = make_variant(cell=replace(CELL, optimizer=Optimizer.SGD))
    variant.step()

    assert {"momentum_buffer"} == {name for state in variant.learner.optimizer.state.values() for name in state}


@pytest.mark.parametrize("part", Part)
def test_every_part_of_a_step_can_be_called_and_only_what_updates_changes_weights(part: Part) -> None:
    variant = make_variant()
    before = values(variant)
    task = variant.task(part)
    call = task.prepare()
    assert same(values(variant), before)
    call()

    assert same(values(variant), before) is (part in (Part.FORWARD, Part.BACKWARD))
    has_gradients = all(parameter.grad is not None for parameter in variant.model.parameters())
    assert has_gradients is (part is not Part.FORWARD)


def test_the_parts_of_a_step_make_the_step() -> None:
    whole, parts = make_variant(), make_variant()
    whole.step()
    parts.task(Part.OPTIMIZER).prepare()()

    assert same(values(whole), values(parts))


def test_two_variants_of_a_seed_differ_in_nothing_but_their_norms() -> None:
    def others(implementation: Implementation, seed: int) -> dict[str, torch.Tensor]:
        model = make_entry(seed=seed).model(implementation)
        own = {id(p) for norm in model.modules() if isinstance(norm, Norm) for p in norm.parameters()}
        return {name: p.detach() for name, p in model.named_parameters() if id(p) not in own}

    base, other, reseeded = others(LAYERNORM, 3), others(RMSNORM, 3), others(RMSNORM, 4)

    assert base.keys() == other.keys()
    assert all(torch.equal(base[name], other[name]) for name in base)
    assert not any(torch.equal(base[name], reseeded[name]) for name in base)


@pytest.mark.parametrize("implementation", [LAYERNORM, RMSNORM])
def test_norms_begin_with_gain_1_and_bias_0(implementation: Implementation) -> None:
    norms = make_entry().model(implementation).norms()

    assert len(norms) == SHAPE.norms == 3
    assert all(norm.weight is not None and torch.equal(norm.weight, torch.ones(16)) for norm in norms)
    assert [norm.bias is not None for norm in norms] == [implementation.op is Op.LAYERNORM] * 3
    assert all(torch.equal(norm.bias, torch.zeros(16)) for norm in norms if norm.bias is not None)


def test_autocast_is_of_the_forward_alone_and_the_loss_is_float32() -> None:
    variant = make_variant(cell=replace(CELL, autocast=DType.BF16))
    seen: list[torch.dtype] = []
    variant.model.head.register_forward_hook(lambda _module, _given, out: seen.append(out.dtype))
    loss = variant.loss()

    assert (seen, loss.dtype) == ([torch.bfloat16], torch.float32)
    assert not torch.is_autocast_enabled("cpu")
    assert all(parameter.dtype == torch.float32 for parameter in variant.model.parameters())


def test_a_pure_bf16_model_has_an_optimizer_in_bf16() -> None:
    variant = make_variant(cell=replace(CELL, dtype=DType.BF16))
    variant.step()
    states = variant.learner.optimizer.state.values()

    assert {state["exp_avg"].dtype for state in states} == {torch.bfloat16}
    assert variant.loss().dtype == torch.float32


@pytest.mark.skipif(compilation.missing_compiler("cpu") is not None, reason="no compiler here")
def test_a_compiled_model_is_one_graph_that_no_placement_makes_anew() -> None:
    compilation.reset()
    variant, eager = make_variant(cell=compiled()), make_variant()
    before = compilation.graph_count()
    variant.step()
    assert compilation.graph_count() - before == 1
    for _placement in range(3):
        variant.place()
        with compilation.compiled_frames() as frames:
            variant.step()
        assert frames == [True]
    eager.step()

    assert compilation.graph_count() - before == 1
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(values(variant), values(eager), strict=True))


@pytest.mark.skipif(compilation.missing_compiler("cpu") is not None, reason="no compiler here")
def test_compiled_models_do_not_share_the_graphs_that_a_call_looks_through() -> None:
    compilation.reset()
    variants = [make_variant(implementation, compiled()) for implementation in (LAYERNORM, RMSNORM)]
    before = compilation.graph_count()
    with torch._dynamo.config.patch(
        recompile_limit=1
    ):  # what shares code has one graph, and whoever is next an error
        for variant in variants * 2:
            variant.step()

    assert compilation.graph_count() - before == 2
