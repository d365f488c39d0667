"""What a file says of a function or class without being run: where it stands, what it is, whether it compiles."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from normbench.legible import visible

_Body: TypeAlias = Sequence[ast.stmt]
_MOST_SUMMARY = 120
_DYNAMIC = frozenset({"eval", "exec", "globals", "locals", "setattr", "vars", "__getattr__"})
"""By these a file may define what stands nowhere in it."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """What is known of a definition before anything runs.

    Args:
        line: Where it begins; None where it isn't defined in so many words, or one way here and another there.
        summary: The first line of its docstring.
        compiled: Whether it certainly calls ``torch.compile``, as a decorator or in its body.
    """

    line: int | None = None
    summary: str | None = None
    compiled: bool = False


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The names at the top of a file.

    Args:
        names: Of functions, classes, values and imports, in order.
        is_complete: Whether there can be no others.
    """

    names: tuple[str, ...] = ()
    is_complete: bool = False


def describe(file: Path, attribute: str) -> Description:
    """What ``file`` says of ``attribute``, dots leading into classes; nothing where it can't be read as Python."""
    tree = _tree(file)
    if tree is None:
        return Description()
    body: _Body = tree.body
    found: Sequence[ast.stmt] = ()
    for part in attribute.split("."):
        found = _definitions(body, part)
        body = found[-1].body if found and isinstance(found[-1], ast.ClassDef) else []
    if not found:
        return Description()
    node = found[-1]
    line = _line(node) if len(found) == 1 else None
    return Description(line=line, summary=_summary(node), compiled=_Compiling(tree).is_in(node))


def contents(file: Path) -> Contents:
    """The names at the top of a file."""
    tree = _tree(file)
    if tree is None:
        return Contents()
    names = [name for node, _is_certain in _top(tree.body) for name in _defined(node)]
    is_dynamic = any(isinstance(node, ast.Global) or _name(node) in _DYNAMIC for node in ast.walk(tree))
    return Contents(names=tuple(dict.fromkeys(names)), is_complete="*" not in names and not is_dynamic)


def _tree(file: Path) -> ast.Module | None:
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(file.read_bytes())
            list(_top(tree.body))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):  # it says so itself when it is imported
        return None
    return tree


def _definitions(body: _Body, name: str) -> Sequence[ast.stmt]:
    """The statements one of which defines the name in the end: the last that is certainly run, and those after."""
    found: list[ast.stmt] = []
    for node, is_certain in _top(body):
        if name in _defined(node):
            found = [node] if is_certain else [*found, node]
    return found


def _top(body: _Body, *, is_certain: bool = True) -> Iterator[tuple[ast.stmt, bool]]:
    """The statements of a module or class, also below ``if``, ``try`` and the like; and which are certainly run."""
    for node in body:
        yield node, is_certain
        if isinstance(node, ast.With):
            yield from _top(node.body, is_certain=is_certain)
        elif isinstance(node, ast.If | ast.Try | ast.For | ast.While | ast.Match):
            for branch in _branches(node):
                yield from _top(branch, is_certain=False)


def _branches(node: ast.stmt) -> Iterator[_Body]:
    for field in ("body", "orelse", "finalbody"):
        yield getattr(node, field, [])
    for each in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield each.body


def _defined(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Import() | ast.ImportFrom():
            return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
        case ast.Assign(targets=targets):
            return [name for target in targets for name in _bound(target)]
        case ast.AnnAssign(target=target, value=ast.expr()) | ast.For(target=target):
            return _bound(target)
        case ast.With(items=items):
            return [name for item in items if item.optional_vars for name in _bound(item.optional_vars)]
    return []


def _bound(target: ast.expr) -> list[str]:
    """The names that an assignment to it binds: not those of ``a.b`` or ``a[b]``."""
    return [each.id for each in ast.walk(target) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]


def _name(node: ast.AST) -> str | None:
    match node:
        case ast.Name(id=name) | ast.FunctionDef(name=name):
            return name
    return None


def _line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _summary(node: ast.stmt) -> str | None:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return None
    text = (ast.get_docstring(node) or "").strip().partition("\n")[0].rstrip(".")
    return visible(text[:_MOST_SUMMARY]) or None


class _Compiling:
    """Knows how a file calls ``torch.compile``."""

    def __init__(self, tree: ast.Module) -> None:
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        self._torch = {"torch"}
        self._compile: set[str] = set()
        for node in imports:
            for alias in node.names:
                if isinstance(node, ast.Import) and alias.name == "torch":
                    self._torch.add(alias.asname or "torch")
                elif isinstance(node, ast.ImportFrom) and (node.module, alias.name) == ("torch", "compile"):
                    self._compile.add(alias.asname or "compile")

    def is_in(self, node: ast.AST) -> bool:
        """Whether it stands there, and not where it may be passed over or is disabled."""
        left = [node]
        while left:
            match left.pop():
                case ast.If() | ast.IfExp() | ast.Try() | ast.Match():
                    pass
                case ast.Call(keywords=keywords) if any(_disables(keyword) for keyword in keywords):
                    pass
                case ast.Attribute(value=ast.Name(id=name), attr="compile") if name in self._torch:
                    return True
                case ast.Name(id=name) if name in self._compile:
                    return True
                case other:
                    left += ast.iter_child_nodes(other)
        return False


def _disables(keyword: ast.keyword) -> bool:
    match keyword:
        case ast.keyword(arg="disable", value=ast.Constant(value=True)):
            return True
    return False
