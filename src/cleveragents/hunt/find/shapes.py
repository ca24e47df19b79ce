"""Shapes of expressions: literals, emptiness, last elements, and the names along a dotted one."""

from __future__ import annotations

import ast

from cleveragents.hunt.find.vocabulary import Kind, kind_of

__all__ = ["bound_names", "is_last", "is_nothing", "literal", "names_along"]


def literal(node: ast.AST | None = None) -> str | None:
    """Return a literal as text: two different ones are two different keys."""
    return repr(node.value) if isinstance(node, ast.Constant) else None


def is_last(node: ast.AST) -> bool:
    """Say whether an expression takes the last element: `items[-1]`."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.UnaryOp):
        return False
    return isinstance(node.slice.op, ast.USub) and isinstance(node.slice.operand, ast.Constant)


def is_nothing(value: ast.AST | None) -> bool:
    """Say whether a value is nothing, or an empty container."""
    if isinstance(value, ast.Constant):
        return not value.value
    if isinstance(value, ast.Dict):
        return not value.keys
    if isinstance(value, ast.List | ast.Set | ast.Tuple):
        return not value.elts
    return isinstance(value, ast.Call) and not value.args and kind_of(value) is Kind.CONTAINER


def bound_names(target: ast.AST) -> list[str]:
    """Return the names that a target binds."""
    return [one.id for one in ast.walk(target) if isinstance(one, ast.Name)]


def names_along(node: ast.AST) -> list[str]:
    """Return the names of a dotted expression in order, through calls and subscripts."""
    names: list[str] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return names[::-1]
    return [node.id, *names[::-1]]
