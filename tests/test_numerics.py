"""docs/numerics.md quotes real output, and what it says of a checkpoint is so."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch.nn import functional
from typer.testing import CliRunner

from normbench.cli import app

ROOT = Path(__file__).resolve().parent.parent
NUMERICS = (ROOT / "docs" / "numerics.md").read_text(encoding="utf-8")


def test_a_layernorm_behind_centred_weights_is_an_rmsnorm_and_its_bias() -> None:
    """What docs/numerics.md says of replacing one in a checkpoint, in float64."""
    torch.manual_seed(0)
    layer, gain, bias = torch.nn.Linear(32, 64).double(), torch.randn(64).double(), torch.randn(64).double()
    stream, given = torch.randn(8, 64).double(), torch.randn(8, 32).double()
    before = functional.layer_norm(stream + layer(given), (64,), gain, bias, 1e-6)

    with torch.no_grad():
        layer.weight -= layer.weight.mean(0, keepdim=True)
        layer.bias -= layer.bias.mean()
    centred = stream - stream.mean(-1, keepdim=True)
    after = functional.rms_norm(centred + layer(given), (64,), gain, 1e-6) + bias

    torch.testing.assert_close(after, before, rtol=1e-12, atol=1e-12)


def test_the_grades_that_numerics_quotes_are_those_of_the_check_it_links() -> None:
    (link,) = set(re.findall(r"\]\(\.\./(reports/[\w-]+/check\.md)\)", NUMERICS))
    rows = re.findall(r"^\| .* \|$", NUMERICS, re.MULTILINE)

    assert len(rows) > 3
    assert [row for row in rows if row not in (ROOT / link).read_text(encoding="utf-8")] == []


def test_numerics_shows_what_explain_prints() -> None:
    (shown,) = re.findall(r"^\$ normbench explain\n(.*?)^```$", NUMERICS, re.DOTALL | re.MULTILINE)
    printed = [line.rstrip() for line in CliRunner().invoke(app, ["explain"]).stdout.splitlines()]

    assert shown.splitlines() == printed[: len(shown.splitlines())]
    assert len(shown.splitlines()) > 10


def test_numerics_shows_what_the_naive_norm_fails_in_fp16(tmp_path: Path) -> None:
    ((words, shown),) = re.findall(
        r"^\$ normbench (check --impls naive-rmsnorm [^\n]*)\n(.*?)^```$", NUMERICS, re.DOTALL | re.MULTILINE
    )
    done = CliRunner().invoke(app, [*words.split(), "--device", "cpu", "--out", str(tmp_path / "check"), "--quiet"])
    fails = [line for line in done.stdout.splitlines() if line.startswith("naive-rmsnorm fails")]

    named = [line.split()[2] for line in shown.splitlines()]
    assert named == [line.split()[2] for line in fails]  # at which widths may hang on the processor
    wrong_in_y = [line for line in fails if not line.endswith(": dx:")]
    assert wrong_in_y == ["naive-rmsnorm fails fp16-squares-overflow, everywhere:"]
