"""``normbench check``: what is asked, what is written and printed, and with which exit code it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from normbench.checking import Piece
from normbench.device import Device
from normbench.errors import IncompleteError, StorageError
from normbench.implementations import NAMES, Implementation, catalog, checkable
from normbench.records import Allowance, Check, CheckPlan, DType, Gap, Mark, Output, Property, Spot
from normbench.reporters.checks_markdown import render
from normbench.storage import CheckFolder, load_check
from tests.checked import make_gap, write_check
from tests.cli.command import Done, normbench
from tests.runs import write_run

FAILING = (("nn-rmsnorm", Property.OUTLIER), ("eager-rmsnorm", Property.ZEROS))
"""What fails, of whom, with the stand-in below."""

Examine = Callable[..., Iterator[Check]]


class Examiner:
    """A stand-in for what measures: everything passes but ``failing``; RMSNorm has no zero mean."""

    def __init__(self, failing: Sequence[tuple[str, Property]] = (), mark: Mark | None = None) -> None:
        self.failing = failing
        self.mark = mark
        self.plan: CheckPlan | None = None
        self.names: tuple[str, ...] = ()

    def __call__(
        self,
        _device: Device,
        plan: CheckPlan,
        implementations: Sequence[Implementation],
        told: Callable[[Piece], None],
    ) -> Iterator[Check]:
        self.plan, self.names = plan, tuple(each.name for each in implementations)
        for done, name in enumerate(self.names):
            told(Piece(number=done, count=len(self.names), share=done / len(self.names), what=name))
            for asked in plan.properties:
                for dtype in plan.dtypes:
                    yield self.check(name, asked, dtype, plan.widths[0])

    def check(self, name: str, asked: Property, dtype: DType, width: int) -> Check:
        mark = self.mark or (Mark.FAIL if (name, asked) in self.failing else Mark.PASS)
        if asked is Property.ZERO_MEAN and name.endswith("rmsnorm"):
            mark = Mark.NOT_APPLICABLE
        return Check(
            implementation=name,
            property=asked,
            spot=Spot(rows=5, width=width, dtype=dtype, parameter_dtype=dtype),
            output=Output.Y if mark is not Mark.NOT_APPLICABLE else None,
            mark=mark,
            reason=None if mark is Mark.PASS else "because",
            gap=make_gap(9.0 if mark is Mark.FAIL else 0.5) if mark is not Mark.NOT_APPLICABLE else None,
        )


@pytest.fixture
def examining(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Examine], None]:
    """Have this asked in the place of the real implementations."""
    monkeypatch.chdir(tmp_path)
    return lambda examine: monkeypatch.setattr("normbench.checking.examine", examine)


@pytest.fixture
def well(examining: Callable[[Examine], None]) -> Examiner:
    """Everything passes."""
    examiner = Examiner()
    examining(examiner)
    return examiner


@pytest.fixture
def badly(examining: Callable[[Examine], None]) -> Examiner:
    """Two properties fail, each of one."""
    examiner = Examiner(FAILING)
    examining(examiner)
    return examiner


def check(*words: str | Path) -> Done:
    return normbench("check", "--device", "cpu", *words)


def folder_of(done: Done) -> Path:
    """The folder that is named last."""
    last = done.err.splitlines()[-1] if done.code in (0, 130) else done.err.splitlines()[-3]
    return Path(last.removeprefix("written: ").removesuffix("/ (read check.md first)"))


def test_by_default_everything_is_asked_of_all_but_the_floor_and_the_wrong_one(well: Examiner) -> None:
    done = check()

    assert done.code == 0, done.err
    assert well.names == NAMES[1:]
    assert well.plan == CheckPlan(
        properties=tuple(Property),
        dtypes=(DType.FP32, DType.BF16, DType.FP16),
        widths=(1, 3, 64, 1000, 4096),
        eps=1e-6,
        seed=0,
    )


def test_what_is_said_is_asked_in_the_order_of_reports(well: Examiner) -> None:
    words = ("--impls", "nn-rmsnorm,eager-layernorm", "--dtype", "half", "float32", "--width", "7", "8:10:1")
    done = check(*words, "--properties", "zeros", "ZERO-MEAN", "--eps", "1e-5", "--seed", "3")

    assert done.code == 0, done.err
    assert well.names == ("eager-layernorm", "nn-rmsnorm")
    assert well.plan == CheckPlan(
        properties=(Property.ZEROS, Property.ZERO_MEAN),
        dtypes=(DType.FP16, DType.FP32),
        widths=(7, 8, 9, 10),
        eps=1e-5,
        seed=3,
    )


@pytest.mark.parametrize(
    ("words", "widths"), [((), (1, 3, 64, 1000, 4096, 65536)), (("--widths", "65536", "5"), (65536, 5))]
)
def test_full_adds_the_widest_once(well: Examiner, words: tuple[str, ...], widths: tuple[int, ...]) -> None:
    check("--full", *words)

    assert well.plan is not None
    assert well.plan.widths == widths


def test_every_name_that_can_be_checked_is_taken(well: Examiner) -> None:
    names = tuple(one.name for one in checkable(catalog()))

    assert check("--impls", *names).code == 0
    assert well.names == names


def test_the_table_goes_to_stdout_the_folder_is_named_last_and_holds_what_was_found(badly: Examiner) -> None:
    done = check("--out", "new")
    run = load_check(Path("new"))

    assert done.out.splitlines()[0] == "Largest error in ulp, per property and implementation"
    assert done.err.splitlines()[0] == "checking into new/"
    assert "written: new/ (read check.md first)" in done.err
    assert sorted(path.name for path in Path("new").iterdir()) == ["check.csv", "check.json", "check.md"]
    assert len(run.checks) == 6 * 35 * 3
    assert run.complete
    assert run.seconds is not None
    assert run.header.device.kind == "cpu"
    assert [info.name for info in run.header.implementations] == list(badly.names)


@pytest.mark.usefixtures("well")
def test_without_out_the_folder_is_named_after_time_and_device() -> None:
    done = check()
    folder = folder_of(done)

    assert folder.parent == Path("reports")
    assert load_check(folder).complete


@pytest.mark.usefixtures("badly")
def test_a_failure_ends_with_1_and_says_whose() -> None:
    done = check()

    assert done.code == 1
    assert done.err.splitlines()[-2:] == [
        "error: 6 implementations, 35 properties: 2 fail something: eager-rmsnorm (zeros), nn-rmsnorm (outlier)",
        "hint: --allow zeros outlier where that is known",
    ]
    assert "FAIL" in done.out


@pytest.mark.usefixtures("badly")
@pytest.mark.parametrize(
    ("allowed", "code"),
    [
        (["outlier", "zeros"], 0),
        (["nn-rmsnorm:outlier", "eager-rmsnorm:zeros"], 0),
        (["nn-rmsnorm:outlier,eager-rmsnorm:zeros", "determinism"], 0),
        (["outlier"], 1),
        (["eager-rmsnorm:outlier", "zeros"], 1),
    ],
)
def test_what_is_allowed_to_fail_is_shown_and_does_not_count(allowed: list[str], code: int) -> None:
    done = check("--allow", *allowed)

    assert done.code == code, done.err
    assert "nn-rmsnorm fails outlier" in done.out
    assert "eager-rmsnorm fails zeros" in done.out


@pytest.mark.usefixtures("badly")
def test_what_is_allowed_is_in_the_folder_and_in_the_command_that_repeats_it() -> None:
    check("--allow", "nn-rmsnorm:outlier", "zeros", "--out", "new", "--dtype", "fp32")
    header = load_check(Path("new")).header

    assert header.allowed == (
        Allowance(implementation="nn-rmsnorm", property=Property.OUTLIER),
        Allowance(property=Property.ZEROS),
    )
    assert "new" not in header.command
    again = normbench(*header.command[1:], "--out", "again")
    assert again.code == 0
    assert load_check(Path("again")).header.command == header.command
    assert load_check(Path("again")).header.plan == header.plan


def test_where_nothing_can_be_asked_the_end_is_3(examining: Callable[[Examine], None]) -> None:
    examining(Examiner(mark=Mark.NOT_APPLICABLE))
    done = check()

    assert done.code == 3
    assert "error: nothing could be checked" in done.err
    assert "Nothing could be asked of nn-rmsnorm: because." in done.out


@pytest.mark.usefixtures("badly")
def test_markdown_is_check_md() -> None:
    done = check("--markdown", "--out", "new")

    assert done.out == (Path("new") / "check.md").read_text(encoding="utf-8")
    assert done.out.startswith("**6 implementations, 35 properties: 2 fail something")


@pytest.mark.usefixtures("badly")
def test_json_is_one_document_with_grades_and_checks() -> None:
    done = check("--json", "--quiet", "--out", "new")
    found: Any = json.loads(done.out)

    assert (found["folder"], found["complete"], found["failed"]) == ("new", True, True)
    assert len(found["grades"]) == 6 * 35
    assert len(found["checks"]) == 6 * 35 * 3
    assert done.err.splitlines()[0].startswith("error: ")


@pytest.mark.usefixtures("well")
def test_quiet_leaves_stderr_to_errors() -> None:
    assert check("--quiet").err == ""


@pytest.mark.usefixtures("well")
def test_without_a_terminal_the_progress_is_a_line_now_and_then() -> None:
    assert check().err.splitlines()[1] == "[0/6] eager-layernorm"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--properties", "zero-maen"),
            "unknown property 'zero-maen'\nhint: did you mean zero-mean? allowed: ",
        ),
        (("--property", "outlier", "beauty"), "--properties: unknown property 'beauty'"),
        (("--impls", "copy"), "--impls: unknown implementation 'copy'"),
        (("--allow", "zerso"), "--allow: unknown property 'zerso'\nhint: did you mean zeros?"),
        (("--allow", "nn-rsmnorm:zeros"), "--allow: unknown implementation 'nn-rsmnorm'\nhint: did you mean nn-rms"),
        (("--allow", "nn-rmsnorm"), "--allow: unknown property 'nn-rmsnorm'"),
        (("--allow",), "--allow: a value is missing"),
        (("--dtype", "fp23"), "--dtypes: unknown dtype 'fp23'"),
        (("--widths", "0"), "--widths: '0' is not a size"),
        (("--eps", "0"), "--eps: 0 is not a number above 0"),
        (("--eps", "1e-45"), "eps: from 1e-30 to 1e+08"),
        (("--seed", str(2**64)), "the seed has 64 bits"),
        (("--widths", "1:1000:1"), "630000 questions are more than 200000: ask for fewer widths or properties"),
        (("--widths", str(10**18)), f"--widths: {10**18} needs about "),
        (("--device", ""), "--device '': there is no such device here"),
        (("--out", "--json"), "--out: a value is missing"),
        (("--json", "--markdown"), "--markdown and --json ask for different things"),
        (("--out", "."), "--out .: exists, and no run is ever overwritten"),
        (("--bogus",), "--bogus"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_asked(
    well: Examiner, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = check(*words)

    assert (done.code, done.out, well.plan) == (2, "", None)
    assert said in done.err
    assert list(tmp_path.iterdir()) == []


def some(count: int, end: BaseException) -> Examine:
    """The first checks, then this."""

    def examine(*args: Any) -> Iterator[Check]:
        found = Examiner(FAILING)(*args)
        for _ in range(count):
            yield next(found)
        raise end

    return examine


def test_an_interrupt_reports_what_there_is_and_ends_with_130(examining: Callable[[Examine], None]) -> None:
    examining(some(40, KeyboardInterrupt()))
    done = check("--out", "new")
    run = load_check(Path("new"))

    assert done.code == 130
    assert (len(run.checks), run.complete) == (40, False)
    assert run.seconds is not None
    assert "This check was ended before it was done; not come to: eager-layernorm (21 properties)" in done.out
    assert "so far nothing fails" in (Path("new") / "check.md").read_text(encoding="utf-8")
    assert done.err.splitlines()[-2:] == [
        "written: new/ (read check.md first)",
        "interrupted: what was found is written, the rest was not asked",
    ]


def test_an_error_that_ends_it_is_told_after_what_was_found(examining: Callable[[Examine], None]) -> None:
    examining(some(40, IncompleteError("the device is gone", hint="reset it")))
    done = check("--out", "new")

    assert done.code == 3
    assert len(load_check(Path("new")).checks) == 40
    assert (Path("new") / "check.md").exists()
    assert done.err.splitlines()[-2:] == ["error: the device is gone", "hint: reset it"]


def test_a_fault_keeps_what_was_found(examining: Callable[[Examine], None]) -> None:
    examining(some(40, RuntimeError("a fault")))
    done = check("--out", "new")

    assert done.code == 3
    assert "this is a fault of normbench" in done.err
    assert len(load_check(Path("new")).checks) == 40


@pytest.mark.parametrize("end", [SystemExit(0), SystemExit(1), GeneratorExit(), BaseException("mine")])
def test_code_that_would_end_the_program_ends_the_check_as_one_that_is_incomplete(
    examining: Callable[[Examine], None], end: BaseException
) -> None:
    examining(some(40, end))
    done = check("--out", "new")

    assert done.code == 3
    assert len(load_check(Path("new")).checks) == 40
    assert "incomplete, so this is no verdict on what was not asked" in done.out
    said = done.err.splitlines()[-1]
    assert said.startswith(f"error: the check was ended by what it called at eager-layernorm: {type(end).__name__}")


def test_code_that_goes_to_another_folder_takes_no_file_along(
    examining: Callable[[Examine], None], tmp_path: Path
) -> None:
    def elsewhere(*args: Any) -> Iterator[Check]:
        os.chdir("/")
        yield from Examiner()(*args)

    examining(elsewhere)
    done = check("--out", "new")

    assert done.code == 0, done.err
    assert "written: new/ (read check.md first)" in done.err
    assert load_check(tmp_path / "new").complete
    assert (tmp_path / "new" / "check.md").exists()


def test_what_is_known_of_one_implementation_is_written_before_the_next_may_crash(
    examining: Callable[[Examine], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: dict[str, int] = {}

    def examine(*args: Any) -> Iterator[Check]:
        for found in Examiner()(*args):
            if found.implementation not in sizes and sizes:
                yield found
                sizes[found.implementation] = len(load_check(Path("new")).checks)
            else:
                sizes.setdefault(found.implementation, 0)
                yield found

    monkeypatch.setattr("normbench.cli.examining._KEPT_S", 1000.0)
    examining(examine)
    check("--out", "new")

    assert list(sizes.values()) == [105 * number for number in range(6)]


_BAD = """
import ctypes, os, sys
from normbench import checking
from normbench.__main__ import run
from tests.cli.test_check import Examiner

def examine(*args):
    for number, check in enumerate(Examiner()(*args)):
        yield check
        if number == 10:
            print("printed by Python")
            ctypes.CDLL(None).puts(b"printed by C")
            os.write(1, b"written\\n")
            sys.__stdout__.write("to the other one")
        if number == 20 and sys.argv[-1] == "--json":
            return
        if number == 20:
            ctypes.string_at(0)

checking.examine = examine
run()
"""


def bad(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A check of code that prints, and then ends or crashes."""
    (folder / "bad.py").write_text(_BAD, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "bad.py", "check", "--device", "cpu", "--out", "new", *words],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path]), "PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_whatever_the_code_prints_stdout_has_the_document_alone(tmp_path: Path) -> None:
    done = bad(tmp_path, "--json")

    assert json.loads(done.stdout)["folder"] == "new", done.stderr
    assert all(text in done.stderr for text in ("printed by Python", "printed by C", "written", "to the other one"))


def test_a_crash_says_where_it_was(tmp_path: Path) -> None:
    done = bad(tmp_path)

    assert done.returncode == -signal.SIGSEGV
    assert "Segmentation fault" in done.stderr
    assert '/bad.py", line 18 in examine' in done.stderr


def test_where_nothing_can_be_written_the_check_ends_with_the_file(
    examining: Callable[[Examine], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_folder: CheckFolder, checks: Sequence[Check]) -> None:
        if checks:
            raise StorageError("new/check.csv: can't be written: No space left on device", hint="make room there")

    examining(Examiner())
    monkeypatch.setattr(CheckFolder, "write", refuse)
    done = check("--out", "new")

    assert done.code == 3
    assert "error: new/check.csv: can't be written: No space left on device\nhint: make room there" in done.err
    assert done.out == ""


_SLOW = """
import sys, time
from pathlib import Path
from normbench import checking
from normbench.__main__ import run
from tests.cli.test_check import Examiner

def examine(*args):
    for number, check in enumerate(Examiner()(*args)):
        yield check
        if number == 10:
            time.sleep(0.3)
        if number == 20:
            Path("half").touch()
            time.sleep(100)

checking.examine = examine
run()
"""


def slow(folder: Path) -> subprocess.Popen[str]:
    """A check that has found something and takes its time with the next."""
    (folder / "slow.py").write_text(_SLOW, encoding="utf-8")
    words = [sys.executable, "slow.py", "check", "--device", "cpu", "--out", "new"]
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not (folder / "half").exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_at_once_and_what_was_found_is_reported(tmp_path: Path, number: signal.Signals) -> None:
    with slow(tmp_path) as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "This check was ended before it was done" in out
    assert len(load_check(tmp_path / "new").checks) == 21
    assert not list(tmp_path.rglob(".*.part"))


def test_a_signal_while_the_folder_is_made_leaves_it_whole(
    well: Examiner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = CheckFolder._write_header

    def interrupted(*args: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        make(*args)

    monkeypatch.setattr(CheckFolder, "_write_header", interrupted)
    done = check("--out", "new")

    assert (done.code, well.plan) == (130, None)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    assert load_check(tmp_path / "new").checks == ()


def test_a_killed_check_loads_and_report_says_that_it_is_incomplete(tmp_path: Path) -> None:
    with slow(tmp_path) as process:
        process.kill()
    run = load_check(tmp_path / "new")
    done = normbench("report", tmp_path / "new")

    assert (run.complete, run.seconds) == (False, None)
    assert 12 <= len(run.checks) <= 21
    assert done.code == 0
    assert "incomplete, so this is no verdict" in done.out


def test_a_check_is_not_resumed_and_that_is_said(tmp_path: Path) -> None:
    path = write_check(tmp_path / "check")
    done = normbench("sweep", "--resume", path)

    assert done.code == 2
    assert done.err.startswith(f"error: --resume: {path} is the folder of a check, which is not resumed\nhint: ")


def test_links_in_a_ring_are_no_folder(tmp_path: Path) -> None:
    (tmp_path / "ring").symlink_to("ring")
    done = normbench("report", tmp_path / "ring")

    assert done.code == 3
    assert done.err.startswith(f"error: {tmp_path}/ring/run.json: can't be read: ")


def test_report_prints_a_check_again_and_makes_its_file(tmp_path: Path) -> None:
    path = write_check(tmp_path / "check")
    done = normbench("report", path)

    assert (done.code, done.err) == (0, f"written: {path}/ (read check.md first)\n")
    assert "naive-rmsnorm fails fp16-squares-overflow" in done.out
    from normbench import grades

    assert (path / "check.md").read_text(encoding="utf-8") == render(grades.of_run(load_check(path)))


def test_report_takes_another_folder_and_json(tmp_path: Path) -> None:
    path = write_check(tmp_path / "check")
    done = normbench("report", path, "--out", tmp_path / "new", "--json", "--quiet")

    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["folder"] == "check"
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["check.md"]
    assert not (path / "check.md").exists()


def test_a_check_and_a_run_are_not_mixed(tmp_path: Path) -> None:
    path, run = write_check(tmp_path / "check"), write_run(tmp_path / "run").path
    other = write_check(tmp_path / "other")

    for words in (("report", path, run), ("report", run, path), ("report", path, other)):
        done = normbench(*words)
        assert (done.code, done.out) == (2, "")
        assert "is the folder of a check, and only runs are merged\nhint: report it by itself\n" in done.err
    for word, words in (("BASE", (path, run)), ("HEAD", (run, path))):
        done = normbench("compare", *words)
        assert (done.code, done.out) == (2, "")
        assert (
            f"error: {word}: {path} is the folder of a check, and holds no times\nhint: normbench report" in done.err
        )


def test_a_check_has_no_pictures(tmp_path: Path) -> None:
    done = normbench("report", write_check(tmp_path / "check"), "--pictures", "3")

    assert (done.code, done.err) == (2, "error: --pictures: a check has none\nhint: leave it out\n")


def test_a_check_that_cannot_be_read_names_file_line_and_field(tmp_path: Path) -> None:
    path = write_check(tmp_path / "check")
    text = (path / "check.csv").read_text(encoding="utf-8")
    (path / "check.csv").write_text(text.replace(",pass,", ",perhaps,", 1), encoding="utf-8")
    done = normbench("report", path)

    assert (done.code, done.out) == (3, "")
    assert done.err == f"error: {path}/check.csv: line 2: mark: Input should be 'pass', 'fail' or 'n.a.'\n"


def test_infinite_errors_survive_the_folder(examining: Callable[[Examine], None]) -> None:
    class Infinite(Examiner):
        def check(self, name: str, asked: Property, dtype: DType, width: int) -> Check:
            found = super().check(name, asked, dtype, width)
            gap = Gap(ulp=float("inf"), relative=float("inf"), of_allowed=float("inf"))
            return Check(**{**vars(found), "gap": gap}) if found.mark is Mark.FAIL else found

    examining(Infinite(FAILING))
    done = check("--out", "new", "--json")
    wrong = [found for found in json.loads(done.out)["checks"] if found["mark"] == "fail"]

    assert {(found["max_ulp"], found["infinite"]) for found in wrong} == {(None, True)}
    assert {c.gap.ulp for c in load_check(Path("new")).checks if c.mark is Mark.FAIL and c.gap} == {float("inf")}
