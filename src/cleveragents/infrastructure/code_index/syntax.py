"""Definitions in a text, found by its grammar; the grammars are optional packages."""

from __future__ import annotations

import importlib
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cleveragents.infrastructure.code_index.definitions import Definition

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["has_grammar", "parse"]

#: A larger file is generated, and its grammar would take seconds.
BYTES_MAX: Final = 400_000
_DEPTH_MAX: Final = 8
_NEWLINE: Final = ord("\n")
#: Versions that corrupt memory when positions are read.
_BROKEN: Final = frozenset({"0.26.0"})


@dataclass(frozen=True, slots=True)
class _Grammar:
    """Where a grammar is, and which of its nodes define, or hold what defines."""

    package: str
    classes: frozenset[str]
    functions: frozenset[str]
    #: Values with a name: constants, variables, aliases.
    others: frozenset[str] = frozenset()
    #: What may surround a definition without being one.
    wrappers: frozenset[str] = frozenset()
    entry: str = "language"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SCRIPT_CLASSES: Final = (
    "class_declaration abstract_class_declaration interface_declaration enum_declaration"
    " internal_module module class"
)
_SCRIPT_FUNCTIONS: Final = (
    "function_declaration generator_function_declaration method_definition function_signature"
    " method_signature abstract_method_signature"
)
_SCRIPT: Final = _Grammar(
    "tree_sitter_javascript",
    _words(_SCRIPT_CLASSES),
    _words(_SCRIPT_FUNCTIONS),
    _words("variable_declarator type_alias_declaration"),
    _words(
        "export_statement lexical_declaration variable_declaration class_body statement_block"
        " ambient_declaration expression_statement interface_body object_type"
    ),
)


def _typescript(entry: str) -> _Grammar:
    return _Grammar(
        "tree_sitter_typescript",
        _SCRIPT.classes,
        _SCRIPT.functions,
        _SCRIPT.others,
        _SCRIPT.wrappers,
        entry,
    )


_GRAMMARS: Final = {
    "javascript": _SCRIPT,
    "typescript": _typescript("language_typescript"),
    "tsx": _typescript("language_tsx"),
    "go": _Grammar(
        "tree_sitter_go",
        _words("type_spec type_alias"),
        _words("function_declaration method_declaration"),
        _words("const_spec var_spec"),
        _words("type_declaration const_declaration var_declaration var_spec_list"),
    ),
    "rust": _Grammar(
        "tree_sitter_rust",
        _words("struct_item enum_item trait_item impl_item mod_item union_item"),
        _words("function_item function_signature_item macro_definition"),
        _words("const_item static_item type_item"),
        _words("declaration_list"),
    ),
    "java": _Grammar(
        "tree_sitter_java",
        _words(
            "class_declaration interface_declaration enum_declaration record_declaration"
            " annotation_type_declaration"
        ),
        _words("method_declaration constructor_declaration"),
        wrappers=_words("class_body interface_body enum_body enum_body_declarations"),
    ),
    "c": _Grammar(
        "tree_sitter_c",
        _words("struct_specifier enum_specifier union_specifier"),
        _words("function_definition"),
        _words("type_definition preproc_def preproc_function_def"),
        _words("preproc_ifdef preproc_if preproc_else linkage_specification declaration_list"),
    ),
    "cpp": _Grammar(
        "tree_sitter_cpp",
        _words(
            "class_specifier struct_specifier enum_specifier union_specifier namespace_definition"
        ),
        _words("function_definition"),
        _words("type_definition alias_declaration preproc_def preproc_function_def"),
        _words(
            "preproc_ifdef preproc_if preproc_else linkage_specification declaration_list"
            " template_declaration field_declaration_list"
        ),
    ),
    "ruby": _Grammar(
        "tree_sitter_ruby",
        _words("class module singleton_class"),
        _words("method singleton_method"),
        wrappers=_words("body_statement"),
    ),
}
#: What begins a definition that it surrounds.
_BELONGING: Final = _words("export_statement template_declaration")
#: A variable that holds one of these is a function.
_FUNCTION_VALUES: Final = _words("arrow_function function_expression function lambda")


def has_grammar(language: str) -> bool:
    """Say whether the grammar of a language is installed and works here."""
    return _language(language) is not None


@cache
def _language(name: str) -> Any:
    """Return the compiled grammar; asked once, because packages do not come and go."""
    grammar = _GRAMMARS.get(name)
    if grammar is None:
        return None
    try:
        sitter = importlib.import_module("tree_sitter")
        if getattr(sitter, "__version__", "") in _BROKEN:
            return None
        package = importlib.import_module(grammar.package)
        return sitter.Language(getattr(package, grammar.entry)())
    except Exception:  # noqa: BLE001  # not installed, or made for another version: the same to us
        return None


def parse(language: str, text: str) -> list[Definition] | None:
    """Return the definitions of a text; None without a grammar, or for a text that is too long."""
    grammar = _language(language)
    content = text.encode()
    if grammar is None or len(content) > BYTES_MAX:
        return None
    # A parser is no thread's but its maker's; it costs microseconds.
    parser = importlib.import_module("tree_sitter").Parser(grammar)
    search = _Search(_GRAMMARS[language], content)
    return list(search.definitions(parser.parse(content).root_node, 0))


class _Search:
    """Collects the definitions of one text; lines are counted from the offsets of bytes."""

    def __init__(self, grammar: _Grammar, content: bytes) -> None:
        self._grammar = grammar
        self._newlines = np.flatnonzero(np.frombuffer(content, np.uint8) == _NEWLINE).tolist()

    def definitions(self, node: Any, depth: int) -> Iterator[Definition]:
        """Yield what the children of a node define, in the order of the text."""
        grammar = self._grammar
        for child in node.named_children:
            kind = child.type
            if kind in grammar.classes:
                found = self._named(child, "class")
            elif kind in grammar.functions:
                found = self._named(child, "function")
            elif kind in grammar.others:
                found = self._named(child, _kind_of_value(child)) if depth == 0 else None
            elif kind in grammar.wrappers and depth < _DEPTH_MAX:
                yield from self._widened(child, self.definitions(child, depth))
                continue
            else:
                continue
            if found is not None:
                if found.kind == "class" and depth < _DEPTH_MAX:
                    found.inner = list(self._methods(child, depth + 1))
                yield found

    def _methods(self, node: Any, depth: int) -> Iterator[Definition]:
        body = node.child_by_field_name("body")
        for definition in self.definitions(node if body is None else body, depth):
            if definition.kind == "function":
                definition.kind = "method"
            yield definition

    def _widened(self, wrapper: Any, inner: Iterator[Definition]) -> Iterator[Definition]:
        """Let `export` and the like belong to what they surround."""
        for definition in inner:
            if wrapper.type in _BELONGING:
                definition.start_line = self._line(wrapper.start_byte)
            yield definition

    def _named(self, node: Any, kind: str) -> Definition | None:
        name = _name(node)
        if not name:
            return None
        start, end = node.start_byte, node.end_byte
        return Definition(name, kind, self._line(start), self._line(max(start, end - 1)))

    def _line(self, offset: int) -> int:
        # A newline itself belongs to the line that it ends.
        return bisect_left(self._newlines, offset) + 1


def _kind_of_value(node: Any) -> str:
    value = node.child_by_field_name("value")
    return "function" if value is not None and value.type in _FUNCTION_VALUES else "other"


def _name(node: Any) -> str:
    """Return the name, wherever the grammar keeps it."""
    for field in ("name", "declarator", "type"):
        found = node.child_by_field_name(field)
        while found is not None and found.child_by_field_name("declarator") is not None:
            found = found.child_by_field_name("declarator")
        if found is not None:
            name = found.text.decode("utf-8", "replace")
            # `{a, b} = …` names nothing; of `Vec<T>` and `ns::f` the word counts.
            name = name.partition("<")[0].rpartition("::")[2].strip()
            return name if name.rstrip("?!=").isidentifier() else ""
    return ""
