"""docs/implementations.md: its example is the file that it names, and its commands do what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from normbench.cli import sweep as sweeping
from normbench.implementations import signatures
from normbench.storage import load
from tests.cli.command import normbench

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "implementations.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "docs" / "examples" / "my_norms.py"
COMMANDS = re.findall(r"<!-- example-command -->\n```bash\nnormbench (.*?)\n```", PAGE, re.DOTALL)
TINY = ("--rows", "4", "--dtype", "fp32", "--placements", "5", "--processes", "1", "--max-seconds", "0.3")


def impls(command: str) -> list[str]:
    words = shlex.split(command)
    after = words[words.index("--impls") + 1 :]
    return after[: next((n for n, word in enumerate(after) if word.startswith("--")), len(after))]


@pytest.fixture(autouse=True)
def _in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_the_example_is_the_file_that_it_is_of() -> None:
    (shown,) = re.findall(r"<!-- example: my_norms.py -->\n```python\n(.*?)```", PAGE, re.DOTALL)

    assert shown == EXAMPLE.read_text(encoding="utf-8")


def test_the_example_passes_a_check_as_its_command_asks_for_it(tmp_path: Path) -> None:
    (check,) = [command for command in COMMANDS if command.startswith("check")]
    few = ("--widths", "64", "--properties", "normal-values", "large-offset", "finite-differences")
    done = normbench(*shlex.split(check), *few, "--out", str(tmp_path / "check"), "--quiet")

    assert done.code == 0, done.err
    assert "my-norms-model-layernorm" in done.out


def test_the_example_is_measured_as_its_command_asks_for_it(tmp_path: Path) -> None:
    (sweep,) = [command for command in COMMANDS if command.startswith("sweep")]
    words = ("sweep", "--impls", *impls(sweep), "--widths", "32", *TINY, "--out", str(tmp_path / "run"), "--quiet")
    done = normbench(*words)
    rows = pd.read_csv(tmp_path / "run" / "results.csv")

    assert done.code == 0, done.err
    assert set(rows.implementation) == {"copy", "nn-layernorm", "nn-rmsnorm", "vector-rmsnorm"}
    assert set(rows.status) == {"ok"}
    assert "docs/examples/my\\_norms.py:6" in (tmp_path / "run" / "verdict.md").read_text(encoding="utf-8")
    info = load(tmp_path / "run").header.implementations[-1]
    assert f"| {info.name} | {info.summary} ({info.op}) | docs/examples/my\\_norms.py:6 at commit " in PAGE


def test_every_sweep_that_is_shown_is_accepted() -> None:
    for command in COMMANDS:
        if command.startswith("sweep"):
            done = normbench(*shlex.split(command), "--dry-run", "--device", "cpu")
            assert done.code == 0, done.err


def test_every_name_of_a_parameter_that_is_promised_is_known() -> None:
    promised = set(
        re.findall(r"`(gain|gamma|scale|w|g|weight|beta|shift|b|bias|eps|epsilon|variance_epsilon)`", PAGE)
    )
    known = signatures.GAIN | signatures.BIAS | signatures.EPS

    assert promised <= known
    assert {"weight", "bias", "eps"} <= promised


def test_help_shows_an_example() -> None:
    assert "my_norms.py:" in sweeping.EXAMPLES
