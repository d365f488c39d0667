from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import normbench

ROOT = Path(normbench.__file__).parent

# A module imports only from rows above its own, and from modules to its left in its row. A package counts as one.
LAYERS = {
    "words": ("errors", "requirements", "units", "legible", "records"),
    "arithmetic": (
        *("stats", "spread", "traffic", "verdict", "swaps", "crossover", "bounds"),
        *(
            "changes",
            "gate",
            "run_gate",
            "attribution",
            "advice",
            "merging",
            "walkthrough",
            "grades",
            "prediction",
            "quality",
        ),
    ),
    "torch": (
        *("nvml", "optional", "native", "device", "inputs", "expected", "reference", "compilation", "torch_state"),
        *("implementations", "decoder"),
    ),
    "measuring": (
        *("clock", "other_load", "turns", "interruption", "modes", "correctness", "calls", "inspection", "private"),
        *("failures", "endings", "limits", "watch", "rounds", "measure", "instruments", "observer", "entrants"),
        *(
            "places",
            "audit",
            "properties",
            "profiling",
            "bench",
            "local_bench",
            "conclusion",
            "ahead",
            "answering",
            "workers",
        ),
        *("cells", "sweeping", "checking", "steps", "training", "doctor"),
    ),
    "outside": ("locks", "storage", "reporters", "sources"),
    "front": ("cli", "api", "gpu_acceptance", "__main__"),
}
ORDER = [module for row in LAYERS.values() for module in row]
WITHOUT_TORCH = (*LAYERS["words"], *LAYERS["arithmetic"], *LAYERS["outside"])

FILES = sorted(ROOT.rglob("*.py"))
MODULES = sorted({path.relative_to(ROOT).parts[0].removesuffix(".py") for path in FILES} - {"__init__"})


def files_of(module: str) -> list[Path]:
    return [path for path in FILES if path.relative_to(ROOT).parts[0].removesuffix(".py") == module]


def imported(path: Path) -> Iterator[str]:
    """Dotted names that a file imports anywhere, those inside functions and for the type checker included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            names = (alias.name for alias in node.names)
            yield from (f"{node.module}.{name}" for name in names)


def own_modules(path: Path) -> set[str]:
    """The modules of normbench that a file imports; ``from normbench import __version__`` is none."""
    dotted = (name.split(".") for name in imported(path))
    return {parts[1] for parts in dotted if parts[0] == "normbench" and len(parts) > 1} & set(MODULES)


def test_every_module_has_its_place_in_the_table() -> None:
    assert [module for module in MODULES if module not in ORDER] == []


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_above_or_from_its_left(module: str) -> None:
    allowed = {*ORDER[: ORDER.index(module)], module}
    used = set().union(*(own_modules(path) for path in files_of(module)))

    assert used - allowed == set()


def test_the_package_itself_imports_nothing_and_tells_the_type_checker_what_it_offers() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]

    assert [ast.unparse(node) for node in found] == ["from typing import TYPE_CHECKING, Any"]
    offered = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert offered - {"TYPE_CHECKING", "Any", "import_module"} == set(normbench.__all__)


@pytest.mark.parametrize("module", [m for m in WITHOUT_TORCH if m in MODULES])
def test_words_arithmetic_storage_and_reporters_never_mention_torch(module: str) -> None:
    names = {name.partition(".")[0] for path in files_of(module) for name in imported(path)}

    assert "torch" not in names


@pytest.mark.parametrize("module", LAYERS["words"])
def test_words_import_nothing_but_the_standard_library(module: str) -> None:
    names = {name.partition(".")[0] for path in files_of(module) for name in imported(path)}

    assert names - {"normbench"} <= sys.stdlib_module_names


def run_without_torch(code: str) -> subprocess.CompletedProcess[str]:
    blocked = f"import sys\nsys.modules['torch'] = None\n{code}"
    return subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)


def test_reports_can_be_made_on_a_machine_without_torch() -> None:
    modules = [".".join(path.relative_to(ROOT.parent).with_suffix("").parts) for path in FILES]
    reporting = [m for m in modules if m.split(".")[1] in WITHOUT_TORCH and not m.endswith("__init__")]
    done = run_without_torch("\n".join(f"import {module}" for module in reporting))

    assert "normbench.stats" in reporting
    assert done.returncode == 0, done.stderr


def test_a_module_that_does_need_torch_fails_where_there_is_none() -> None:
    assert "ModuleNotFoundError" in run_without_torch("import normbench.inputs").stderr


def test_the_names_of_the_implementations_are_known_without_importing_torch() -> None:
    code = "import sys, normbench.implementations as i\nprint(len(i.NAMES), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["14", "False"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_in_its_first_line_why_it_exists(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(source))

    assert docstring
    assert source.startswith('"""')
