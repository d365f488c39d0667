from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from normbench import optional
from normbench.optional import OPTIONAL, Package
from normbench.records import DeviceInfo
from tests import stand_ins
from tests.fakes import turing

MINE = Package(
    module="mine_kernels",
    distribution="mine-kernels",
    install="pip install mine-kernels",
    holds="norms",
    kernels="Mine",
    capability=(8, 0),
)
CPU = DeviceInfo(kind="cpu", name="Some CPU", slug="some-cpu", memory_bytes=2**33)
A100 = DeviceInfo(kind="cuda", name="NVIDIA A100", slug="a100", memory_bytes=2**36, capability=(8, 0))

Make = Callable[..., None]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Make:
    """Puts files on the path, whose folders are optional."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def made(**contents: str) -> None:
        for name, text in contents.items():
            path = tmp_path / name.replace("__", "/") / "__init__.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    return made


def test_what_is_installed_is_found_without_being_imported(make: Make) -> None:
    assert not MINE.is_installed
    make(mine_kernels="raise RuntimeError('imported')", mine_kernels__norms="")

    assert MINE.is_installed
    assert "mine_kernels" not in sys.modules


def test_another_package_of_the_same_module_s_name_is_not_taken_for_it(make: Make) -> None:
    make(mine_kernels="")

    assert not MINE.is_installed
    assert MINE.absent(A100) == "mine-kernels is not installed: pip install mine-kernels"


@pytest.mark.parametrize("odd", [None, object()])
def test_what_is_no_module_at_all_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch, odd: object) -> None:
    monkeypatch.setitem(sys.modules, "mine_kernels", odd)

    assert not MINE.is_installed


def test_it_is_absent_for_every_reason_there_is_and_here_where_there_is_none(make: Make) -> None:
    missing = "mine-kernels is not installed: pip install mine-kernels"
    old = "Mine kernels need compute capability 8.0, Tesla T4 has 7.5"
    assert MINE.absent(CPU) == f"Mine kernels need a GPU; {missing}"
    assert MINE.absent(turing().info) == f"{old}; {missing}"
    make(mine_kernels__norms="", mine_kernels="")

    assert MINE.absent(CPU) == "Mine kernels need a GPU"
    assert MINE.absent(turing().info) == old
    assert MINE.absent(A100) is None


def test_versions_are_those_of_what_is_there_and_of_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed = {"numpy": "2.4", "apex": "0.9.10", "quack-kernels": "0.6.5", "apache-tvm-ffi": "0.1.9"}

    def version(name: str) -> str:
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(metadata, "version", version)
    stand_ins.uninstall_all(monkeypatch)
    assert optional.versions() == (("apache-tvm-ffi", "0.1.9"), ("numpy", "2.4"))
    monkeypatch.undo()
    monkeypatch.setattr(metadata, "version", version)
    stand_ins.install(monkeypatch, tmp_path, optional.QUACK)

    assert ("quack-kernels", "0.6.5") in optional.versions()
    assert "apex" not in dict(optional.versions()), "pip's apex is another package"


def test_the_extras_are_what_the_packages_are_called() -> None:
    import tomllib

    text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]

    for name, package in (
        ("liger", optional.LIGER),
        ("quack", optional.QUACK),
        ("flashinfer", optional.FLASHINFER),
    ):
        (needed,) = extras[name]
        assert needed.startswith(f"{package.distribution}>=")
        assert package.install == f"pip install {package.distribution}"
    assert any(needed.startswith(optional.LIGER.distribution) for needed in extras["dev"])


@pytest.mark.parametrize("module", ["normbench.optional", "normbench.implementations", "normbench.cli"])
def test_knowing_them_imports_neither_them_nor_torch(module: str) -> None:
    code = f"import sys, {module}; print({{'torch', 'triton', *{[p.module for p in OPTIONAL]}}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"
