"""Users' code imported into this process: from files and packages, alone and beside another revision of itself."""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from normbench.failures import describe
from normbench.implementations import Located, folders, loading
from normbench.implementations.loading import load
from normbench.implementations.naming import PREFIX
from normbench.records import ImplementationInfo, Op


@pytest.fixture(autouse=True)
def nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process in which nobody has brought anything, and which is afterwards as it was."""
    monkeypatch.setattr(folders, "_folders", {})
    monkeypatch.setattr(loading, "_errors", {})
    monkeypatch.setattr(loading, "_registered", {})
    monkeypatch.setattr(loading, "_replaced", set())
    modules, paths = dict(sys.modules), list(sys.path)
    yield
    sys.path[:] = paths
    for name in set(sys.modules) - set(modules):
        if name.startswith(PREFIX) or getattr(sys.modules[name], "__name__", "").startswith(PREFIX):
            del sys.modules[name]


def write(folder: Path, **files: str) -> Path:
    """A folder with these files: two underscores in a name are a slash, ``init`` is ``__init__``."""
    for name, source in files.items():
        parts = ["__init__" if part == "init" else part for part in name.split("__")]
        path = folder.joinpath(*parts[:-1], f"{parts[-1]}.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source), encoding="utf-8")
    return folder


def at(folder: Path | None, module: str = "norms", attribute: str = "rms") -> Located:
    info = ImplementationInfo(name="mine-rmsnorm", op=Op.RMSNORM, provider="mine", summary="mine")
    return Located(info=info, attribute=attribute, module=module, root=None if folder is None else str(folder))


def said(folder: Path | None, module: str = "norms", attribute: str = "rms") -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it raises is asked for
        load(at(folder, module, attribute))
    return describe(caught.value)


def plain_names() -> set[str]:
    return {name for name in sys.modules if not name.startswith(PREFIX)}


def test_a_file_is_imported_once_with_what_lies_beside_it_and_leaves_nothing_there(tmp_path: Path) -> None:
    write(
        tmp_path,
        norms="import util\nimport util as other\nfrom util import value\nfrom util import *\nruns = []\n"
        "runs.append(1)\ndef rms(): return util.value, other.value, value, also\ndef twice(): return runs\n",
        util="value = 3\nalso = 4\n",
    )
    paths, names = list(sys.path), plain_names()

    assert load(at(tmp_path))() == (3, 3, 3, 4)
    assert load(at(tmp_path, attribute="twice"))() == [1]
    assert load(at(tmp_path)) is load(at(tmp_path))
    assert sys.path == paths
    assert plain_names() == names
    assert sorted(path.name for path in tmp_path.iterdir()) == ["norms.py", "util.py"]


def test_a_package_is_imported_with_its_relative_and_absolute_imports(tmp_path: Path) -> None:
    write(
        tmp_path,
        pkg__init="from pkg.core import name\nimport pkg.core\nimport pkg.deep.below as d\nwhole = pkg.core.name\n",
        pkg__core="from . import extra\nfrom .deep import below\nname = extra.name + below.name\n",
        pkg__extra="from pkg import core\nname = 'extra'\n",
        pkg__deep__init="from ..extra import name\n",
        pkg__deep__below="from .. import extra\nfrom . import name as up\nname = 'below' + up\n",
        pkg__norms="import pkg\nfrom .core import name\ndef rms(): return name, pkg.whole, pkg.d.name, __package__\n",
    )

    assert load(at(tmp_path, "pkg.norms"))()[:3] == ("extrabelowextra", "extrabelowextra", "belowextra")
    assert load(at(tmp_path, "pkg", "whole")) == "extrabelowextra"


def test_folders_without_init_are_imported_from_too(tmp_path: Path) -> None:
    write(
        tmp_path, kernels__fast="name = 'fast'\n", norms="import kernels.fast\ndef rms(): return kernels.fast.name\n"
    )

    assert load(at(tmp_path))() == "fast"
    assert load(at(tmp_path, "kernels.fast", "name")) == "fast"


def test_a_folder_without_init_is_not_taken_for_a_package_that_is_installed(tmp_path: Path) -> None:
    write(tmp_path, rich__notes="x = 1\n", norms="import rich\nrms = rich.__file__\n")

    assert not Path(load(at(tmp_path))).is_relative_to(tmp_path)


def test_but_a_package_of_its_own_goes_before_one_that_is_installed_for_it_alone(tmp_path: Path) -> None:
    import rich

    write(tmp_path, rich="mine = 1\n", norms="import rich\nrms = rich.mine\n")

    assert load(at(tmp_path)) == 1
    assert sys.modules["rich"] is rich


@pytest.mark.parametrize("name", ["random", "types", "torch", "numpy", "normbench", "calendar"])
def test_the_standard_library_and_torch_go_before_the_folder(tmp_path: Path, name: str) -> None:
    write(tmp_path, norms=f"import {name}\nrms = {name}\n", **{name: "raise SystemExit('the wrong one')\n"})

    assert load(at(tmp_path)) is importlib.import_module(name)


def test_a_file_may_itself_be_called_like_that(tmp_path: Path) -> None:
    write(tmp_path, random="import random as other\nrms = other.random\n", torch="import torch\nrms = torch.nn\n")

    assert load(at(tmp_path, "random")) is sys.modules["random"].random
    assert load(at(tmp_path, "torch")) is torch.nn


def test_a_virtual_environment_in_the_folder_is_not_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = write(tmp_path / "venv" / "lib" / "site-packages", installed_one="name = 'installed'\n")
    write(tmp_path, norms="import installed_one\nrms = installed_one\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, "installed_one", raising=False)

    assert load(at(tmp_path)) is sys.modules["installed_one"]
    assert load(at(tmp_path)).__name__ == "installed_one"


REVISIONS = {
    "norms": """
        import util, pkg.core, space.inner
        import torch
        from pkg import name

        def rms():
            return util.name, pkg.core.name, space.inner.name, name

        def lazily():
            import util as again
            import pkg.late
            from space import inner
            return again.name, pkg.late.name, inner.name

        @torch.compile(backend="eager", fullgraph=True)
        def compiled(x):
            import util as again
            from pkg import scaled
            return scaled(x) * again.factor + util.scaled(x)

        def by_a_string():
            from importlib import import_module
            return import_module("util").name, import_module("pkg.late").name, import_module("space.inner").name
    """,
    "util": "name = {name!r}\nfactor = {factor}\ndef scaled(x): return x * factor\n",
    "pkg__init": "from .core import name, scaled\n",
    "pkg__core": "from util import name, scaled\n",
    "pkg__late": "from pkg.core import name\n",
    "space__inner": "import util\nname = util.name\n",
}


def revision(folder: Path, name: str, factor: int) -> Path:
    of_its_own = {"util": REVISIONS["util"].format(name=name, factor=factor)}
    return write(folder, **(REVISIONS | of_its_own))


def test_of_two_revisions_each_imports_its_own_also_late_and_while_torch_compile_traces(tmp_path: Path) -> None:
    old, new = revision(tmp_path / "old", "old", 2), revision(tmp_path / "new", "new", 10)
    found = {
        folder.name: {name: load(at(folder, attribute=name)) for name in ("rms", "lazily", "compiled")}
        for folder in (old, new)
    }
    torch._dynamo.reset()
    x = torch.ones(2)

    for name, factor in (("old", 2), ("new", 10)):
        assert found[name]["rms"]() == (name,) * 4
        assert found[name]["lazily"]() == (name,) * 3
        assert found[name]["compiled"](x).tolist() == [factor * factor + factor] * 2


def test_what_is_imported_by_a_string_is_found_while_one_folder_has_it_and_refused_when_two_have(
    tmp_path: Path,
) -> None:
    old, new = revision(tmp_path / "old", "old", 2), revision(tmp_path / "new", "new", 10)
    first = load(at(old, attribute="by_a_string"))

    assert first() == ("old", "old", "old")
    second = load(at(new, attribute="by_a_string"))
    for function in (first, second):
        with pytest.raises(ImportError, match="util is in several of the folders compared"):
            function()


def test_a_package_that_looks_for_an_optional_one_does_not_find_a_user_s_file(tmp_path: Path) -> None:
    write(tmp_path, norms="import optional_one\nrms = optional_one\n", optional_one="")
    load(at(tmp_path))

    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("optional_one")


def test_what_is_loaded_already_from_elsewhere_is_neither_used_nor_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = write(tmp_path / "site", developed__init="", developed__util="name = 'installed'\n")
    monkeypatch.syspath_prepend(str(installed))
    theirs = importlib.import_module("developed.util")
    source = (
        "from developed import util\ndef rms():\n    import developed.util as late\n    return util.name, late.name\n"
    )
    write(tmp_path / "tree", developed__init="", developed__util="name = 'tree'\n", developed__norms=source)

    assert load(at(tmp_path / "tree", "developed.norms"))() == ("tree", "tree")
    assert load(at(None, "developed.util", "name")) == "installed"
    assert sys.modules["developed.util"] is theirs
    for name in ("developed", "developed.util"):
        del sys.modules[name]


@pytest.mark.parametrize("how", ["sys.path.insert(0, ", "sys.path.append("])
def test_folders_that_code_puts_on_the_path_are_its_own(tmp_path: Path, how: str) -> None:
    paths, names = list(sys.path), plain_names()
    for name in ("old", "new"):
        source = f"""
            import sys
            from pathlib import Path
            {how}str(Path(__file__).parent.parent / "lib"))
            import shared_one
            from shared_two import name
            def rms(): return shared_one.name, name
        """
        write(tmp_path / name / "lib", shared_one=f"name = {name!r}\n", shared_two="from shared_one import name\n")
        write(tmp_path / name / "src", norms=source)

    old, new = (load(at(tmp_path / name / "src")) for name in ("old", "new"))

    assert (old(), new()) == (("old", "old"), ("new", "new"))
    assert sys.path == paths
    assert plain_names() - names <= {"importlib.resources"}


def test_another_current_folder_is_left_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "below", norms="import os\nos.chdir(os.path.dirname(__file__))\nrms = os.getcwd()\n")

    assert load(at(tmp_path / "below")) == str(tmp_path / "below")
    assert Path.cwd() == tmp_path


def test_an_error_is_raised_again_without_running_the_file_again(tmp_path: Path) -> None:
    write(
        tmp_path,
        norms="import os\nos.environ['NORMBENCH_RUNS'] += 'x'\nrms = other = 1\nraise OSError('no device')\n",
    )
    os.environ["NORMBENCH_RUNS"] = ""

    assert [said(tmp_path) for _ in range(3)] == ["OSError: no device"] * 3
    assert said(tmp_path, attribute="other") == "OSError: no device"
    assert os.environ.pop("NORMBENCH_RUNS") == "x"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("import pkg.missing\n", "ModuleNotFoundError: No module named 'pkg.missing'"),
        ("from util import missing\n", "ImportError: cannot import name 'missing' from 'util' ("),
        ("from . import missing\n", "ImportError: cannot import name 'missing' from 'its folder'"),
        ("from .. import missing\n", "ImportError: attempted relative import beyond top-level package"),
        ("import util\nutil.missing\n", "AttributeError: module 'util' has no attribute 'missing'"),
        ("def rms(:\n", "SyntaxError: invalid syntax (norms.py, line 1)"),
        ("def rms():\n\treturn 1\n        return 2\n", "TabError: inconsistent use of tabs"),
        ("rms = '\0'\n", "SyntaxError: source code string cannot contain null bytes"),
        ("def f(): f()\nf()\n", "RecursionError: maximum recursion depth exceeded"),
        ("1/0\n", "ZeroDivisionError: division by zero"),
        (
            "import sys\nsys.exit('bye')\n",
            "ImportError: norms ended the program while it was imported: SystemExit('bye')",
        ),
        ("import sys\nsys.exit(0)\n", "ImportError: norms ended the program while it was imported: SystemExit(0)"),
        (
            "import pytest\npytest.skip('no GPU', allow_module_level=True)\n",
            "ImportError: norms ended the program while it was imported: no GPU",
        ),
        ("raise GeneratorExit\n", "ImportError: norms ended the program while it was imported: GeneratorExit()"),
        ("other = 1\n", "AttributeError: norms has no rms"),
        ("raise BaseException\n", "ImportError: norms ended the program while it was imported: BaseException()"),
    ],
)
def test_what_goes_wrong_is_said_in_the_user_s_own_names(tmp_path: Path, source: str, text: str) -> None:
    write(tmp_path, norms=source, util="", pkg__init="")

    assert text in said(tmp_path)
    assert PREFIX not in said(tmp_path)


def test_an_interrupt_while_something_is_imported_is_one(tmp_path: Path) -> None:
    write(tmp_path, norms="raise KeyboardInterrupt\n")

    with pytest.raises(KeyboardInterrupt):
        load(at(tmp_path))


def test_who_changes_torch_for_all_at_import_is_refused_and_torch_put_back(tmp_path: Path) -> None:
    write(tmp_path, norms="import torch\ntorch.set_default_dtype(torch.float64)\nrms = 1\n")
    write(tmp_path, broken="import torch\ntorch.set_default_dtype(torch.float64)\n1/0\n")

    text = "ImportError: norms changes torch's settings for all while it is imported: default dtype float32 → float64"
    assert said(tmp_path) == said(tmp_path) == text
    assert said(tmp_path, "broken") == "ZeroDivisionError: division by zero"
    assert torch.get_default_dtype() is torch.float32


OPERATOR = """
    import torch

    @torch.library.custom_op("{name}", mutates_args=())
    def rms(x: torch.Tensor) -> torch.Tensor:
        return x * {factor}
"""


def operator(folder: Path, name: str, factor: int, file: str = "norms") -> Path:
    return write(folder, **{file: OPERATOR.format(name=f"normbench_tests::{name}", factor=factor)})


def test_an_operator_registered_by_two_folders_is_neither_s(tmp_path: Path) -> None:
    old, new = operator(tmp_path / "old", "twice", 2), operator(tmp_path / "new", "twice", 3)
    load(at(old))

    for folder in (new, old, new):
        assert "the operator normbench_tests::twice is registered twice by what is compared" in said(folder)
    other = operator(tmp_path / "other", "once", 4)
    assert load(at(other))(torch.ones(1)).item() == 4


def test_an_operator_registered_by_two_files_of_a_folder_is_neither_s(tmp_path: Path) -> None:
    operator(operator(tmp_path, "files", 2), "files", 3, "others")
    load(at(tmp_path))

    assert "registered twice" in said(tmp_path, "others")
    assert "registered twice" in said(tmp_path)


def test_an_operator_of_an_installed_package_is_not_taken_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(operator(tmp_path / "site", "installed", 2, "installed_norms")))
    tree = operator(tmp_path / "tree", "installed", 3)
    load(at(None, "installed_norms"))

    assert "registered twice" in said(tree)
    assert "registered twice" in said(None, "installed_norms")
    del sys.modules["installed_norms"]


def test_an_operator_that_two_attributes_of_a_file_use_is_registered_once(tmp_path: Path) -> None:
    operator(tmp_path, "shared", 2)
    write(tmp_path, first="from norms import rms\n", second="from norms import rms\n")

    assert load(at(tmp_path, "first")) is load(at(tmp_path, "second")) is load(at(tmp_path))


def test_what_code_prints_at_import_is_its_own_affair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, norms="print('hello')\nrms = 1\n")

    assert load(at(tmp_path)) == 1
    assert capsys.readouterr().out == "hello\n"


def test_modules_are_found_by_what_looks_for_them(tmp_path: Path) -> None:
    source = """
        import dataclasses, inspect, pickle, sys, typing

        @dataclasses.dataclass
        class Config:
            width: "int"

        def rms():
            '''Its source.'''
            assert sys.modules[__name__].rms is rms
            assert inspect.getmodule(rms).rms is rms
            assert "Its source." in inspect.getsource(rms)
            assert "class Config" in inspect.getsource(Config)
            assert typing.get_type_hints(Config) == {"width": int}
            return pickle.loads(pickle.dumps(Config(3))).width
    """
    write(tmp_path / "old", norms=source)
    write(tmp_path / "new", norms=source)

    assert [load(at(tmp_path / name))() for name in ("old", "new")] == [3, 3]


def test_dots_of_an_attribute_lead_into_classes(tmp_path: Path) -> None:
    write(tmp_path, norms="class A:\n    class B:\n        c = 3\n")

    assert load(at(tmp_path, attribute="A.B.c")) == 3
    assert said(tmp_path, attribute="A.C.c") == "AttributeError: norms has no A.C.c"


def test_several_imports_in_one_statement_and_future_ones(tmp_path: Path) -> None:
    source = "from __future__ import annotations\nimport os, util, json as j, pkg.core as c, pkg.core\n"
    write(tmp_path, norms=f"{source}rms = (os.sep, util.x, j.dumps(1), c.x, pkg.core.x)\n", util="x = 1\n")
    write(tmp_path, pkg__init="", pkg__core="x: int = 2\n")

    assert load(at(tmp_path)) == (os.sep, 1, "1", 2, 2)


def test_circular_imports_work_as_in_python(tmp_path: Path) -> None:
    write(
        tmp_path,
        norms="import other\nx = 1\ndef rms(): return other.get()\n",
        other="import norms\ndef get(): return norms.x\n",
    )

    assert load(at(tmp_path))() == 1


def test_a_module_s_own_paths_and_names_are_as_it_expects(tmp_path: Path) -> None:
    write(tmp_path, norms="rms = __file__, __name__ == '__main__'\n")
    found: Any = load(at(tmp_path))

    assert found == (str(tmp_path / "norms.py"), False)
