"""Nothing that is read is run: the package has no way from a file's bytes to code or to a shell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import normbench

ROOT = Path(normbench.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml", "jsonpickle"}
"""They make objects, or run code, as the data says."""

RUNS_CODE = {"implementations/folders.py": ["compile"]}
"""Imports the code that a user names to be measured: running it is what was asked for."""

BARE = {"eval", "exec", "compile", "__import__"}
DOTTED = {"os.system", "os.popen", "torch.load"}
LAST = {"read_pickle", "to_pickle"}
WORDS = {"shell", "allow_pickle"}


def forbidden(source: str) -> Iterator[str]:
    """What a module does that could run data."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in MODULES:
            yield node.module or ""
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called == "torch.load" and _reads_tensors_alone(node):
                continue
            if called in BARE | DOTTED or called.rpartition(".")[2] in LAST:
                yield called
            yield from (f"{called} with {word.arg}" for word in node.keywords if word.arg in WORDS)


def _reads_tensors_alone(call: ast.Call) -> bool:
    """Whether it is asked for tensors, numbers and texts, which torch reads without making any object."""
    asked = [word.value for word in call.keywords if word.arg == "weights_only"]
    return [isinstance(value, ast.Constant) and value.value is True for value in asked] == [True]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_makes_code_of_data(path: Path) -> None:
    allowed = RUNS_CODE.get(path.relative_to(ROOT).as_posix(), [])
    assert list(forbidden(path.read_text(encoding="utf-8"))) == allowed


@pytest.mark.parametrize(
    "source",
    [
        *("import pickle", "from yaml import load", "eval(x)", "exec(x)", "compile(x, '', 'exec')", "torch.load(x)"),
        *("torch.load(x, weights_only=False)", "torch.load(x, weights_only=how)"),
        *(
            "os.system(x)",
            "run(x, shell=True)",
            "np.load(x, allow_pickle=True)",
            "pd.read_pickle(x)",
            "__import__(x)",
        ),
    ],
)
def test_each_way_from_data_to_code_is_seen(source: str) -> None:
    assert len(list(forbidden(source))) == 1


def test_compiling_a_pattern_or_a_function_is_none() -> None:
    assert list(forbidden("re.compile(x); torch.compile(f); torch.load(x, weights_only=True)")) == []
