"""Folders of code that users bring, each imported as a package of its own: two revisions of one lie side by side.

What a file imports from its own folder it gets from there, also in a function, also in one that torch.compile
traces: its import statements are compiled with the package's name before theirs. Nothing is written beside it.
"""

from __future__ import annotations

import ast
import importlib
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from normbench.implementations.naming import PREFIX

_OF_EVERYBODY = frozenset({"normbench", "numpy", "torch", "triton"})
"""What there is once in a process, whatever a folder calls its files; the standard library is too."""


@dataclass(frozen=True, kw_only=True)
class _Folder:
    """A folder that is imported from.

    Args:
        package: The name that stands before those of its modules.
        paths: The folder, and behind it those that its code has added to ``sys.path``.
    """

    package: str
    paths: list[str] = field(default_factory=list)

    def provides(self, top: str) -> bool:
        """Whether code in the folder that imports this name gets what lies there.

        The standard library goes first; as always in Python, a folder without ``__init__.py`` goes last.
        """
        if top in sys.stdlib_module_names or top in _OF_EVERYBODY:
            return False
        found = PathFinder.find_spec(top, self.paths)
        return found is not None and (found.origin is not None or not _is_elsewhere(top, self.paths))


@dataclass(frozen=True, kw_only=True)
class _Visit:
    """An import from a folder that is going on, and what ``sys.path`` was when it began."""

    folder: _Folder
    paths: tuple[str, ...]

    def adopt(self) -> None:
        """Make the folders that its code has put on ``sys.path`` the folder's; not those of packages."""
        for path in map(str, sys.path):
            if path not in self.paths and path not in self.folder.paths and not _is_installed(path):
                self.folder.paths.append(path)


_IMPORTING = ("importlib", "_frozen_importlib", __name__)
"""How the modules are called that an import runs through."""

_folders: dict[str, _Folder] = {}
_visits: list[_Visit] = []
"""The one that is going on, at the end."""


def imported(root: str, module: str) -> ModuleType:
    """The module of that dotted name in the folder ``root``; imported once a process.

    ``sys.path`` and the current folder are afterwards as they were.

    Raises:
        Exception: Whatever importing it raises.
    """
    folder = _folders.get(root) or _folders.setdefault(root, _new(root))
    name = f"{folder.package}.{module}"
    if name not in sys.modules:
        with _visited(folder):
            importlib.import_module(name)
    return sys.modules[name]


def _new(root: str) -> _Folder:
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    folder = _Folder(package=f"{PREFIX}{len(_folders)}", paths=[root])
    package = ModuleType(folder.package, f"What lies in {root}.")
    package.__path__ = folder.paths
    sys.modules[folder.package] = package
    return folder


@contextmanager
def _visited(folder: _Folder) -> Iterator[None]:
    visit, here = _Visit(folder=folder, paths=tuple(sys.path)), _current_folder()
    _visits.append(visit)
    _forget_plain_names()
    importlib.invalidate_caches()
    try:
        yield
    finally:
        visit.adopt()
        _visits.remove(visit)
        sys.path[:] = [path for path in sys.path if path in visit.paths or path not in folder.paths]
        _forget_plain_names()
        if here is not None and here != _current_folder():
            os.chdir(here)


def _current_folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - it is compared as text
    except OSError:  # it has been deleted
        return None


def _forget_plain_names() -> None:
    """Let nobody find a folder's module by the name that another folder's may have."""
    for name, module in list(sys.modules.items()):
        if not name.startswith(PREFIX) and _is_brought(module):
            del sys.modules[name]


def _is_brought(module: object) -> bool:
    return isinstance(module, ModuleType) and str(vars(module).get("__name__")).startswith(PREFIX)


def _is_elsewhere(top: str, paths: Sequence[str]) -> bool:
    """Whether Python finds a module or a package of that name, not only folders, and not in these."""
    for finder in sys.meta_path:
        found = None if finder is _FINDER else finder.find_spec(top, None)
        if found is not None and found.origin is not None:
            is_here = any(Path(found.origin).is_relative_to(path) for path in paths)
            return not is_here or _is_installed(found.origin)
    return False


def _is_installed(path: str) -> bool:
    """Whether it is of a package: a virtual environment may lie in a folder."""
    places = {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}
    return any(Path(path).is_relative_to(place) for place in places)


class _Finder(MetaPathFinder):
    """Finds the modules of folders, by their own names and, where that can't be another's, by their plain ones."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See ``importlib``."""
        if fullname.startswith(PREFIX):
            found = PathFinder.find_spec(fullname, path)
            if found is not None and type(found.loader) is SourceFileLoader and found.origin is not None:
                found.loader = _Loader(fullname, found.origin)
            return found
        above, _, name = fullname.rpartition(".")
        if above:
            return _also_called(fullname, vars(sys.modules[above])["__name__"]) if _is_plain(above) else None
        return self._at_the_top(name)

    def _at_the_top(self, name: str) -> ModuleSpec | None:
        """For imports by a string, and by statements that were read before ``sys.path`` had their folder."""
        asking = _folders_of(_caller())
        for visit in _visits[-1:]:
            visit.adopt()
        if not any(folder.provides(name) and not _is_elsewhere(name, folder.paths) for folder in asking):
            return None
        others = [folder for folder in _folders.values() if folder not in asking and folder.provides(name)]
        if others and not _visits:
            raise ImportError(f"{name} is in several of the folders compared; a statement imports it from its own")
        return _also_called(name, asking[0].package)


_FINDER = _Finder()


def _caller() -> str:
    """The name of the module that runs the import."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_IMPORTING):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__"))


def _folders_of(module: str) -> list[_Folder]:
    """The folder that the module is of, if any."""
    return [folder for folder in _folders.values() if folder.package == _top(module)]


def _is_plain(name: str) -> bool:
    return _is_brought(sys.modules.get(name))


def _also_called(name: str, above: str) -> ModuleSpec:
    return ModuleSpec(name, _Alias(f"{above}.{name.rpartition('.')[2]}"))


class _Alias(Loader):
    """Puts a folder's module in the place of one with a plain name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def exec_module(self, module: ModuleType) -> None:
        """See ``importlib``, which takes what then stands in ``sys.modules``."""
        sys.modules[module.__name__] = importlib.import_module(self._name)


class _Loader(SourceFileLoader):
    """Reads a file as Python does, but for what it imports from its own folder, and without a cache beside it."""

    def get_code(self, fullname: str) -> Any:
        """See ``importlib``."""
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        for folder in _folders_of(fullname):
            _lead_home(tree, folder)
        return compile(tree, path, "exec", dont_inherit=True)


def _lead_home(tree: ast.Module, folder: _Folder) -> None:
    """Let every import statement that names what the folder provides name it by the folder's package."""
    for visit in _visits[-1:]:
        visit.adopt()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and folder.provides(_top(node.module)):
            node.module = f"{folder.package}.{node.module}"
        elif isinstance(node, ast.Import):
            node.names = [new for alias in node.names for new in _led_home(alias, folder)]


def _led_home(alias: ast.alias, folder: _Folder) -> list[ast.alias]:
    """What ``import a.b`` or ``import a.b as c`` is then: it gives ``a``, or ``a.b``, a name."""
    top = _top(alias.name)
    if not folder.provides(top):
        return [alias]
    names = [(alias.name, alias.asname)] if alias.asname else [(alias.name, top), (top, top)]
    new = [ast.alias(name=f"{folder.package}.{name}", asname=called) for name, called in dict.fromkeys(names)]
    return [ast.copy_location(one, alias) for one in new]


def _top(name: str | None) -> str:
    return (name or "").partition(".")[0]
