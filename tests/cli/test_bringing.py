"""Norms of a user's own, by their places, through every command that takes them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import pytest
import torch

from normbench.cli import bringing
from normbench.errors import UsageError
from normbench.implementations import catalog
from normbench.records import Brought
from tests.cli.command import Done, normbench, rows
from tests.mistakes import FAILED, INCORRECT, REFUSED, STATUSES

FORMULA = "x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight"
RIGHT = f"import torch\n\n\ndef rms(x, weight, eps):\n    return {FORMULA}\n"
TINY = ("--device", "cpu", "--widths", "32", "--rows", "4", "--dtype", "fp32", "--modes", "forward")
LEAST = ("--placements", "5", "--max-seconds", "0.05", "--share-device", "--quiet")
STEP = (
    *("--preset", "tiny", "--layers", "1", "--batch", "2", "--context", "8", "--width", "32", "--heads", "2"),
    *("--device", "cpu", "--share-device", "--quiet"),
)
NOISY = "import os\nprint('printed')\nos.write(1, b'written')\n"
CULPRITS = {
    "quits.py": f"import sys\n{RIGHT}sys.exit(0)\n",
    "noisy.py": f"{NOISY}{RIGHT}",
    "double.py": f"{RIGHT}torch.set_default_dtype(torch.float64)\n",
    "broken.py": f"{RIGHT}1/0\n",
    "calls.py": "def rms(x, weight, eps):\n    raise SystemExit(0)\n",
}
SAID = {
    "rms-rmsnorm": ("ok", ""),
    "noisy-rmsnorm": ("ok", ""),
    "quits-rmsnorm": ("failed", "ImportError: quits ended the program while it was imported: SystemExit(0)"),
    "double-rmsnorm": ("failed", "ImportError: double changes torch's settings for all while it is imported"),
    "broken-rmsnorm": ("failed", "ZeroDivisionError: division by zero"),
    "calls-rmsnorm": ("failed", "SystemExit: 0"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a right norm and some that are not."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    for name, source in {"rms.py": RIGHT, **CULPRITS}.items():
        (here / name).write_text(source)
    return here


def named(names: Sequence[str] = tuple(SAID)) -> list[str]:
    return [f"{name}={name.removesuffix('-rmsnorm')}.py:rms" for name in names]


def sweep(*words: str | Path) -> Done:
    return normbench("sweep", *TINY, *LEAST, *words)


def found(folder: Path | str) -> dict[str, tuple[str, str]]:
    return {row["implementation"]: (row["status"], row["reason"]) for row in rows(Path(folder) / "results.csv")}


def test_names_and_places_are_told_apart() -> None:
    there = catalog()
    asked = bringing.impls("--impls", ["nn-rmsnorm,mine=rms.py:rms", "other.py:ln nn-rmsnorm"], there.names)

    assert asked.names == ("nn-rmsnorm", "mine", "other-layernorm")
    assert asked.brought == (
        Brought(name="mine", target="rms.py:rms"),
        Brought(name="other-layernorm", target="other.py:ln"),
    )
    assert bringing.baseline("mine", there, asked) == "mine"
    with pytest.raises(UsageError, match="copy"):
        bringing.baseline("copy", there, asked)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["nn-rmsnrom"], "unknown implementation 'nn-rmsnrom'"),
        (["rms.py:rms", "rms.py:rms"], "there is an implementation 'own-rmsnorm' already"),
        (["a-rmsnorm=rms.py:rms", "a-rmsnorm=rms.py:other"], "there is an implementation 'a-rmsnorm' already"),
        (["nn-rmsnorm=rms.py:rms"], "there is an implementation 'nn-rmsnorm' already"),
        (["rms.py"], "which function or class of it?"),
        (["rms.py:none"], "rms.py has no 'none'"),
        (["none.py:rms"], "there is no file none.py"),
        (["mine=rms.py:rms@main"], "is in no git repository"),
        (["no.such.module:rms"], "there is no module no.such.module"),
    ],
)
@pytest.mark.parametrize("command", ["sweep", "profile", "check", "step"])
def test_what_is_wrong_is_a_usage_error_before_anything_runs(
    folder: Path, command: str, values: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))
    before = sorted(folder.iterdir())
    done = normbench(command, "--device", "cpu", "--impls", *values)

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: --impls: ")
    assert message in done.err
    assert "\nhint: " in done.err
    assert sorted(folder.iterdir()) == before


def test_in_one_process_everybody_s_faults_are_their_own_and_stdout_has_results_alone(capfd: object) -> None:
    assert isinstance(capfd, pytest.CaptureFixture)
    done = sweep("--impls", *named(), "--no-isolate", "--out", "run", "--json")

    assert done.code == 0, done.err
    assert json.loads(done.out)["complete"]
    assert "written" not in capfd.readouterr().out
    assert {name: found("run")[name][0] for name in SAID} == {name: status for name, (status, _said) in SAID.items()}
    assert all(said in found("run")[name][1] for name, (_status, said) in SAID.items())
    assert torch.get_default_dtype() is torch.float32


def test_what_ends_the_program_by_no_error_ends_the_sweep_as_incomplete(folder: Path) -> None:
    (folder / "skips.py").write_text("import pytest\ndef rms(x, weight, eps):\n    pytest.skip('no GPU')\n")
    done = sweep("--impls", "skips-rmsnorm=skips.py:rms", "--no-isolate", "--out", "run")

    assert done.code == 3
    assert "error: the sweep was ended by what it called: Skipped: no GPU" in done.err


def test_in_workers_a_crash_and_a_hang_at_import_cost_their_own_case_too(folder: Path) -> None:
    (folder / "dies.py").write_text(f"{RIGHT}import os\nos._exit(7)\n")
    (folder / "hangs.py").write_text(f"{RIGHT}import time\ntime.sleep(600)\n")
    names = [*SAID, "dies-rmsnorm", "hangs-rmsnorm"]
    done = sweep("--impls", *named(names), "--processes", "1", "--case-timeout", "6", "--out", "run", "--json")
    ends = {
        "dies-rmsnorm": ("failed", "its process ended by itself (exit code 7)"),
        "hangs-rmsnorm": ("timed_out", "busy for over 6 s without a pause: its process was ended"),
    }

    assert done.code == 0, done.err
    assert json.loads(done.out)["complete"]
    for name, (status, said) in {**SAID, **ends}.items():
        assert found("run")[name][0] == status
        assert said in found("run")[name][1]


def test_an_implementation_says_where_it_can_t_run_and_that_it_writes_into_its_inputs(folder: Path) -> None:
    source = """
        from normbench.implementations import Implementation, eager

        def build(setting):
            def bind(gain, bias):
                def forward(x):
                    y = eager.rmsnorm(x, gain, bias, setting.eps)
                    x.detach().zero_()
                    return y
                return forward
            return bind

        def made(**more):
            op = eager.RMSNORM.op
            return Implementation(name="a-rmsnorm", op=op, provider="a", summary="", build=build, **more)

        def asks(setting, device):
            return f"not on a {device.kind}"

        def raises(setting, device):
            raise OSError

        writing, silent = made(mutates=True), made()
        elsewhere, asking = made(unsupported=asks), made(unsupported=raises)
    """
    (folder / "declared.py").write_text(dedent(source))
    names = ("writing", "silent", "elsewhere", "asking")
    inference = ("--modes", "inference")
    done = sweep(
        "--impls",
        *(f"{name}-rmsnorm=declared.py:{name}" for name in names),
        *inference,
        "--out",
        "run",
        "--no-isolate",
    )

    assert done.code == 0, done.err
    assert [found("run")[f"{name}-rmsnorm"] for name in names] == [
        ("ok", ""),
        ("incorrect", "wrote into x without declaring it"),
        ("unsupported", "not on a cpu"),
        ("unsupported", "asked whether it runs here it raised OSError"),
    ]


def test_a_check_says_whose_fault_it_is_and_goes_on() -> None:
    words = ("--dtypes", "fp32", "--widths", "32", "--properties", "normal-values", "--device", "cpu", "--quiet")
    done = normbench("check", "--impls", *named(), *words, "--out", "checked", "--json")
    checks = {row["implementation"]: row for row in rows(Path("checked") / "check.csv")}

    assert done.code == 1, done.err
    assert json.loads(done.out)
    assert {name for name, row in checks.items() if row["mark"] == "pass"} == {"rms-rmsnorm", "noisy-rmsnorm"}
    assert all(said in checks[name]["reason"] for name, (_status, said) in SAID.items())


def test_a_training_step_is_timed_of_whoever_is_right() -> None:
    done = normbench(
        "step", *STEP, "--quick", "--max-seconds", "0.3", "--impls", *named(), "--out", "steps", "--json"
    )
    results = {row["implementation"]: row for row in rows(Path("steps") / "step.csv")}

    assert done.code == 0, done.err
    assert json.loads(done.out)
    assert {name: results[name]["status"] for name in SAID} == {
        name: status for name, (status, _said) in SAID.items()
    }
    assert all(said in results[name]["reason"] for name, (_status, said) in SAID.items())


def test_a_model_is_trained_with_whoever_is_right_and_gone_on_with_where_the_code_has_moved(folder: Path) -> None:
    outside = folder.parent / "outside" / "away.py"
    outside.parent.mkdir()
    outside.write_text(RIGHT)
    words = ("--train", "2", "--seeds", "1", "--out", "trained")
    done = normbench("step", *STEP, *words, "--impls", *named(), f"away-rmsnorm={outside}:rms")
    curves = {row["implementation"]: row for row in rows(Path("trained") / "training.csv")}

    assert done.code == 0, done.err
    assert {name: curves[name]["status"] for name in SAID} == {name: status for name, (status, _said) in SAID.items()}
    lost = normbench("step", "--resume", "trained")
    assert (lost.code, lost.err) == (
        2,
        "error: --resume: away-rmsnorm was brought from away.py, which is not here\n"
        "hint: say where it is: --impls away-rmsnorm=path/to/away.py:rms\n",
    )
    assert normbench("step", "--resume", "trained", "--impls", f"away-rmsnorm={outside}:rms").code == 0
    other = normbench("step", "--resume", "trained", "--impls", f"other-rmsnorm={outside}:rms")
    assert other.err.startswith("error: --resume: the run has no other-rmsnorm\nhint: it has: ")
    assert normbench("step", "--resume", "trained", "--impls", "nn-rmsnorm").code == 2


def test_a_profile_is_made_of_it() -> None:
    done = normbench(
        "profile",
        *TINY,
        "--max-seconds",
        "0.05",
        "--share-device",
        "--no-counters",
        "--no-isolate",
        "--impls",
        "rms-rmsnorm=rms.py:rms",
        "--out",
        "run",
        "--quiet",
    )
    traffic = {row["implementation"]: row for row in rows(Path("run") / "traffic.csv")}

    assert done.code == 0, done.err
    assert int(traffic["rms-rmsnorm"]["op_bytes"]) > 0


def test_no_path_of_the_machine_is_in_a_run_folder(folder: Path) -> None:
    outside = folder.parent / "very_private" / "away.py"
    outside.parent.mkdir()
    outside.write_text(RIGHT)
    (outside.parent / "lost.py").write_text(f"{RIGHT}import no_such_one, os\n")
    impls = (f"{outside}:rms", f"lost-rmsnorm={outside.parent}/lost.py:rms")
    assert sweep("--impls", *impls, "--no-isolate", "--out", "run").code == 0
    texts = {
        path: path.read_text() for path in Path("run").rglob("*") if path.suffix in {".json", ".csv", ".md", ".html"}
    }

    assert len(texts) > 5
    assert not [path for path, text in texts.items() if "very_private" in text or str(folder.parent) in text]
    assert "away.py:rms" in texts[Path("run/run.json")]


def resumed(*words: str) -> Done:
    return normbench("sweep", "--resume", "run", "--share-device", "--quiet", *words)


def test_a_run_is_gone_on_with_the_code_that_it_began_with_alone(folder: Path) -> None:
    assert sweep("--impls", "rms-rmsnorm=rms.py:rms", "eager-rmsnorm", "--no-isolate", "--out", "run").code == 0
    assert resumed().code == 0
    more = ("--widths", "32", "64", "--force")
    assert resumed(*more).code == 0
    (folder / "rms.py").write_text(RIGHT.replace("eps)", "eps )"))
    changed = resumed()

    assert changed.code == 2
    assert "error: --resume: not as the run began: rms-rmsnorm was rmsnorm, rms.py:4, SHA-256 " in changed.err
    assert resumed("--force").code == 0
    header = json.loads((Path("run") / "run.json").read_text())
    assert "rms-rmsnorm was rmsnorm, rms.py:4" in header["resumed"][-1]["differences"][0]


def test_code_that_lies_elsewhere_now_is_named_again_alone(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "away.py").write_text(RIGHT)
    place = f"{folder}/../here/sub/away.py"
    assert sweep("--impls", f"away-rmsnorm={place}:rms", "eager-rmsnorm", "--no-isolate", "--out", "run").code == 0
    (folder / "sub").rename(folder.parent / "moved")
    lost = resumed()

    assert (lost.code, lost.err.splitlines()[-1]) == (
        2,
        "hint: say where it is: --impls away-rmsnorm=path/to/away.py:rms",
    )
    again = resumed("--impls", "away-rmsnorm=../moved/away.py:rms", "--widths", "32", "64", "--force")
    assert again.code == 0, again.err
    assert {row["implementation"] for row in rows(Path("run") / "results.csv")} >= {"away-rmsnorm", "eager-rmsnorm"}


def test_two_revisions_of_a_file_are_measured_side_by_side(folder: Path) -> None:
    scale = "def f(): return 1.0\n"
    for text, message in ((scale, "right"), (scale.replace("1.0", "2.0"), "wrong")):
        (folder / "scale.py").write_text(text)
        body = f"    import scale as late\n    return {FORMULA} * late.f()\n"
        (folder / "scaled.py").write_text(f"import torch\nimport scale\ndef rms(x, weight, eps):\n{body}")
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", message]):
            identity = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
            subprocess.run(
                ["git", *identity, *words], check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
            )
    impls = ("old-rmsnorm=scaled.py:rms@HEAD~1", "new-rmsnorm=scaled.py:rms")
    done = sweep("--impls", *impls, "--no-isolate", "--out", "run")

    assert done.code == 0, done.err
    assert found("run")["old-rmsnorm"][0] == "ok"
    assert found("run")["new-rmsnorm"][0] == "incorrect"


def test_every_mistake_has_a_status_and_a_reason_and_costs_nobody_else(folder: Path) -> None:
    mistakes = {**FAILED, **INCORRECT}
    for name, (source, _said) in mistakes.items():
        (folder / f"{name}_rms.py").write_text(source)
    impls = [f"{name.replace('_', '-')}-x-rmsnorm={name}_rms.py:rms" for name in mistakes]
    done = sweep("--impls", *impls, "rms-rmsnorm=rms.py:rms", "--no-isolate", "--out", "run")
    results = found("run")

    assert done.code == 0, done.err
    assert "fault of normbench" not in done.err
    assert "Traceback" not in done.err
    assert results["rms-rmsnorm"][0] == "ok"
    wrong = {
        name: results[f"{name.replace('_', '-')}-x-rmsnorm"]
        for name, (_source, said) in mistakes.items()
        if results[f"{name.replace('_', '-')}-x-rmsnorm"][0] != STATUSES[name]
        or said not in results[f"{name.replace('_', '-')}-x-rmsnorm"][1]
    }
    assert wrong == {}


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_be_seen_beforehand_is_refused_beforehand(folder: Path, name: str) -> None:
    source, said = REFUSED[name]
    (folder / f"{name}.py").write_text(dedent(source))
    done = sweep("--impls", f"x-rmsnorm={name}.py:rms", "--out", "run")

    assert done.code == 2
    assert said in done.err
    assert not Path("run").exists()
