"""Entry points of packages that are installed for these tests: folders with metadata on Python's path."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from normbench.implementations import ALL, PACKAGED, catalog, packages, without_place
from normbench.implementations.packages import GROUP, file_of, installed
from normbench.records import Op, Source
from tests.cli.command import normbench

Install = Callable[..., Path]

NORMS = """
import torch


def rms(x, weight, eps):
    \"\"\"A package's RMSNorm.\"\"\"
    return torch.nn.functional.rms_norm(x, weight.shape, weight, eps)


@torch.compile
class Layer(torch.nn.LayerNorm):
    pass
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a package and its entry points on Python's path, that of other processes too."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", f"{site}:{Path.cwd()}")

    def put(points: Mapping[str, str], name: str = "kernels_of_a_test", source: str = NORMS) -> Path:
        (site / name).mkdir()
        (site / name / "__init__.py").touch()
        (site / name / "norms.py").write_text(source)
        info = site / f"{name}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        lines = [f"{key} = {value}" for key, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))
        packages._found.cache_clear()
        return site / name / "norms.py"

    yield put
    packages._found.cache_clear()
    for name in [name for name in sys.modules if name.startswith("kernels_of_")]:
        del sys.modules[name]


def left_out() -> dict[str, str]:
    return {one.name: one.why for one in without_place()}


def test_an_entry_point_brings_an_implementation_whose_code_is_not_imported(install: Install) -> None:
    install({"mine-rmsnorm": "kernels_of_a_test.norms:rms", "mine-layernorm": "kernels_of_a_test.norms:Layer"})
    rms, layer = installed()

    assert (rms.info.op, rms.info.provider, rms.info.summary) == (Op.RMSNORM, "mine", "A package's RMSNorm")
    assert rms.info.source == Source(file="kernels_of_a_test.norms", line=5, package="kernels_of_a_test 1.2")
    assert (layer.info.op, layer.info.compiled) == (Op.LAYERNORM, True)
    assert [one.name for one in catalog().implementations] == [
        *(one.name for one in (*ALL, *PACKAGED)),
        "mine-rmsnorm",
        "mine-layernorm",
    ]
    assert "kernels_of_a_test" not in sys.modules


def test_who_brings_nothing_is_said_with_why(install: Install) -> None:
    install(
        {
            "fine-rmsnorm": "kernels_of_a_test.norms:rms [extra]",
            "fast": "kernels_of_a_test.norms:rms",
            "add-x": "kernels_of_a_test.norms:rms",
            "two words-rmsnorm": "kernels_of_a_test.norms:rms",
            "whole-rmsnorm": "kernels_of_a_test.norms",
            "odd-rmsnorm": "not a module!",
            "gone-rmsnorm": "no_such_package.norms:rms",
            "nn-rmsnorm": "kernels_of_a_test.norms:rms",
        }
    )

    assert [one.name for one in catalog().implementations][len(ALL) + len(PACKAGED) :] == ["fine-rmsnorm"]
    assert left_out() == {
        "fast": "its name has to end in -layernorm or -rmsnorm",
        "add-x": "its name has to end in -layernorm or -rmsnorm",
        "two words-rmsnorm": "a name has letters, digits, and inside . _ -, up to 64",
        "whole-rmsnorm": "'kernels_of_a_test.norms' is not package.module:attribute",
        "odd-rmsnorm": "'not a module!' is not package.module:attribute",
        "gone-rmsnorm": "there is no module no_such_package.norms",
        "nn-rmsnorm": "there is an implementation of that name",
    }
    assert any(str(one).startswith("fast of kernels_of_a_test 1.2 is left out: its") for one in without_place())


def test_of_two_packages_with_one_name_the_first_brings_it(install: Install) -> None:
    for name in ("kernels_of_a_test", "kernels_of_another"):
        install({"mine-rmsnorm": f"{name}.norms:rms"}, name=name)
    first, second = (
        point.dist.name for point in entry_points(group=GROUP) if point.dist and point.name == "mine-rmsnorm"
    )
    (one,) = installed()

    assert one.info.source is not None
    assert one.info.source.package == f"{first} 1.2"
    assert [str(other) for other in without_place()] == [
        f"mine-rmsnorm of {second} 1.2 is left out: another package has one of that name"
    ]


def test_the_list_shows_where_they_are_from_and_notes_those_left_out(install: Install) -> None:
    install({"mine-rmsnorm": "kernels_of_a_test.norms:rms", "fast": "kernels_of_a_test.norms:rms"})
    done = normbench("list", "--device", "cpu", "--json")
    rows = {row["name"]: row for row in json.loads(done.out)}

    assert (done.code, done.err) == (
        0,
        "fast of kernels_of_a_test 1.2 is left out: its name has to end in -layernorm or -rmsnorm\n",
    )
    assert rows["mine-rmsnorm"]["source"] == "kernels_of_a_test.norms:5 of kernels_of_a_test 1.2"
    assert rows["mine-rmsnorm"]["available"] == "yes"
    assert rows["nn-rmsnorm"]["source"] == ""
    assert "kernels_of_a_test.norms:5 of kernels_of_a_test 1.2" in normbench("list", "--device", "cpu").out


def test_a_sweep_measures_them_in_workers_and_one_that_can_t_be_imported_costs_itself(
    install: Install, tmp_path: Path
) -> None:
    install(
        {
            "mine-rmsnorm": "kernels_of_a_test.norms:rms",
            "lost-rmsnorm": "kernels_of_a_test.lost:rms",
            "none-rmsnorm": "kernels_of_a_test.norms:none",
        }
    )
    names = ("mine-rmsnorm", "lost-rmsnorm", "none-rmsnorm")
    tiny = ("--widths", "32", "--rows", "4", "--dtype", "fp32", "--modes", "forward", "--device", "cpu")
    least = ("--placements", "5", "--processes", "1", "--max-seconds", "0.05", "--share-device", "--quiet")
    done = normbench("sweep", *tiny, *least, "--impls", *names, "--out", tmp_path / "run", "--json")
    rows = {row["implementation"]: row for row in json.loads(done.out)["results"]}

    assert done.code == 0, done.err
    assert {name: rows[name]["status"] for name in names} == dict(zip(names, ("ok", "failed", "failed"), strict=True))
    assert "No module named 'kernels_of_a_test.lost'" in rows["lost-rmsnorm"]["reason"]
    assert rows["none-rmsnorm"]["reason"] == "AttributeError: kernels_of_a_test.norms has no none"


@pytest.mark.parametrize(
    ("module", "end"),
    [
        ("json.decoder", "json/decoder.py"),
        ("json", "json/__init__.py"),
        ("random", "random.py"),
        ("xml.etree.ElementTree", "xml/etree/ElementTree.py"),
    ],
)
def test_a_module_s_file_is_found(module: str, end: str) -> None:
    assert str(file_of(module)).endswith(end)


@pytest.mark.parametrize(
    "module",
    [
        "no_such_module",
        "no_such_module.x",
        "json.no_such",
        "random.json",
        "sys",
        "",
        ".json",
        "__main__.x",
        "json..x",
    ],
)
def test_what_is_no_module_has_no_file(module: str) -> None:
    assert file_of(module) is None


def test_nothing_is_imported_for_it() -> None:
    code = (
        "import sys\nfrom normbench.implementations.packages import file_of, installed\n"
        "installed()\nprint(file_of('xml.dom.minidom') is not None, 'xml' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["True", "False", "False"]
