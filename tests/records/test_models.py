from __future__ import annotations

from typing import Any

import pytest

from normbench.records import PRESETS, ModelShape, Op

SIZES = ("width", "layers", "heads", "context", "batch", "vocabulary", "widening")


def make_shape(**changes: Any) -> ModelShape:
    return ModelShape(**{"width": 8, "layers": 2, "heads": 2, **changes})


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("value", [0, -1])
def test_a_model_of_nothing_is_refused(size: str, value: int) -> None:
    with pytest.raises(ValueError, match="1 or more"):
        make_shape(**{size: value})


@pytest.mark.parametrize("size", SIZES)
def test_1_is_enough_of_everything(size: str) -> None:
    assert getattr(make_shape(**{"heads": 1, size: 1}), size) == 1


@pytest.mark.parametrize(("width", "heads"), [(8, 3), (8, 16), (9, 2)])
def test_heads_share_the_width_without_a_rest(width: int, heads: int) -> None:
    with pytest.raises(ValueError, match=f"width: {width} can't be shared by {heads} heads"):
        make_shape(width=width, heads=heads)


def test_the_presets_are_those_that_are_documented() -> None:
    sizes = {name: (shape.width, shape.layers, shape.heads) for name, shape in PRESETS.items()}

    assert sizes == {"tiny": (256, 4, 8), "small": (512, 6, 8), "medium": (1024, 8, 16)}
    for shape in PRESETS.values():
        assert (shape.context, shape.batch, shape.vocabulary, shape.widening) == (256, 8, 2048, 4)
        assert shape.tied
        assert shape.rows == 2048


@pytest.mark.parametrize(("name", "norms"), [("tiny", 9), ("small", 13), ("medium", 17)])
def test_there_are_two_norms_a_layer_and_a_last_one(name: str, norms: int) -> None:
    shape = PRESETS[name]

    assert shape.norms == norms
    saved = shape.parameters(Op.LAYERNORM) - shape.parameters(Op.RMSNORM)
    assert saved == norms * shape.width == shape.norm_parameters(Op.RMSNORM)
    assert shape.norm_parameters(Op.LAYERNORM) == 2 * saved
    assert shape.norm_parameters(Op.COPY) == 0


def test_parameters_worked_out_by_hand() -> None:
    shape = make_shape(context=4, vocabulary=10)

    # (10 + 4)·8 of the embeddings, two layers of (4 + 2·4)·64, five norms of 8 gains and 8 biases
    assert shape.parameters(Op.LAYERNORM) == 112 + 1536 + 80
    assert make_shape(context=4, vocabulary=10, tied=False).parameters(Op.LAYERNORM) == 112 + 1536 + 80 + 80
    assert make_shape(context=4, vocabulary=10, widening=3).parameters(Op.RMSNORM) == 112 + 2 * 10 * 64 + 40
