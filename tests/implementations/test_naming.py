from __future__ import annotations

import re

import pytest

from normbench.implementations.naming import PREFIX, called, op_of, provider_of, without_packages, words
from normbench.records import Op

NAMED = [op for op in Op if op is not Op.COPY]

RMS = """rms rms_norm RMSNorm RMSnorm RmsNorm rmsNorm rmsnorm RMS RMS_NORM FusedRMSNorm fused_rmsnorm LlamaRMSNorm
RMSNorm2d MyRMSNormV2 rms_v2 rms2 fast_rms rms_layer_norm fusedrmsnorm rmsnorm_fwd rms_normalize""".split()  # noqa: SIM905
LAYER = """ln ln_f LN ln1 FastLN pre_ln layer_norm LayerNorm layernorm LAYER_NORM layerNorm LayerNormalization
T5LayerNorm layernorm1d fused_layer_norm layer_normalization""".split()  # noqa: SIM905
NEITHER = """norm norms normalize Norm forms transforms_normalize transformer_layer layers LayerScale NormLayer kln
groupnorm batch_norm instance_norm kernel main layer alarms lnk x""".split()  # noqa: SIM905


@pytest.mark.parametrize("name", RMS)
def test_names_of_rmsnorm(name: str) -> None:
    assert op_of(name) is Op.RMSNORM


@pytest.mark.parametrize("name", LAYER)
def test_names_of_layernorm(name: str) -> None:
    assert op_of(name) is Op.LAYERNORM


@pytest.mark.parametrize("name", NEITHER)
def test_names_that_say_no_formula(name: str) -> None:
    assert op_of(name) is None


@pytest.mark.parametrize("name", ["add_rms_norm", "AddRMSNorm", "fused_add_rmsnorm", "RMSNormAdd"])
def test_a_norm_that_adds_is_of_another_formula_or_none(name: str) -> None:
    assert op_of(name) in {op for op in Op if op.startswith("add-")} | {None}
    assert op_of(name) is not Op.RMSNORM


def test_the_first_name_that_tells_decides_alone() -> None:
    assert op_of("mine", "rms_norm", "layernorms") is Op.RMSNORM
    assert op_of("mine-layernorm", "rms_norm") is Op.LAYERNORM
    assert op_of("mine-rmsnorm", "AddRMSNorm", "add") is Op.RMSNORM
    assert op_of("norm", "norms") is None
    assert op_of() is None


@pytest.mark.parametrize(
    ("where", "attribute", "op", "name"),
    [
        ("kernels", "FusedRMSNorm", Op.RMSNORM, "kernels-fused-rmsnorm"),
        ("kernels", "fused_rms_norm", Op.RMSNORM, "kernels-fused-rmsnorm"),
        ("rms", "fused", Op.RMSNORM, "fused-rmsnorm"),
        ("rms_norm", "RMSNorm", Op.RMSNORM, "own-rmsnorm"),
        ("norms", "RMSNorm", Op.RMSNORM, "norms-rmsnorm"),
        ("ln", "ln_f", Op.LAYERNORM, "f-layernorm"),
        ("kernels", "kernels_ln", Op.LAYERNORM, "kernels-layernorm"),
        ("my_file", "T5LayerNorm", Op.LAYERNORM, "my-file-t5-layernorm"),
        ("v2", "Outer.RMSNorm2d", Op.RMSNORM, "v2-outer-2d-rmsnorm"),
        ("größe", "rms", Op.RMSNORM, "gr-e-rmsnorm"),
    ],
)
def test_what_has_no_name_is_called_by_file_attribute_and_formula(
    where: str, attribute: str, op: Op, name: str
) -> None:
    assert called(where, attribute, op) == name


@pytest.mark.parametrize("attribute", ["rms", "a" * 200 + "_rms", "_".join("abcdefghij" * 9) + "_rms"])
def test_such_names_are_ones_that_a_user_could_have_given_and_say_their_formula(attribute: str) -> None:
    name = called("some_file", attribute, Op.RMSNORM)

    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", name)
    assert "--" not in name
    assert op_of(name) is Op.RMSNORM


@pytest.mark.parametrize("op", NAMED)
def test_the_provider_is_what_stands_before_the_formula(op: Op) -> None:
    assert provider_of(f"mine-{op}", op) == "mine"
    assert provider_of("mine", op) == "mine"
    assert provider_of(str(op), op) == str(op)
    assert provider_of(f"-{op}", op) == f"-{op}"


def test_words_of_several_spellings() -> None:
    assert list(words("FusedRMSNorm2d")) == ["fused", "rms", "norm", "2d"]
    assert list(words("h100_T5_layer.norm-v2")) == ["h100", "t5", "layer", "norm", "v2"]
    assert list(words("___")) == []


def test_texts_call_a_user_s_modules_as_users_do() -> None:
    said = f"No module named '{PREFIX}0.kernels.fast', and {PREFIX}12.util has no 'x' in '{PREFIX}0', x{PREFIX}0.y"

    assert (
        without_packages(said) == f"No module named 'kernels.fast', and util has no 'x' in 'its folder', x{PREFIX}0.y"
    )
