"""Type hints of a callable, those too whose names are only imported for type checkers."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import sys
import typing
from typing import Any

__all__ = ["hints_of"]


def hints_of(called: Any) -> dict[str, Any]:
    """Return the type hints of a callable; a hint that does not resolve is left out."""
    with contextlib.suppress(Exception):
        return typing.get_type_hints(called)
    scope = {**getattr(called, "__globals__", {}), **_for_checkers(str(called.__module__))}
    found: dict[str, Any] = {}
    for name, hint in getattr(called, "__annotations__", {}).items():
        with contextlib.suppress(Exception):
            found[name] = (
                eval(hint, scope)  # noqa: S307  # to run the user's code is the point
                if isinstance(hint, str)
                else hint
            )
    return found


@functools.cache
def _for_checkers(name: str) -> dict[str, Any]:
    """Return what a module imports under `if TYPE_CHECKING`, as far as it can be imported."""
    scope: dict[str, Any] = {"__name__": name, "__package__": name.rpartition(".")[0]}
    module = sys.modules.get(name)
    if module is None:
        return scope
    scope["__package__"] = module.__package__
    with contextlib.suppress(Exception):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
                for line in node.body:
                    _run(line, scope)
    return scope


def _run(line: ast.stmt, scope: dict[str, Any]) -> None:
    with contextlib.suppress(Exception):
        code = compile(ast.Module([line], []), "<hunt>", "exec")
        exec(code, scope)  # noqa: S102  # to run the user's code is the point
