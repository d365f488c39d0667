from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from normbench.errors import UsageError
from normbench.implementations import Located
from normbench.records import Brought, Op
from normbench.sources.locating import located


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which is in no repository."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    return here


def write(path: Path, text: str = "def rms(x, weight): 'A norm.'\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def at(target: str, name: str = "mine-rmsnorm", revision: str | None = None) -> Located:
    with located([Brought(name=name, target=target, revision=revision)]) as (one,):
        return one


def refused(target: str, name: str = "mine-rmsnorm", revision: str | None = None) -> tuple[str, str]:
    with pytest.raises(UsageError) as caught:
        at(target, name, revision)
    return caught.value.message, caught.value.hint or ""


def source(one: Located) -> tuple[str, int | None]:
    assert one.info.source is not None
    return one.info.source.file, one.info.source.line


def test_a_file_is_imported_from_its_folder_and_said_by_its_name(folder: Path) -> None:
    file = write(folder / "kernels" / "norms.py", "\n\nclass rms:\n    '''Mine.'''\n")
    one = at("kernels/norms.py:rms")

    assert (one.module, one.root, one.attribute) == ("norms", str(folder / "kernels"), "rms")
    assert source(one) == ("norms.py", 3)
    assert (one.info.name, one.info.provider, one.info.op, one.info.summary) == (
        "mine-rmsnorm",
        "mine",
        Op.RMSNORM,
        "Mine",
    )
    assert one.info.source is not None
    assert one.info.source.digest == hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_file_of_a_package_is_imported_from_where_the_package_lies(folder: Path) -> None:
    for name in ("pkg/__init__.py", "pkg/deep/__init__.py", "pkg/deep/norms.py"):
        write(folder / "src" / name)

    assert (at("src/pkg/deep/norms.py:rms").module, at("src/pkg/deep/norms.py:rms").root) == (
        "pkg.deep.norms",
        str(folder / "src"),
    )
    assert (at("src/pkg/__init__.py:rms").module, at("src/pkg/__init__.py:rms").root) == ("pkg", str(folder / "src"))


def test_a_module_of_the_current_folder_goes_before_one_that_is_installed(folder: Path) -> None:
    write(folder / "kernels" / "norms.py")
    write(folder / "torch" / "nn.py", "RMSNorm = 1\n")

    assert (at("kernels.norms:rms").module, at("kernels.norms:rms").root) == ("kernels.norms", str(folder))
    assert at("torch.nn:RMSNorm").root == str(folder)


def test_a_module_of_an_installed_package_is_found_without_importing_it() -> None:
    code = (
        "import sys\nfrom normbench.records import Brought\nfrom normbench.sources.locating import located\n"
        "with located([Brought(name='x-rmsnorm', target='torch.nn.modules.normalization:RMSNorm')]) as (one,):\n"
        "    print(one.root, one.info.source, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    root, place, of, package, _version, imported = done.stdout.split()

    assert (root, of, package, imported) == ("None", "of", "torch", "False")
    assert place.startswith("torch.nn.modules.normalization:")


def test_a_file_of_an_installed_package_is_imported_as_what_it_is_of() -> None:
    spec = importlib.util.find_spec("torch.nn.modules.normalization")
    assert spec is not None
    one = at(f"{spec.origin}:RMSNorm")

    assert (one.root, one.module) == (None, "torch.nn.modules.normalization")


def test_an_installed_module_without_a_python_file_is_taken_as_it_is() -> None:
    one = at("torch._C:rms_norm")

    assert (one.root, source(one), one.info.summary) == (None, ("torch._C", None), "torch._C:rms_norm")


@pytest.mark.parametrize(
    ("target", "message", "hint"),
    [
        ("none.py:rms", "mine-rmsnorm=none.py:rms: there is no file none.py", "a path from this folder"),
        ("folder.py:rms", "there is no file folder.py", ""),
        ("norms.py:rsm", "norms.py has no 'rsm'", "did you mean rms? it has: rms, other"),
        ("norms.py:zzz.f", "norms.py has no 'zzz'", "it has: rms, other"),
        ("empty.py:rms", "empty.py has no 'rms'", "it has: nothing"),
        ("no.such.module:rms", "there is no module no.such.module", "pip install its package here, or name its file"),
        ("json.no_such:rms", "there is no module json.no_such", ""),
        ("random.norms:rms", "there is no module random.norms", ""),
        ("json:dmups", "json has no 'dmups'", "did you mean dumps?"),
        ("v1.2.py:rms", "a name with a dot can't be imported: v1.2.py", "rename or copy it"),
        (f"{'x' * 300}.py:rms", "can't be read: File name too long", ""),
        ("norms.py/x.py:rms", "there is no file norms.py/x.py", ""),
    ],
)
def test_what_is_not_there_is_named_with_what_is(folder: Path, target: str, message: str, hint: str) -> None:
    write(folder / "norms.py", "def rms(): pass\nother = 1\n__all__ = []\n")
    write(folder / "empty.py", "# nothing yet\n")
    write(folder / "v1.2.py")
    (folder / "folder.py").mkdir()
    said = refused(target)

    assert said[0].startswith("--impls: ")
    assert message in said[0]
    assert hint in said[1]


def test_only_the_first_names_of_a_long_file_are_said(folder: Path) -> None:
    write(folder / "norms.py", "".join(f"def f{n}(): pass\n" for n in range(1000)))

    assert refused("norms.py:rms")[1].count(",") == 19


@pytest.mark.parametrize("text", ["from torch.nn import *\n", "def rms(:\n", "globals()['rms'] = 1\n"])
def test_a_file_that_may_have_it_all_the_same_is_taken(folder: Path, text: str) -> None:
    write(folder / "norms.py", text)

    assert source(at("norms.py:rms")) == ("norms.py", None)


def test_a_module_of_a_package_may_stand_where_its_init_says_nothing(folder: Path) -> None:
    write(folder / "pkg" / "__init__.py", "")
    write(folder / "pkg" / "norms.py")

    assert at("pkg:norms.rms").module == "pkg"
    assert "has no 'other'" in refused("pkg:other.rms")[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
@pytest.mark.parametrize("what", ["norms.py", "."])
def test_a_file_that_may_not_be_read_is_named(folder: Path, what: str) -> None:
    write(folder / "below" / "norms.py")
    (folder / "below" / what).chmod(0)
    said = refused("below/norms.py:rms")
    (folder / "below" / what).chmod(0o700)

    assert "can't be read: Permission denied" in said[0]


def test_a_link_to_a_file_is_taken_as_what_lies_there(folder: Path) -> None:
    real = write(folder.parent / "elsewhere" / "real_norms.py")
    (folder / "norms.py").symlink_to(real)
    one = at("norms.py:rms")

    assert (one.module, one.root, source(one)) == ("norms", str(folder), ("norms.py", 1))


def test_a_link_to_nowhere_or_in_a_circle_is_no_file(folder: Path) -> None:
    (folder / "nowhere.py").symlink_to("none.py")
    (folder / "circle.py").symlink_to("circle.py")

    assert "there is no file nowhere.py" in refused("nowhere.py:rms")[0]
    assert "circle.py" in refused("circle.py:rms")[0]


def test_the_formula_is_what_the_first_of_name_attribute_and_file_says(folder: Path) -> None:
    write(folder / "rms.py", "def layer_norm(): pass\ndef f(): pass\n")
    write(folder / "norms.py", "def f(): pass\n")

    assert at("rms.py:f", "mine").info.op is Op.RMSNORM
    assert at("rms.py:layer_norm", "mine").info.op is Op.LAYERNORM
    assert at("rms.py:layer_norm", "mine-rmsnorm").info.op is Op.RMSNORM
    assert refused("norms.py:f", "mine") == (
        "--impls: mine=norms.py:f: does f compute LayerNorm or RMSNorm? No name in it says so",
        "end its name in its formula: NAME-rmsnorm=norms.py:f",
    )


def test_what_compiles_says_so(folder: Path) -> None:
    write(folder / "norms.py", "import torch\n@torch.compile\ndef rms(x): pass\ndef other(): pass\n")

    assert at("norms.py:rms").info.compiled
    assert not at("norms.py:other").info.compiled


def test_no_path_of_the_machine_is_in_what_is_written_down(folder: Path) -> None:
    outside = write(folder.parent / "private" / "norms.py", "def rms(x): pass\n")
    one = at(f"{outside}:rms")

    assert "private" not in repr(one.info)
    assert one.info.summary == "norms.py:rms"
    assert source(one) == ("norms.py", 1)


@pytest.fixture
def repository(folder: Path) -> Path:
    """A git repository below the current folder, with a commit."""
    root = folder / "repo"
    write(root / "kernels" / "norms.py")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        identity = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *words], cwd=root, check=True)
    return root


@pytest.mark.parametrize("target", ["repo/kernels/norms.py:rms", "kernels.norms:rms"])
def test_of_a_file_in_a_repository_path_commit_and_line_are_known_also_where_it_is_named_as_a_module(
    repository: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    if "/" not in target:
        monkeypatch.chdir(repository)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, text=True, check=True)
    found = at(target).info.source

    assert found is not None
    assert (found.file, found.line, found.commit, found.has_changes) == (
        "kernels/norms.py",
        1,
        head.stdout.strip(),
        False,
    )
    write(repository / "kernels" / "norms.py", "\ndef rms(): pass\n")
    changed = at(target).info.source
    assert changed is not None
    assert (changed.line, changed.has_changes) == (2, True)
