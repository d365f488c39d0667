"""N31, N32: whatever the console is, the command ends well and what it says is whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from normbench.legible import substitute
from normbench.records import DType, Mode, Status
from normbench.storage import RunFolder
from tests.checked import write_check
from tests.cli.command import PLAIN, TINY
from tests.cli.consoles import SEQUENCE, environment, in_shell, on_terminal, piped
from tests.runs import Times, make_device, make_header, make_plan, make_records

LABEL = "nn.RMSNorm[compile]"
DEVICE = "Prüfgerät 3 µ"
REASON = "OSError: no [/data/x] → a reason that is so long that it does not fit into one line of eighty columns"
TIMES: Times = {
    "copy": 1e-6,
    "eager-layernorm": 8e-6,
    "nn-layernorm": 4e-6,
    "compile-layernorm": 4.04e-6,
    LABEL: 2e-6,
    "eager-rmsnorm": Status.FAILED,
}
PLAN = make_plan(
    widths=tuple(2**exponent for exponent in range(8, 15)),
    dtypes=(DType.BF16,),
    modes=(Mode.FORWARD, Mode.BACKWARD),
    implementations=tuple(TIMES),
)
INLINE = "module://matplotlib_inline.backend_inline"
"""A notebook's, which is not installed here."""
NOTEBOOK = {"FORCE_COLOR": "1", "CLICOLOR": "1", "CLICOLOR_FORCE": "1", "TERM": "xterm-color", "MPLBACKEND": INLINE}

ENVIRONMENTS = {
    "nothing said": ("utf-8", {}),
    "NO_COLOR": ("utf-8", {"NO_COLOR": "1"}),
    "an empty NO_COLOR": ("utf-8", {"NO_COLOR": ""}),
    "a dumb terminal": ("utf-8", {"TERM": "dumb"}),
    "COLUMNS": ("utf-8", {"COLUMNS": "40"}),
    "COLUMNS that is no number": ("utf-8", {"COLUMNS": "wide"}),
    "the C locale": ("ascii", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "cp1252": ("cp1252", {"PYTHONIOENCODING": "cp1252"}),
    "strict ASCII": ("ascii", {"PYTHONIOENCODING": "ascii:strict"}),
    "a locale that is not installed": ("utf-8", {"LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8"}),
    "CI": ("utf-8", {"CI": "true", "GITHUB_ACTIONS": "true"}),
    "no buffers": ("utf-8", {"PYTHONUNBUFFERED": "1"}),
    "a pipe in a notebook": ("utf-8", {"JPY_PARENT_PID": "1", "MPLBACKEND": INLINE}),
}


FAULT = """
from normbench import cli
def app():
    raise RuntimeError("\\x1b[31mred")
cli.app = app
cli.main()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with a label in brackets, a reason with an arrow and a device whose name is no ASCII."""
    header = make_header(PLAN, device=make_device(name=DEVICE))
    folder = RunFolder.create(tmp_path_factory.mktemp("consoles") / "run", header)
    for cell in PLAN.cells():
        times = {name: t if isinstance(t, Status) else t * cell.width / 256 for name, t in TIMES.items()}
        folder.write(make_records(cell, times, PLAN, REASON))
    return folder.path


def report(run: Path) -> tuple[str, ...]:
    return ("report", str(run), "--pictures", "0")


@pytest.fixture(scope="module")
def usual(run: Path) -> str:
    """What a report prints where nothing is in its way, and what it writes."""
    done = piped({}, *report(run), encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    return str(done.stdout)


def words(text: str) -> set[str]:
    """Words and values, each whole; where a head stands before its value, without the colon between."""
    return {word.rstrip(":") for word in re.findall(r"[^\s─]+", SEQUENCE.sub("", text))}


def values(text: str) -> list[str]:
    """The fields of the tables of times."""
    return re.findall(r"\d\S* µs  (?:\d\S* )?[a-z]+", text)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_in_a_pipe_everything_is_whole_and_plain_in_any_environment(run: Path, usual: str, name: str) -> None:
    encoding, changes = ENVIRONMENTS[name]
    before = (run / "verdict.md").read_bytes(), (run / "report.html").read_bytes()
    done = piped(changes, *report(run))

    expected = usual if encoding == "utf-8" else usual.replace("─", "-")
    written = "".join(c if c.encode(encoding, "ignore") else substitute(c) for c in expected)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode(encoding) == written
    assert ((run / "verdict.md").read_bytes(), (run / "report.html").read_bytes()) == before
    assert DEVICE in before[0].decode("utf-8")


def test_nothing_is_cut_where_nobody_looks(usual: str) -> None:
    assert len(values(usual)) == 2 * 7 * 5
    assert f"use {LABEL} for bf16, forward and backward" in usual
    assert f"eager-rmsnorm: failed bf16 forward and backward: {REASON}\n" in usual
    assert "\x1b" not in usual
    assert "…" not in usual


def test_colours_that_are_asked_for_go_into_a_pipe_and_movements_do_not(run: Path, usual: str) -> None:
    done = piped(NOTEBOOK, *report(run), encoding="utf-8")

    assert done.returncode == 0
    assert {kind for _, kind in SEQUENCE.findall(done.stdout)} == {"m"}
    assert SEQUENCE.sub("", done.stdout) == usual


@pytest.mark.parametrize(
    ("columns", "changes"),
    [
        (40, {}),
        (80, {}),
        (200, {}),
        (40, {"NO_COLOR": "1"}),
        (40, {"TERM": "dumb"}),
        (40, {"TERM": ""}),
        (200, {"COLUMNS": "40"}),
        (80, {"JPY_PARENT_PID": "1", **NOTEBOOK}),
        (0, {"TERM": "dumb"}),
    ],
)
def test_on_a_terminal_no_line_is_too_long_and_every_value_is_whole(
    run: Path, usual: str, columns: int, changes: dict[str, str]
) -> None:
    code, sent = on_terminal(changes, columns, *report(run))
    plain = SEQUENCE.sub("", sent)

    assert code == 0
    assert "\x1b" not in plain
    assert max(map(len, plain.splitlines())) <= int(changes.get("COLUMNS", columns or 80))
    assert words(usual) <= words(plain) | {"width"}  # which is the corner of a table
    assert sorted(values(plain)) == sorted(values(usual))
    codes = {parts for parts, _ in SEQUENCE.findall(sent)}
    if changes.get("TERM") in ("dumb", ""):
        assert codes == set()
    elif "NO_COLOR" in changes:
        assert codes <= {"0", "1", "2"}
    else:
        assert {"31", "32"} <= codes


@pytest.mark.parametrize("command", [["--help"], ["sweep", "--help"], ["list", "--device", "cpu"], ["compare"]])
def test_other_commands_on_a_narrow_terminal_end_well_and_do_not_break_words(run: Path, command: list[str]) -> None:
    more = [str(run), str(run)] if command == ["compare"] else []
    code, sent = on_terminal({}, 40, *command, *more)
    plain = SEQUENCE.sub("", sent)

    assert code == 0
    if "--help" not in command:  # whose text others wrap
        assert max(map(len, plain.splitlines())) <= 40
    assert {"compare": LABEL, "list": "eager-layernorm"}.get(command[0], "--help") in plain
    assert "…" not in plain


@pytest.mark.parametrize(
    ("columns", "changes"), [(40, {}), (80, {}), (40, {"TERM": "dumb"}), (80, {"PYTHONIOENCODING": "ascii:strict"})]
)
def test_a_check_is_whole_on_a_narrow_terminal(tmp_path: Path, columns: int, changes: dict[str, str]) -> None:
    code, sent = on_terminal(changes, columns, "report", str(write_check(tmp_path / "check")), "--quiet")
    plain = SEQUENCE.sub("", sent)

    assert code == 0
    assert max(map(len, plain.splitlines())) <= columns
    assert all(found in plain for found in ("fp16-squares-overflow", "FAIL fp16", "ok 0.62", "1 fails"))
    assert plain.isascii() or "ascii" not in str(changes)


def test_a_sweep_on_a_narrow_terminal_tells_its_progress_in_one_line(tmp_path: Path) -> None:
    words = ("sweep", *TINY, *PLAIN, "--widths", "64", "128", "--out", tmp_path / "run")
    code, sent = on_terminal({}, 40, *words)
    _said, begun, rest = sent.partition("\x1b[?25l")  # a warning of a busy machine may come first
    drawn, _, summary = (begun + rest).partition("\x1b[?25h")
    frames = [SEQUENCE.sub("", frame) for frame in drawn.split("\r")]

    assert code == 0
    assert len(frames) > 2
    assert all("\n" not in frame.rstrip("\n") and len(frame.rstrip("\n")) <= 40 for frame in frames)
    assert {parts + kind for parts, kind in SEQUENCE.findall(drawn) if kind != "m"} <= {"?25l", "2K"}
    told = SEQUENCE.sub("", summary).partition("written: ")[0].splitlines()
    assert max(map(len, told)) <= 40
    # As blocks or, where the values of this run happen to be short, as tables below one another.
    assert len([line for line in told if re.search(r"(eager-rmsnorm|^ *(64|128):) .*[µu]s", line)]) >= 2


def test_a_backend_of_a_notebook_and_no_display_do_not_matter_to_pictures(run: Path, tmp_path: Path) -> None:
    done = piped({"MPLBACKEND": INLINE}, "report", run, "--pictures", "1", "--out", tmp_path / "new", "--quiet")

    assert (done.returncode, done.stderr) == (0, b"")
    assert len(list((tmp_path / "new" / "plots").iterdir())) == 2


@pytest.mark.parametrize("closed", ["0<&-", "2>&-", ">&-", "0<&- >&- 2>&-", "2>/dev/full"])
def test_streams_that_are_closed_or_full_are_no_reason_to_fail(run: Path, usual: str, closed: str) -> None:
    done = in_shell(f'"$@" {closed}', *report(run))

    assert done.returncode == 0
    assert done.stderr == b""
    assert done.stdout.decode() == ("" if ">&-" in closed.replace("2>&-", "") else usual)


@pytest.mark.parametrize("command", [["--help"], ["--version"], ["report"], ["report", "--json"]])
def test_results_that_cannot_be_written_are_an_error_that_says_why(run: Path, command: list[str]) -> None:
    more = [str(run), "--pictures", "0"] if "report" in command else []
    done = in_shell('"$@" >/dev/full', *command, *more)

    assert done.returncode == 3
    assert done.stderr.decode() == (
        "error: stdout can't be written: No space left on device\n"
        "hint: nothing is lost: see the run folder, if there is one\n"
    )


def test_an_error_that_nobody_can_read_has_its_exit_code_all_the_same(tmp_path: Path) -> None:
    assert in_shell('"$@" 2>/dev/full', "report", tmp_path / "nowhere").returncode == 3
    assert in_shell('"$@" 2>&-', "report").returncode == 2


def test_a_sweep_whose_progress_nobody_reads_any_more_is_complete(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = ("sweep", *TINY, *PLAIN, "--widths", "64", "128", "--out", str(tmp_path / "run"))
    with os.fdopen(writing, "wb") as gone:
        done = piped({}, *words, stderr=gone, encoding="utf-8")

    assert done.returncode == 0
    assert "eager-rmsnorm" in done.stdout
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["report", "\x1b[31mx\u202e"], r"error: \x1b[31mx\u202e/run.json: can't be read: "),
        (["\x1b[31mx"], r"\x1b[31mx"),
        (["report", "--\x1b[31mx"], r"--\x1b[31mx"),
        (["sweep", "--impls", "\x1b[31mx"], r"\x1b[31mx"),
        (["report", os.fsdecode(b"a\xffb")], r"a\udcffb/run.json"),
    ],
)
def test_a_message_about_hostile_words_shows_them_and_obeys_nothing(words: list[str], said: str) -> None:
    done = piped({}, *words)

    assert said in done.stderr.decode("utf-8")
    assert not re.search(r"[^\n -~\u00a1-\uffff]|\u202e", done.stderr.decode("utf-8"))


def test_a_command_of_the_terminal_in_a_fault_of_ours_is_shown() -> None:
    command = [sys.executable, "-c", FAULT]
    done = subprocess.run(command, env=environment({}), capture_output=True, check=False, timeout=60)

    assert done.returncode == 3
    assert b"\nRuntimeError: \\x1b[31mred\nerror: this is a fault of normbench\n" in done.stderr
    assert b"\x1b" not in done.stderr
