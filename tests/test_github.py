"""What runs on GitHub: the files' rules, the action's scripts with a fake normbench, comments with a fake ``gh``."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import TINY
from tests.repositories import FAST, FILE, WRONG, Repository

yaml = pytest.importorskip("yaml", reason="PyYAML reads the workflows")

ROOT = Path(__file__).resolve().parent.parent
GITHUB = ROOT / ".github"
ACTION = GITHUB / "actions" / "normbench" / "action.yml"
BENCH = GITHUB / "workflows" / "bench.yml"
SCRIPT = GITHUB / "scripts" / "comment.py"
FILES = sorted([*GITHUB.glob("workflows/*.yml"), *GITHUB.glob("actions/*/action.yml")])
NASTY = "$(touch owned) `touch owned` \"quoted\" 'single' ; touch owned & | \\ ${{ x }} é\n"


def parsed(path: Path) -> dict[str, Any]:
    # Every scalar stays a string: YAML 1.1 would read the key "on" as true.
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


def steps(path: Path) -> list[dict[str, Any]]:
    content = parsed(path)
    jobs = [content["runs"]] if "runs" in content else content["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


# --- the rules of the files


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_action_from_elsewhere_is_pinned_by_hash_with_its_version(path: Path) -> None:
    uses = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))

    assert [used for used in uses if not re.match(r"\./|[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", used)] == []


def test_an_action_has_one_hash_everywhere() -> None:
    pins = {pin for path in FILES for pin in re.findall(r"uses: ([\w/-]+@\w+)", path.read_text(encoding="utf-8"))}

    assert len({pin.partition("@")[0] for pin in pins}) == len(pins)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_script_holds_an_expression(path: Path) -> None:
    assert [step["run"] for step in steps(path) if "${{" in step.get("run", "")] == []


def test_only_the_job_that_comments_may_write() -> None:
    for path in GITHUB.glob("workflows/*.yml"):
        assert parsed(path)["permissions"] == {}
        for name, job in parsed(path)["jobs"].items():
            comments = {"pull-requests": "write"} if name == "comment" else {}
            assert job["permissions"] == {"contents": "read", **comments}


def test_a_fork_neither_comments_nor_chooses_the_runner() -> None:
    jobs = parsed(BENCH)["jobs"]
    own = "github.event.pull_request.head.repo.full_name == github.repository"

    assert "pull_request_target" not in parsed(BENCH)["on"]
    assert own in jobs["comment"]["if"]
    assert f"{own} && vars.BENCHMARK_RUNNER || 'ubuntu-latest'" in jobs["sweep"]["runs-on"]


def test_the_comment_takes_the_verdict_from_the_artifact_that_the_action_leaves() -> None:
    [download] = [step for step in steps(BENCH) if "download-artifact" in step.get("uses", "")]

    assert download["with"]["name"] == parsed(ACTION)["inputs"]["artifact"]["default"]


def test_ci_runs_every_section_of_the_script() -> None:
    sections = re.search(r"^sections=\((.*)\)$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    runs = [step["run"] for step in steps(GITHUB / "workflows" / "ci.yml") if "run" in step]

    assert sections
    assert sorted(" ".join(runs).replace(".ci/run ", "").split()) == sorted(sections[1].split())


def test_ci_tests_every_python_that_the_package_names() -> None:
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    assert parsed(GITHUB / "workflows" / "ci.yml")["jobs"]["tests"]["strategy"]["matrix"]["python"] == named


def test_the_script_refuses_a_section_that_is_not_there() -> None:
    result = subprocess.run(["bash", ROOT / ".ci" / "run", "lint", "nonsense"], capture_output=True, text=True)

    assert result.returncode == 2
    assert "no section nonsense" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("path", sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem)
def test_issue_forms_have_what_github_asks_of_them(path: Path) -> None:
    form = parsed(path)
    if path.name == "config.yml":
        assert set(form) <= {"blank_issues_enabled", "contact_links"}
        return

    assert {"name", "description", "body"} <= set(form)
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields) > 0
    assert all(field["attributes"]["label"] for field in fields)


def test_the_readme_uses_the_action_with_inputs_that_it_has() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"uses: OWNER/normbench/(\S+)@HASH.*\n\s+with:\n((?:\s+\S+: .*\n)+)", readme)

    assert shown
    assert ROOT / shown[1] / "action.yml" == ACTION
    assert set(yaml.safe_load(shown[2])) <= set(parsed(ACTION)["inputs"])


# --- the composite action

FAKE_NORMBENCH = """#!/usr/bin/env python3
import json, os, signal, sys, time
from pathlib import Path

if sys.argv[1] == "report":
    Path(sys.argv[2], "verdict.md").write_text("rendered\\n")
    sys.exit()
out = Path(sys.argv[sys.argv.index("--out") + 1])
out.mkdir()
(out / "arguments.json").write_text(json.dumps(sys.argv[1:]))

def end(*_):
    time.sleep(0.3)
    (out / "verdict.md").write_text("partial\\n")
    sys.exit(130)

signal.signal(signal.SIGTERM, end)
if "wait" in sys.argv:
    (out / "started").touch()
    time.sleep(30)
if verdict := os.environ.get("FAKE_VERDICT"):
    (out / "verdict.md").write_text(verdict)
sys.exit(int(os.environ.get("FAKE_EXIT_CODE", "0")))
"""


class Action:
    """Runs the action's own scripts as GitHub does, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.summary = folder / "summary.md"
        self.summary.touch()
        self.scripts = {step["name"]: step["run"] for step in steps(ACTION) if "run" in step}
        program = folder / "venv" / "bin" / "normbench"
        program.parent.mkdir(parents=True)
        program.write_text(FAKE_NORMBENCH, encoding="utf-8")
        program.chmod(0o755)

    def start(self, name: str, **env: str) -> subprocess.Popen[bytes]:
        script = self.folder / "step.sh"
        script.write_text(self.scripts[name], encoding="utf-8")
        files = {"GITHUB_OUTPUT": str(self.folder / "output"), "GITHUB_STEP_SUMMARY": str(self.summary)}
        return subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=self.folder,
            env={**os.environ, **files, "VENV": str(self.folder / "venv"), "OUT": "run folder", **env},
        )

    def run(self, name: str, **env: str) -> int:
        return self.start(name, **env).wait(timeout=20)

    @property
    def outputs(self) -> dict[str, str]:
        lines = (self.folder / "output").read_text(encoding="utf-8").splitlines()
        return {name: value for name, _, value in (line.partition("=") for line in lines)}


@pytest.fixture
def action(tmp_path: Path) -> Action:
    return Action(tmp_path)


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_of_the_sweep_is_kept_until_summary_and_upload_are_done(action: Action, code: int) -> None:
    assert action.run("Sweep", ARGS="--quick", FAKE_EXIT_CODE=str(code), FAKE_VERDICT="use it\n") == 0
    assert action.run("Job summary", EXIT_CODE=action.outputs["exit-code"]) == 0

    assert action.run("Pass the sweep's exit code on", EXIT_CODE=action.outputs["exit-code"]) == code
    assert action.summary.read_text(encoding="utf-8") == "use it\n"
    assert action.outputs["verdict"] == "run folder/verdict.md"


def test_summary_and_upload_come_even_after_a_failure_and_before_the_exit_code() -> None:
    conditions = [(step.get("name"), step.get("if", "")) for step in steps(ACTION)][-3:]

    assert [name for name, _ in conditions] == ["Job summary", "Keep the run folder", "Pass the sweep's exit code on"]
    assert all(condition.startswith("always()") for _, condition in conditions[:2])


def test_a_sweep_without_a_verdict_is_said_in_the_summary(action: Action) -> None:
    action.run("Sweep", ARGS="", FAKE_EXIT_CODE="2")

    assert action.run("Job summary", EXIT_CODE=action.outputs["exit-code"]) == 0

    assert "no verdict (exit code 2)" in action.summary.read_text(encoding="utf-8")
    assert "verdict" not in action.outputs


def test_the_verdict_of_a_sweep_that_was_killed_is_rendered_from_its_folder(action: Action) -> None:
    folder = action.folder / "run folder"
    folder.mkdir()
    (folder / "run.json").touch()

    assert action.run("Job summary", EXIT_CODE="") == 0

    assert action.summary.read_text(encoding="utf-8") == "rendered\n"
    assert action.outputs["verdict"] == "run folder/verdict.md"


def test_arguments_are_split_at_white_space_and_never_run_or_expanded(action: Action) -> None:
    (action.folder / "a file").touch()

    words = [
        "--widths",
        "256",
        "*",
        "$(touch",
        "owned)",
        "`touch",
        "owned`",
        ";",
        "touch",
        "owned",
        "$HOME",
        "'a",
        "b'",
    ]

    action.run("Sweep", ARGS="\n  ".join([" ".join(words[:5]), " ".join(words[5:])]))

    arguments = json.loads((action.folder / "run folder" / "arguments.json").read_text(encoding="utf-8"))
    assert arguments == ["sweep", *words, "--out", "run folder"]
    assert not (action.folder / "owned").exists()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_cancelled_job_ends_the_sweep_and_waits_for_what_it_writes(action: Action, sent: signal.Signals) -> None:
    process = action.start("Sweep", ARGS="wait")
    deadline = time.monotonic() + 10
    while not (action.folder / "run folder" / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.02)

    process.send_signal(sent)

    assert process.wait(timeout=10) == 0
    assert action.outputs["exit-code"] == "130"
    assert (action.folder / "run folder" / "verdict.md").exists()


# --- base against head in the action


@pytest.fixture
def repository(action: Action) -> Repository:
    """The checkout of a pull request: a branch of two commits, while the base branch has gone on."""
    made = Repository(action.folder)
    made.git("config", "core.excludesFile", made.write("*\n!kernels\n!kernels/*\n", "exclude"))
    made.commit(FAST)
    made.git("checkout", "--quiet", "-b", "change")
    made.commit(FAST + "# on its way\n")
    made.commit(WRONG)
    made.git("checkout", "--quiet", "main")
    made.commit(FAST + "# others went on\n")
    made.git("checkout", "--quiet", "change")
    return made


def find_base(action: Action, base: str = "", asked: str = "", impl: str = f"{FILE}:rmsnorm", **env: str) -> int:
    return action.run("Find base", IMPL=impl, BASE=asked or base, ASKED=asked, **env)


def test_base_is_where_a_pull_request_left_the_base_branch(action: Action, repository: Repository) -> None:
    assert find_base(action, base=repository.git("rev-parse", "main")) == 0

    assert action.outputs == {"commit": repository.git("rev-parse", "change~2"), "has-file": "true"}


def test_a_base_that_is_asked_for_is_taken_as_it_is(action: Action, repository: Repository) -> None:
    assert find_base(action, asked="main") == 0

    assert action.outputs["commit"] == repository.git("rev-parse", "main")


def test_a_base_that_a_shallow_checkout_lacks_is_fetched(
    action: Action, repository: Repository, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Action(tmp_path_factory.mktemp("shallow"))
    checkout = other.folder / "checkout"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{action.folder}", checkout], check=True)
    other.folder, before = checkout, repository.git("rev-parse", "main")

    assert find_base(other, base=before) == 0

    assert other.outputs == {"commit": before, "has-file": "true"}
    assert find_base(other, asked="nowhere") != 0


def test_without_a_pull_request_a_base_has_to_be_named(
    action: Action, repository: Repository, capfd: pytest.CaptureFixture[str]
) -> None:
    assert repository.folder == action.folder
    assert find_base(action) == 2

    assert "::error::normbench: impl is measured against base: name a git revision" in capfd.readouterr().out


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    "base", ["$(touch owned)", "`touch owned`", "--upload-pack=touch owned", "a:b", "; touch owned"]
)
def test_a_base_that_is_none_is_neither_run_nor_fetched(
    action: Action, base: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert find_base(action, asked=base) == 2

    assert "its name is none that can be fetched" in capfd.readouterr().out
    assert not (action.folder / "owned").exists()


def test_code_that_base_lacks_is_measured_alone_and_the_summary_says_so(
    action: Action, repository: Repository
) -> None:
    repository.commit(FAST, "kernels/new_rms.py")

    assert find_base(action, asked="main", impl="kernels/new_rms.py:rmsnorm") == 0
    action.run("Sweep", ARGS="", IMPL="kernels/new_rms.py:rmsnorm", BASE="x", HAS_BASE="", FAIL_ON="slower:5%")

    assert "has-file" not in action.outputs
    assert "lacks the file of impl" in action.summary.read_text(encoding="utf-8")
    arguments = json.loads((action.folder / "run folder" / "arguments.json").read_text(encoding="utf-8"))
    assert arguments == ["sweep", "--impls", "head=kernels/new_rms.py:rmsnorm", "--out", "run folder"]


def test_base_and_head_are_measured_in_one_run_and_nothing_of_them_is_expanded(action: Action) -> None:
    impl = "a kernel/$(touch owned)*.py:rmsnorm"

    action.run("Sweep", ARGS="--quick", IMPL=impl, BASE="1a2b3c", HAS_BASE="true", FAIL_ON="slower:5% ; touch owned")

    arguments = json.loads((action.folder / "run folder" / "arguments.json").read_text(encoding="utf-8"))
    pair = ["--impls", f"base={impl}@1a2b3c", "--impls", f"head={impl}"]
    assert arguments == ["sweep", "--quick", *pair, "--fail-on=slower:5% ; touch owned", "--out", "run folder"]
    assert not (action.folder / "owned").exists()


def test_a_pull_request_that_breaks_its_norm_fails_with_a_verdict_of_base_and_head(
    action: Action, repository: Repository
) -> None:
    program = action.folder / "venv" / "bin" / "normbench"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m normbench "$@"\n', encoding="utf-8")
    impl, tiny = f"{FILE}:rmsnorm", " ".join(word for word in TINY if word)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    find_base(action, base=repository.git("rev-parse", "main"))
    found = action.outputs

    words = {"ARGS": f"{tiny} --widths 64", "IMPL": impl, "FAIL_ON": "slower:90%", "PYTHONPATH": path}
    process = action.start("Sweep", **words, BASE=found["commit"], HAS_BASE=found["has-file"])
    assert process.wait(timeout=120) == 0
    assert action.run("Job summary", EXIT_CODE=action.outputs["exit-code"]) == 0

    assert action.outputs["exit-code"] == "1"
    summary = action.summary.read_text(encoding="utf-8")
    assert "Gate: failed: head ended with a fault in 1 case in which base has a time" in summary
    base, head = found["commit"][:10], repository.git("rev-parse", "HEAD")[:10]
    assert f"base is kernels/rms.py:4 at commit {base}; head is kernels/rms.py:4 at commit {head}" in summary


def test_the_workflow_hands_over_what_the_action_takes_and_checks_out_every_commit() -> None:
    [used] = [step for step in steps(BENCH) if step.get("id") == "normbench"]
    [checkout] = [step for step in parsed(BENCH)["jobs"]["sweep"]["steps"] if "checkout" in step.get("uses", "")]

    assert set(used["with"]) <= set(parsed(ACTION)["inputs"])
    assert {"impl", "base", "fail-on"} <= set(used["with"])
    assert checkout["with"]["fetch-depth"] == "0"


# --- the comment

FAKE_GH = """#!/usr/bin/env python3
import json, os, sys
from pathlib import Path

state = Path(os.environ["FAKE_GH"])
comments = json.loads(state.read_text())
arguments = sys.argv[1:]
assert arguments.pop(0) == "api"
method = arguments[arguments.index("--method") + 1] if "--method" in arguments else "GET"
path = next(argument for argument in arguments if argument.startswith("repos/"))
if method == "GET":
    assert path == "repos/o/r/issues/7/comments?per_page=100" and {"--paginate", "--slurp"} <= set(arguments)
    print(json.dumps([comments[:2], comments[2:]]))
    sys.exit()
body = json.load(sys.stdin)["body"]
if len(body) > 65536:
    sys.exit("HTTP 422: Body is too long (maximum is 65536 characters)")
if method == "POST":
    assert path == "repos/o/r/issues/7/comments"
    comments.append({"id": 100 + len(comments), "user": {"login": "github-actions[bot]"}, "body": body})
else:
    assert method == "PATCH"
    [comment] = [c for c in comments if path == f"repos/o/r/issues/comments/{c['id']}"]
    comment["body"] = body
state.write_text(json.dumps(comments))
"""


class PullRequest:
    """A pull request as a fake ``gh`` keeps it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "comments.json"
        program = folder / "bin" / "gh"
        program.parent.mkdir()
        program.write_text(FAKE_GH, encoding="utf-8")
        program.chmod(0o755)
        self.comments = []

    @property
    def comments(self) -> list[dict[str, Any]]:
        return json.loads(self.state.read_text(encoding="utf-8"))

    @comments.setter
    def comments(self, comments: list[dict[str, Any]]) -> None:
        self.state.write_text(json.dumps(comments), encoding="utf-8")

    def report(self, verdict: str, **env: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "verdict.md").write_text(verdict, encoding="utf-8")
        environment = {
            "FAKE_GH": str(self.state),
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_RUN_ID": "42",
            "PULL_REQUEST": "7",
            "COMMIT": "0123456789abcdef",
        }
        return subprocess.run(
            [sys.executable, SCRIPT, "verdict.md"],
            cwd=self.folder,
            env={**os.environ, **environment, **env},
            capture_output=True,
            text=True,
            timeout=20,
        )


@pytest.fixture
def pull_request(tmp_path: Path) -> PullRequest:
    return PullRequest(tmp_path)


def body_of(verdict: str) -> str:
    spec = importlib.util.spec_from_file_location("comment", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.body_of(verdict, "0123456789abcdef", "https://github.example/o/r/actions/runs/42"))


def comment(number: int, login: str, body: str) -> dict[str, Any]:
    return {"id": number, "user": {"login": login}, "body": body}


def test_the_first_report_is_posted_and_the_second_replaces_it(pull_request: PullRequest) -> None:
    assert pull_request.report("use nn-layernorm\n").returncode == 0
    assert pull_request.report("use compile-rmsnorm\n").returncode == 0

    [only] = pull_request.comments
    assert "use compile-rmsnorm" in only["body"]
    assert "nn-layernorm" not in only["body"]


def test_comments_of_others_are_left_alone_even_with_the_marker(pull_request: PullRequest) -> None:
    others = [
        comment(1, "someone", "<!-- normbench-report -->\nmine"),
        comment(2, "github-actions[bot]", "another workflow's, which quotes <!-- normbench-report -->"),
        comment(3, "someone-else", "hello"),
    ]
    pull_request.comments = others

    pull_request.report("first")
    pull_request.report("second")

    assert pull_request.comments[:3] == others
    assert len(pull_request.comments) == 4
    assert "second" in pull_request.comments[3]["body"]


def test_a_report_on_a_later_page_of_comments_is_found(pull_request: PullRequest) -> None:
    pull_request.comments = [comment(number, "someone", "hello") for number in range(4)]

    pull_request.report("first")
    pull_request.report("second")

    assert len(pull_request.comments) == 5


def test_a_verdict_is_sent_as_it_is(pull_request: PullRequest) -> None:
    pull_request.report(NASTY)

    assert NASTY.strip() in pull_request.comments[0]["body"]
    assert not (pull_request.folder / "owned").exists()


def test_the_recommendation_is_open_and_the_tables_are_folded() -> None:
    head, _, folded = body_of("use it\n\n## Times\n\n| a |\n").partition("<details>")

    assert head.startswith("<!-- normbench-report -->\n")
    assert "0123456789ab" in head
    assert "https://github.example/o/r/actions/runs/42" in head
    assert "use it" in head
    assert "## Times\n\n| a |" in folded
    assert folded.rstrip().endswith("</details>")


@pytest.mark.parametrize("verdict", ["une idée\n" * 8_000, "use it\n\n## Times\n" + "| a row |\n" * 8_000])
def test_a_long_verdict_is_cut_to_what_github_takes_and_says_so(pull_request: PullRequest, verdict: str) -> None:
    assert pull_request.report(verdict).returncode == 0

    [posted] = pull_request.comments
    assert 65_500 < len(posted["body"]) <= 65_536
    assert "Cut to fit" in posted["body"].partition("\n\n")[2][:20]
    assert posted["body"].count("<details>") == posted["body"].count("</details>")


def test_a_verdict_that_just_fits_is_whole() -> None:
    room = 65_536 - len(body_of("x")) + 1

    assert len(body_of("x" * room)) == 65_536
    assert "Cut" not in body_of("x" * room)
    assert "Cut" in body_of("x" * (room + 1))


def test_an_error_of_gh_fails_the_job_with_what_it_said(pull_request: PullRequest) -> None:
    (pull_request.folder / "bin" / "gh").write_text("#!/bin/sh\necho 'HTTP 403: no' >&2\nexit 1\n", encoding="utf-8")

    result = pull_request.report("use it")

    assert result.returncode == 1
    assert "HTTP 403: no" in result.stderr
    assert "Traceback" not in result.stderr
