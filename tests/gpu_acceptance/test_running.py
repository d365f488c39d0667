from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from normbench.gpu_acceptance import running
from normbench.gpu_acceptance.running import Ending, run

PROGRAM = """
import signal, subprocess, sys, time
what, *rest = sys.argv[1:]
if what == "says":
    print("a result"); print("a message", file=sys.stderr)
elif what == "errs":
    print("error: no memory\\nhint: take less", file=sys.stderr); sys.exit(3)
elif what == "falls":
    raise RuntimeError("gone")
elif what == "waits":
    print("began", flush=True)
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        print("kept", flush=True); sys.exit(130)
elif what == "crashes":
    import os
    os.kill(os.getpid(), signal.SIGSEGV)
elif what == "leaves":
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print(child.pid, flush=True)
elif what == "names":
    print("error: /home/someone/norms/a.py: gone", file=sys.stderr); sys.exit(3)
elif what == "is deaf":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print(child.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a module that does what it is told."""
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


def ended(root: Path, what: str, most_s: float = 60.0, results: Path | None = None) -> Ending:
    return run("it", ("program", what), results=results, log=root / "log.txt", root=root, most_s=most_s)


def logged(root: Path) -> str:
    return (root / "log.txt").read_text(encoding="utf-8")


def test_a_part_that_ends_well_has_nothing_to_say(root: Path) -> None:
    found = ended(root, "says")
    assert (found.code, found.why, found.is_well, found.is_interrupted) == (0, "", True, False)
    assert found.seconds > 0


def test_the_log_has_the_command_and_all_that_was_said_of_one_part_after_the_other(root: Path) -> None:
    ended(root, "says")
    ended(root, "errs")
    said = [line for line in logged(root).splitlines() if line]
    assert said[0] == "$ python -m program says"
    assert set(said[1:3]) == {"a result", "a message"}
    assert said[3:] == ["$ python -m program errs", "error: no memory", "hint: take less"]


def test_results_go_to_their_file_and_messages_to_the_log(root: Path) -> None:
    ended(root, "says", results=root / "found.json")
    assert (root / "found.json").read_text(encoding="utf-8") == "a result\n"
    assert "a result" not in logged(root)


@pytest.mark.parametrize(
    ("what", "code", "why"), [("errs", 3, "error: no memory"), ("falls", 1, "RuntimeError: gone")]
)
def test_a_part_that_ends_badly_says_why(root: Path, what: str, code: int, why: str) -> None:
    ended(root, "says")
    found = ended(root, what)
    assert (found.code, found.why, found.is_well) == (code, why, False)


def test_a_part_whose_time_is_over_is_asked_to_end_and_keeps_what_it_has(root: Path) -> None:
    found = ended(root, "waits", most_s=2.0)
    assert (found.code, found.why) == (130, "its 2 s were over: it kept what it had")
    assert logged(root).endswith("began\nkept\n")


def test_one_that_does_not_listen_is_killed_with_all_that_it_started(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "GRACE_S", 0.3)
    found = ended(root, "is deaf", most_s=2.0)
    assert (found.code, found.why) == (
        -signal.SIGKILL,
        "its 2 s were over: killed by SIGKILL, what it had may be lost",
    )
    child = int(logged(root).split()[-1])
    for _ in range(100):
        if not is_alive(child):
            return
        time.sleep(0.05)
    raise AssertionError("the child still runs")


def test_what_a_part_leaves_running_is_ended_with_it(root: Path) -> None:
    assert ended(root, "leaves").is_well
    time.sleep(0.2)
    assert not is_alive(int(logged(root).split()[-1]))


def test_a_part_that_crashed_names_the_signal(root: Path) -> None:
    assert ended(root, "crashes").why == "killed by SIGSEGV"


def test_what_a_part_says_of_paths_is_not_published(root: Path) -> None:
    why = ended(root, "names").why
    assert why.startswith("error: ")
    assert "someone" not in why


def test_a_part_hears_an_interrupt_where_the_command_ignores_them(root: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert ended(root, "waits", most_s=2.0).code == 130
    finally:
        signal.signal(signal.SIGINT, before)


def is_alive(pid: int) -> bool:
    """A zombie, which nobody has waited for, is none."""
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return False


def test_a_ctrl_c_ends_the_part_and_is_told(root: Path) -> None:
    threading.Timer(2.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    found = ended(root, "waits")
    assert (found.code, found.why, found.is_interrupted) == (130, "interrupted: it kept what it had", True)
    assert logged(root).endswith("kept\n")


def test_the_package_is_found_where_it_lies_whatever_else_the_path_names(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("first", "second")))
    assert running._paths(root) == [str(root), "first", "second"]
