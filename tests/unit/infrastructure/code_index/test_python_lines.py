from __future__ import annotations

import argparse
import ast
import inspect
import json.decoder
import logging
import typing
from pathlib import Path

import pytest

from cleveragents.infrastructure.code_index.python_lines import python_definitions

MODULES = [argparse, ast, inspect, json.decoder, logging, typing]


def found(text: str) -> list[tuple[str, str, int, int]]:
    def flat(definitions):
        for one in definitions:
            yield one.name, one.kind, one.start_line, one.end_line
            yield from flat(one.inner)

    return list(flat(python_definitions(text)))


def blocks_of(one: ast.stmt, lines: list[str]) -> list[ast.stmt]:
    """The statements inside one that count as if they stood outside."""
    match one:
        case ast.If():
            is_elif = lines[one.lineno - 1].lstrip().startswith("elif")
            return [*([] if is_elif else one.body), *one.orelse]
        case ast.Try():
            handled = [inner for handler in one.handlers for inner in handler.body]
            return [*one.body, *handled, *one.orelse]
        case ast.With():
            return one.body
    return []


def by_python(text: str) -> list[tuple[str, str, int, int]]:
    """What Python's own parser finds in the same places."""
    lines = text.split("\n")

    def visit(statements, *, in_class):
        for one in statements:
            match one:
                case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                    is_class = isinstance(one, ast.ClassDef)
                    kind = "class" if is_class else "method" if in_class else "function"
                    start = min([one.lineno, *(item.lineno for item in one.decorator_list)])
                    yield one.name, kind, start, one.end_lineno
                    yield from visit(one.body if is_class else [], in_class=True)
                case (
                    ast.Assign(targets=[ast.Name(id=name), *_])
                    | ast.AnnAssign(target=ast.Name(id=name))
                ) if not in_class:
                    yield name, "other", one.lineno, one.end_lineno
            yield from visit(blocks_of(one, lines), in_class=in_class)

    return list(visit(ast.parse(text).body, in_class=False))


def without_comments(text: str, definitions):
    """Definitions without the comments at their end, which Python's parser does not know."""
    lines = text.split("\n")
    for name, kind, start, end in definitions:
        last = end
        while last > start and (
            not lines[last - 1].strip() or lines[last - 1].lstrip().startswith("#")
        ):
            last -= 1
        yield name, kind, start, last


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_definitions_are_those_of_pythons_own_parser(module):
    text = Path(module.__file__).read_text(encoding="utf-8")
    assert list(without_comments(text, found(text))) == by_python(text)


@pytest.mark.parametrize(
    "text",
    [
        'X = """\ndef no():\n"""\ndef yes():\n    pass',
        "X = '''\\'''\ndef no(): pass'''\nY = 1",
        "def f(\n    a=(1,\n2),\n):\n    return [\n1,\n]\nx = 1",
        "if a:\n    x = 1\nelif b:\n    y = 1\nelse:\n    z = 1",
        "for a in b:\n    x = 1\nelse:\n    y = 1",
        "try:\n    x = 1\nexcept E:\n    y = 1\nelse:\n    z = 1\nfinally:\n    w = 1",
        "with a as b: x = 1\nif c: y = 2",
        "a = 1; b: int = 2; c[0] = 3; d.e = 4; f == g; h += 1; i, j = 5, 6",
        "match = 1\nmatch x:\n    case 1:\n        y = 1\nz = 1",
        "class A:\n\tx = 1\n\tif y:\n\t\tdef b(s): pass\n\tasync def c(s):\n\t\tdef d(): pass",
        "class A:\n\tclass B:\n\t\tdef c(self): pass\n",
        "@a\n# between\n@b(\n    1\n)\nclass A: pass\n\n@c\nasync def d(): pass",
        "def f():\n    x = 1 + \\\n2\n    return x\ny = 1",
        "def f():\n    '''\nonly words\n'''\n\x0c\ndef g(): pass",
        "lambda: 0\nx: int\nif x[1:2] == 'a:b = c': pass",
        "",
    ],
)
def test_small_texts_are_read_as_python_reads_them(text):
    assert found(text) == by_python(text)


def test_alias_of_a_type_is_a_value():
    assert found("type A = int\ntype = 1") == [("A", "other", 1, 1), ("type", "other", 2, 2)]


def test_comments_below_belong_to_the_block_that_they_stand_in():
    text = "def f():\n    if x:\n        pass\n        # of if\n    # of f\n# of nothing\ny = 1"
    assert found(text) == [("f", "function", 1, 5), ("y", "other", 7, 7)]


def test_comment_between_statements_ends_nothing():
    assert found("def f():\n    a()\n# left\n    b()\nc = 1") == [
        ("f", "function", 1, 4),
        ("c", "other", 5, 5),
    ]


def test_bracket_that_is_never_closed_hides_no_definition():
    text = "x = (1,\ndef f():\n    return ]\ndef g(\n    a"
    assert found(text) == [
        ("x", "other", 1, 1),
        ("f", "function", 2, 3),
        ("g", "function", 4, 5),
    ]


def test_string_that_is_never_closed_hides_no_definition():
    assert ("f", "function", 2, 2) in found('x = """a\ndef f(): pass')
