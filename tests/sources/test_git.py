"""Real git in real repositories: revisions however they are written, and repositories however they are kept."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from normbench.errors import UsageError
from normbench.implementations import Located
from normbench.records import Brought
from normbench.sources.git import GitError, repository_of
from normbench.sources.locating import located
from tests.repositories import FAST, FILE, SLOW, Repository

HOOK = "#!/bin/sh\ntouch {folder}/hooked\nexit 1\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def repository(here: Path) -> Repository:
    """Two commits, the second of them checked out."""
    made = Repository(here / "repo")
    made.commit(FAST, message="first")
    made.commit(SLOW)
    return made


def asked(repository: Repository | Path, revision: str | None, name: str = "base", file: str = FILE) -> Brought:
    folder = repository if isinstance(repository, Path) else repository.folder
    return Brought(name=name, target=f"{os.path.relpath(folder / file)}:rmsnorm", revision=revision)


def texts(*asked: Brought) -> list[str]:
    """What stands in each file that is found."""
    with located(asked) as found:
        return [path_of(one).read_text(encoding="utf-8") for one in found]


def path_of(found: Located) -> Path:
    assert found.root
    return Path(found.root, *found.module.split(".")).with_suffix(".py")


def refused(*asked: Brought) -> UsageError:
    with pytest.raises(UsageError) as error, located(asked):
        pass
    return error.value


# --- revisions


def test_a_revision_gives_the_file_as_it_was_and_none_as_it_lies(repository: Repository) -> None:
    repository.write("# edited\n" + SLOW)

    assert texts(asked(repository, "HEAD~1"), asked(repository, "HEAD"), asked(repository, None)) == [
        *(FAST, SLOW),
        "# edited\n" + SLOW,
    ]


@pytest.mark.parametrize(
    "revision",
    [
        *("HEAD~1", "HEAD^", "@~1", "main~1", "v1.0", "refs/tags/v1.0", "annotated", "feature/a/b", "@{upstream}"),
        *("main@{upstream}", "@{1}", ":/first", "HEAD^{/first}", "origin/base"),
    ],
)
def test_a_revision_is_whatever_git_takes_for_one(repository: Repository, revision: str) -> None:
    first = repository.git("rev-parse", "HEAD~1")
    repository.git("tag", "v1.0", first)
    repository.git("tag", "--annotate", "--message", "x", "annotated", first)
    repository.git("branch", "feature/a/b", first)
    repository.git("update-ref", "refs/remotes/origin/base", first)
    repository.git("config", "remote.origin.url", ".")
    repository.git("config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    repository.git("config", "branch.main.remote", "origin")
    repository.git("config", "branch.main.merge", "refs/heads/base")
    assert texts(asked(repository, revision)) == [FAST]


def test_an_abbreviated_commit_is_found_and_recorded_whole(repository: Repository) -> None:
    first = repository.git("rev-parse", "HEAD~1")

    with located([asked(repository, first[:9])]) as [found]:
        assert found.info.source
        assert found.info.source.commit == first
        assert not found.info.source.has_changes


def test_an_unknown_revision_is_named_with_what_git_says(repository: Repository) -> None:
    error = refused(asked(repository, "nowhere"))

    assert error.message.startswith("@nowhere: the git repository of that file has no such revision: ")
    assert error.hint
    assert "git fetch" in error.hint
    assert "shallow" not in error.hint


def test_an_ambiguous_abbreviation_is_said_to_be_one(repository: Repository) -> None:
    seen: set[str] = set()
    while len(seen) == len({commit[:4] for commit in seen}):
        seen.add(repository.git("commit-tree", "HEAD^{tree}", "-m", str(len(seen))))
    [twice] = {four for four in (commit[:4] for commit in seen) if sum(c.startswith(four) for c in seen) > 1}

    assert "stands for several commits there" in refused(asked(repository, twice)).message


@pytest.mark.parametrize("revision", ["HEAD:kernels", "HEAD^{tree}"])
def test_what_is_no_commit_is_refused(repository: Repository, revision: str) -> None:
    assert "no such revision" in refused(asked(repository, revision)).message


def test_in_a_shallow_clone_the_hint_says_that_it_is_one(repository: Repository, here: Path) -> None:
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{repository.folder}", "shallow"], check=True)

    assert texts(asked(here / "shallow", "HEAD")) == [SLOW]
    hint = refused(asked(here / "shallow", "HEAD~1")).hint
    assert hint
    assert "shallow" in hint
    assert "fetch-depth: 0" in hint


# --- files


def test_a_file_that_a_revision_lacks_is_named_with_the_commit(repository: Repository) -> None:
    first = repository.git("rev-parse", "HEAD~1")
    repository.commit(FAST, "kernels/new_norm.py")

    error = refused(asked(repository, "HEAD~2", file="kernels/new_norm.py"))

    assert error.message.endswith(f"there is no file repo/kernels/new_norm.py at HEAD~2 (commit {first[:10]})")
    assert error.hint
    assert "name a revision that has it" in error.hint


def test_a_renamed_file_is_found_by_what_the_hint_says(repository: Repository) -> None:
    (repository.folder / "ops").mkdir()
    repository.git("mv", FILE, "ops/fused_rms.py")
    repository.commit_all()

    error = refused(asked(repository, "HEAD~1", file="ops/fused_rms.py"))

    assert error.hint == f"it has been renamed since: base=repo/{FILE}:rmsnorm@HEAD~1"
    assert texts(asked(repository, "HEAD~1")) == [SLOW]


def test_a_file_of_the_same_name_elsewhere_is_named(repository: Repository) -> None:
    repository.git("rm", "--quiet", FILE)
    repository.commit(FAST.replace("three", "3"), "norms/rms.py")
    repository.write("x = 1\n" * 50)

    assert refused(asked(repository, "HEAD")).hint == "base=repo/norms/rms.py:rmsnorm@HEAD"


def test_paths_may_hold_blanks_letters_of_any_kind_and_what_git_takes_for_patterns(here: Path) -> None:
    made = Repository(here / "a repo, ü")
    file = "some [k]ernels/ein rms*.py"
    made.commit(FAST, file)
    made.commit(SLOW, file)

    assert texts(asked(made, "HEAD~1", file=file), asked(made, None, file=file)) == [FAST, SLOW]
    with located([asked(made, None, file=file)]) as [found]:
        assert found.info.source
        assert not found.info.source.has_changes


def test_from_a_folder_within_the_repository_paths_are_as_anywhere(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository.folder / "kernels")

    found = Brought(name="base", target="rms.py:rmsnorm", revision="HEAD~1")

    assert texts(found, Brought(name="head", target="../kernels/rms.py:rmsnorm")) == [FAST, SLOW]
    with located([found]) as [one]:
        assert one.info.source
        assert one.info.source.file == FILE


def test_a_git_lfs_pointer_is_no_code(repository: Repository) -> None:
    repository.commit("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "kernels/big_rms.py")

    error = refused(asked(repository, "HEAD", file="kernels/big_rms.py"))

    assert "only its pointer is here" in error.message
    assert error.hint == "git lfs install, then git lfs pull"


def test_a_repository_with_a_submodule_is_checked_out_without_it(repository: Repository, here: Path) -> None:
    other = Repository(here / "other")
    other.commit(SLOW)
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", f"file://{other.folder}", "sub")
    repository.git("config", "submodule.recurse", "true")
    repository.commit_all()

    assert texts(asked(repository, "HEAD"), asked(repository, "HEAD", file=f"sub/{FILE}")) == [SLOW, SLOW]


def test_of_a_sparse_checkout_every_file_of_a_revision_is_there(repository: Repository) -> None:
    repository.git("sparse-checkout", "set", "docs")

    assert not (repository.folder / FILE).exists()
    assert texts(asked(repository, "HEAD~1")) == [FAST]


def test_a_file_is_written_as_a_checkout_would_with_its_line_ends_and_filters(repository: Repository) -> None:
    repository.commit("*.py filter=shout\n", ".gitattributes")
    repository.git("config", "filter.shout.smudge", "sed s/three/THREE/")
    repository.commit(FAST + "# more\n")

    [text] = texts(asked(repository, "HEAD"))

    assert "THREE" in text


# --- repositories


@pytest.mark.parametrize("hook", ["post-checkout", "post-index-change", "reference-transaction", "fsmonitor"])
def test_no_hook_of_the_repository_runs(repository: Repository, hook: str, here: Path) -> None:
    path = repository.folder / ".git" / "hooks" / hook
    path.parent.mkdir(exist_ok=True)
    path.write_text(HOOK.format(folder=here), encoding="utf-8")
    path.chmod(0o755)
    if hook == "fsmonitor":
        repository.git("config", "core.fsmonitor", str(path))

    assert texts(asked(repository, "HEAD~1"), asked(repository, None)) == [FAST, SLOW]
    assert not (here / "hooked").exists()


def test_inside_a_hook_its_variables_lead_nowhere_else(
    repository: Repository, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repository(here / "other")
    other.commit("")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.folder))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.folder / ".git" / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other.folder / ".git" / "objects"))

    with located([asked(repository, "HEAD~1"), asked(repository, None, "head")]) as [base, head]:
        assert path_of(base).read_text(encoding="utf-8") == FAST
        assert head.info.source
        assert not head.info.source.has_changes


def test_a_linked_worktree_is_a_repository_like_any_other(repository: Repository, here: Path) -> None:
    repository.git("worktree", "add", "--quiet", "--detach", here / "linked", "HEAD~1")

    assert texts(asked(here / "linked", "main"), asked(here / "linked", None)) == [SLOW, FAST]


def test_of_a_bare_repository_files_are_named_from_its_root(repository: Repository, here: Path) -> None:
    subprocess.run(["git", "clone", "--quiet", "--bare", repository.folder, "bare.git"], check=True)

    assert texts(asked(here / "bare.git", "main~1")) == [FAST]
    assert "there is no file" in refused(asked(here / "bare.git", None)).message


def test_a_repository_before_its_first_commit_says_of_a_file_that_it_is_not_committed(here: Path) -> None:
    made = Repository(here / "repo")
    made.write(FAST)

    with located([asked(made, None)]) as [found]:
        assert found.info.source
        assert (found.info.source.commit, found.info.source.has_changes) == (None, True)


@pytest.mark.parametrize(
    ("changed", "has_changes"),
    [((), False), ((FILE,), True), (("other.py",), True), (("untracked.py",), False)],
)
def test_a_change_is_one_of_the_file_or_of_what_it_may_import(
    repository: Repository, changed: Sequence[str], has_changes: bool
) -> None:
    repository.commit("x = 1\n", "other.py")
    for name in changed:
        repository.write("x = 2\n" + FAST, name)

    with located([asked(repository, None)]) as [found]:
        assert found.info.source
        assert found.info.source.has_changes is has_changes


def test_a_file_that_is_not_tracked_has_changes(repository: Repository) -> None:
    repository.write(FAST, "kernels/new_rms.py")

    with located([asked(repository, None, file="kernels/new_rms.py")]) as [found]:
        assert found.info.source
        assert found.info.source.has_changes


def test_a_name_that_is_also_a_pattern_stands_for_itself(repository: Repository) -> None:
    repository.commit(FAST, "kernels/rms1.py")
    repository.write(FAST, "kernels/rms[1].py")

    with located([asked(repository, None, file="kernels/rms[1].py")]) as [found]:
        assert found.info.source
        assert found.info.source.has_changes


def test_the_index_is_not_even_brought_up_to_date(repository: Repository) -> None:
    os.utime(repository.folder / FILE, (1, 1))
    index = repository.folder / ".git" / "index"
    before = index.read_bytes(), index.stat().st_mtime_ns

    with located([asked(repository, None), asked(repository, "HEAD", "head")]) as [found, _]:
        assert found.info.source
        assert not found.info.source.has_changes

    assert (index.read_bytes(), index.stat().st_mtime_ns) == before


def test_nothing_is_written_into_the_repository(repository: Repository) -> None:
    repository.write("# edited\n" + SLOW)
    repository.git("stash")
    repository.write("# edited again\n" + SLOW)
    repository.write("staged = True\n", "staged.py")
    repository.git("add", "staged.py")
    before = repository.state

    with located([asked(repository, "HEAD~1"), asked(repository, None, "head")]):
        assert repository.state == before
    assert repository.state == before


# --- no git, no repository, no trust


def test_without_git_a_file_is_measured_as_it_lies_and_no_revision_of_it(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    monkeypatch.setenv("PATH", str(here))

    assert texts(asked(repository, None)) == [SLOW]
    assert "git can't be run: No such file or directory" in refused(asked(repository, "HEAD")).message


def test_outside_a_repository_a_revision_is_refused_with_what_git_says(here: Path) -> None:
    (here / "rms.py").write_text(FAST, encoding="utf-8")

    error = refused(Brought(name="base", target="rms.py:rmsnorm", revision="main"))

    assert "is in no git repository that can be used: not a git repository" in error.message
    assert "\n" not in error.message


def test_where_git_does_not_trust_the_owner_the_error_says_what_git_said(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    error = refused(asked(repository, "HEAD~1"))

    assert "dubious ownership" in error.message
    assert "git config --global --add safe.directory" in error.message
    assert texts(asked(repository, None)) == [SLOW]


def test_trust_that_comes_by_the_environment_is_heeded(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    for name, value in {"COUNT": "1", "KEY_0": "safe.directory", "VALUE_0": "*"}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)

    assert texts(asked(repository, "HEAD~1")) == [FAST]


def test_a_broken_repository_says_of_no_file_that_it_is_unchanged(repository: Repository) -> None:
    tree = repository.git("rev-parse", "HEAD^{tree}")
    (repository.folder / ".git" / "objects" / tree[:2] / tree[2:]).unlink()

    assert repository_of(repository.folder / FILE).has_changes(repository.folder / FILE)


def test_a_commit_that_is_not_all_there_is_an_error_with_what_git_says(repository: Repository) -> None:
    blob = repository.git("rev-parse", f"HEAD~1:{FILE}")
    (repository.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()

    error = refused(asked(repository, "HEAD~1"))

    assert "git can't check it out" in error.message
    assert blob in error.message


def test_a_folder_in_no_repository_has_none(here: Path) -> None:
    with pytest.raises(GitError, match="not a git repository"):
        repository_of(here / "rms.py")
