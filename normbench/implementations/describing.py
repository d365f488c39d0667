"""What a file says of a function or class without being run: where it stands, what it is, whether it compiles."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

_Body: TypeAlias = Sequence[ast.stmt]
_MOST_SUMMARY = 120


@dataclass(frozen=True, kw_only=True)
class Description:
    """What is known of a definition before anything runs.

    Args:
        line: Where it begins; None where it isn't defined in so many words.
        summary: The first line of its docstring.
        compiled: Whether ``torch.compile`` stands in it, as a decorator or a call.
    """

    line: int | None = None
    summary: str | None = None
    compiled: bool = False


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The names that a file defines at its top.

    Args:
        names: Of functions, classes, values and imports, in order.
        is_complete: Whether there can be no others: no ``import *``, and it is Python at all.
    """

    names: tuple[str, ...] = ()
    is_complete: bool = False


def describe(file: Path, attribute: str) -> Description:
    """What ``file`` says of ``attribute``, dots leading into classes; nothing where it can't be read as Python."""
    body, found = _body(file), None
    for part in attribute.split("."):
        found = next((node for node in reversed(body) if part in _defined(node)), None)
        body = found.body if isinstance(found, ast.ClassDef) else []
    if found is None:
        return Description()
    return Description(line=_line(found), summary=_summary(found), compiled=any(map(_compiles, ast.walk(found))))


def contents(file: Path) -> Contents:
    """The names at the top of a file."""
    body = _body(file)
    names = [name for node in body for name in _defined(node)]
    return Contents(names=tuple(dict.fromkeys(names)), is_complete=bool(body) and "*" not in names)


def _body(file: Path) -> _Body:
    try:
        return list(_top(ast.parse(file.read_bytes()).body))
    except (OSError, SyntaxError, ValueError, RecursionError):  # it says so itself when it is imported
        return []


def _top(body: _Body) -> Iterator[ast.stmt]:
    """The statements of a module, those below ``if``, ``try`` and ``with`` too."""
    for node in body:
        yield node
        for field in ("body", "orelse", "finalbody"):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from _top(getattr(node, field, []))
        for handler in getattr(node, "handlers", []):
            yield from _top(handler.body)


def _defined(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Import() | ast.ImportFrom():
            return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
        case ast.Assign():
            return [each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _summary(node: ast.stmt) -> str | None:
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return None
    text = (ast.get_docstring(node) or "").strip().partition("\n")[0].rstrip(".")
    return text[:_MOST_SUMMARY] or None


def _compiles(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="torch"), attr="compile"):
            return True
    return False
