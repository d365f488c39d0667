"""Imports the code that users bring, so that two revisions of one file can lie side by side in a process.

A file is imported as Python would import it from the folder that holds it or the package it is of, with its
neighbours. Afterwards its modules are known by names of their own, and by their plain ones only as long as no other
folder brings modules of these names: then an import that comes later finds none instead of the other's.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from torch._library.custom_ops import OPDEFS

from normbench.implementations.located import Located

_PREFIX = "normbench_brought"
_BINARY = frozenset({"torch", "triton", "numpy"})
"""What can't be loaded twice into a process, whatever a folder calls its files."""


@dataclass(kw_only=True)
class _Root:
    """A folder from which code was imported: its modules, and the operators that they have registered."""

    folder: Path
    modules: dict[str, ModuleType] = field(default_factory=dict)
    operators: dict[str, object] = field(default_factory=dict)

    @property
    def tops(self) -> set[str]:
        """The first parts of its modules' names."""
        return {_top(name) for name in self.modules}

    def provides(self, top: str) -> bool:
        """Whether an import of this name would find something in the folder before anything else."""
        return (self.folder / f"{top}.py").is_file() or (self.folder / top / "__init__.py").is_file()

    def holds(self, module: ModuleType) -> bool:
        """Whether a module is the folder's own, and not one that is installed somewhere below it."""
        place = self.folder / _top(module.__name__)
        file: str | None = getattr(module, "__file__", None)
        found = [Path(each) for each in ([file] if file else getattr(module, "__path__", ()))]
        return any(each == place.with_suffix(".py") or place in (each, *each.parents) for each in found)


def _top(name: str) -> str:
    return name.partition(".")[0]


_roots: dict[str, _Root] = {}
_errors: dict[Located, Exception] = {}


def load(located: Located) -> Any:
    """What lies there; imported once a process.

    Raises:
        Exception: Whatever importing it raises; the same again at every call.
        ImportError: It ended the program, or shares an operator's name with other code that was brought.
        AttributeError: There is no such thing in it.
    """
    if located in _errors:
        raise _errors[located]
    root = None if located.root is None else _roots.setdefault(located.root, _Root(folder=Path(located.root)))
    try:
        module = _module(located, root)
    except SystemExit as end:
        _errors[located] = ImportError(f"{located.module} ended the program with {end.code!r} while it was imported")
        raise _errors[located] from end
    except Exception as error:  # a second try would meet what the first has left
        _errors[located] = error
        raise
    shared = _shared_operators(root) if root else None
    if shared is not None:
        raise ImportError(shared)
    return attrgetter(located.attribute)(module)


def _module(located: Located, root: _Root | None) -> ModuleType:
    if root is None:
        return importlib.import_module(located.module)
    if located.module not in root.modules:
        with _importing_from(root):
            importlib.import_module(located.module)
        _settle()
    return root.modules[located.module]


@contextmanager
def _importing_from(root: _Root) -> Iterator[None]:
    """A context in which the folder's modules are found first, and no others of their names are there."""
    hidden = {name: module for name, module in sys.modules.items() if _is_hidden(root, _top(name))}
    before = dict(OPDEFS)
    for name in hidden:
        del sys.modules[name]
    sys.modules.update(root.modules)
    sys.path.insert(0, str(root.folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(root.folder))
        _take(root)
        sys.modules.update(hidden)
        root.operators |= {name: made for name, made in OPDEFS.items() if before.get(name) is not made}


def _is_hidden(root: _Root, top: str) -> bool:
    return top not in sys.stdlib_module_names and top not in _BINARY and root.provides(top)


def _take(root: _Root) -> None:
    """Give every module of the folder a name of its own, under which torch.compile finds it too."""
    prefix = f"{_PREFIX}_{list(_roots).index(str(root.folder))}."
    for name, module in list(sys.modules.items()):
        is_plain = isinstance(module, ModuleType) and module.__name__.removeprefix(prefix) == name
        if is_plain and (root.modules.get(name) is module or root.holds(module)):
            del sys.modules[name]
            root.modules[name] = module
            module.__name__ = f"{prefix}{name}"
            sys.modules[module.__name__] = module


def _settle() -> None:
    """Show the modules by their plain names where only one folder has any of these, and hide the others'."""
    for root in _roots.values():
        taken = {top for other in _roots.values() if other is not root for top in other.tops}
        for name, module in root.modules.items():
            if _top(name) in taken:
                if sys.modules.get(name) is module:
                    del sys.modules[name]
            else:
                sys.modules.setdefault(name, module)
        _show_folder(str(root.folder), wanted=not root.tops & taken)


def _show_folder(folder: str, *, wanted: bool) -> None:
    if wanted and folder not in sys.path:
        sys.path.append(folder)
    elif not wanted and folder in sys.path:
        sys.path.remove(folder)


def _shared_operators(root: _Root) -> str | None:
    """Which operator other code has registered too: whoever came last answers every call, also those to the first."""
    others = {name for other in _roots.values() if other is not root for name in other.operators}
    shared = sorted(others & set(root.operators))
    if not shared:
        return None
    return (
        f"registers the operator {shared[0]}, as other code in this run does: in one process the last one registered "
        "answers for both; another name in one of them makes the two comparable"
    )
