"""Fills the templates of a node with values: its inputs first, then all that may use them."""

from __future__ import annotations

import json
import operator
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.conditions import Template
from cleveragents.domain.plan import Node
from cleveragents.domain.plan_collections import Either, FrozenMap, Listed, Mapped
from cleveragents.domain.plan_records import Kinds, Record, assembled, specs_of
from cleveragents.domain.plan_rules import Templated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cleveragents.domain.plan_rules import Rule

    Scope = Mapping[str, Any]

#: The fields that may refer to other nodes; those that are filled before the attempt come first.
_BEFORE: Final = ("for_each", "when", "inputs")
_FILLED: Final = ("actor", "context", "env", "check")
_RULES: Final = {one.name: one.rule for one in specs_of(Node)}


def references_in(node: Node) -> tuple[str, ...]:
    """Return the nodes whose outputs a node uses."""
    found: dict[str, None] = {}
    for name in (*_BEFORE, *_FILLED):
        value = getattr(node, name)
        if value:
            references = _RULES[name].references(value, ())
            found |= {one.node: None for _, one in references if one.node is not None}
    return tuple(found)


def rendered_items(over: Any, scope: Scope) -> Any:
    """Return what a fan-out goes over."""
    return _literal(over, scope)


def rendered_inputs(node: Node, scope: Scope) -> dict[str, Any]:
    """Return the inputs of one attempt: a copy of its own, which it may change."""
    if not node.inputs:
        return {}
    inputs = {name: _literal(value, scope) for name, value in node.inputs.items()}
    copied: dict[str, Any] = json.loads(json.dumps(inputs))
    return copied


def rendered(node: Node, scope: Scope, inputs: Mapping[str, Any]) -> Node:
    """Return the node as its actor sees it: no template is left."""
    full = {**scope, "inputs": inputs}
    fresh = {
        name: _filled(_RULES[name], value, full)
        for name in _FILLED
        if (value := getattr(node, name))
    }
    if inputs:
        fresh["inputs"] = FrozenMap(inputs)
    if all(fresh[name] is getattr(node, name) for name in fresh):
        return node
    values = {one.name: getattr(node, one.name) for one in specs_of(Node)}
    filled = assembled(Node, values | fresh)
    assert isinstance(filled, Node)
    return filled


def _filled(rule: Rule, value: Any, scope: Scope) -> Any:
    """Fill a value by its rule; one without templates is returned as it is."""
    if value is None:
        return None
    fill = _FILLS.get(type(rule))
    return value if fill is None else fill(rule, value, scope)


def _filled_text(_: Rule, text: str, scope: Scope) -> str:
    if "${" not in text:
        return text
    # With an empty part beside it, a sole reference becomes text as all others do.
    return str(Template((*Template.parse(text).parts, "")).render(scope))


def _filled_command(rule: Rule, value: Any, scope: Scope) -> Any:
    # What a shell reads has no templates.
    if not isinstance(value, tuple):
        return value
    return _same_or(value, tuple(_filled_text(rule, one, scope) for one in value))


def _filled_list(rule: Rule, value: tuple[Any, ...], scope: Scope) -> Any:
    (item,) = rule.parts()
    return _same_or(value, tuple(_filled(item, one, scope) for one in value))


def _filled_map(rule: Rule, value: FrozenMap, scope: Scope) -> FrozenMap:
    (item,) = rule.parts()
    return FrozenMap({key: _filled(item, one, scope) for key, one in value.items()})


def _filled_record(_: Rule, value: Any, scope: Scope) -> Any:
    kind = type(value)
    old = {one.name: getattr(value, one.name) for one in specs_of(kind)}
    new = {one.name: _filled(one.rule, old[one.name], scope) for one in specs_of(kind)}
    if all(new[name] is old[name] for name in old):
        return value
    return assembled(kind, new)


def _same_or(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    return old if all(map(operator.is_, old, new)) else new


# By type, not by `isinstance`: rules are a protocol, which is slow to ask.
_FILLS: Final[Mapping[type, Callable[[Rule, Any, Scope], Any]]] = {
    Templated: _filled_text,
    Either: _filled_command,
    Listed: _filled_list,
    Mapped: _filled_map,
    Record: _filled_record,
    Kinds: _filled_record,
}


def _literal(value: Any, scope: Scope) -> Any:
    if isinstance(value, str):
        return Template.parse(value).render(scope)
    if isinstance(value, tuple):
        return [_literal(one, scope) for one in value]
    if isinstance(value, FrozenMap):
        return {key: _literal(one, scope) for key, one in value.items()}
    return value
