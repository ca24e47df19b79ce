"""Describe plan files: the JSON Schema for editors, and the reference page for people.

Both are made from the fields of the plan's own records, so they cannot say anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.plan import PLAN
from cleveragents.domain.plan_collections import FrozenMap
from cleveragents.domain.plan_records import PlanValue, Record, specs_of

if TYPE_CHECKING:
    from cleveragents.domain.plan_records import Spec
    from cleveragents.domain.plan_rules import JsonSchema, Rule

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_INTRODUCTION: Final = """\
# Plan files

A plan is a goal and a graph of nodes.
It is written in YAML 1.2 (`no` and `on` are text), or in Python with the same names.
Every mistake is found before anything runs, and told with file, line and column.

```yaml
goal: Tidy the code and say what changed
budget: {max_usd: 2.50}
defaults: {check: pytest -q, attempts_max: 2}
nodes:
  scan:
    actor: {command: [find, ., -name, "*.py"]}
    outputs: lines
  tidy:
    needs: [scan]
    for_each: ${nodes.scan.output}
    actor: {command: [ruff, check, --fix, "${item}"]}
  report:
    needs: [tidy]
    when: nodes.scan.output != []
    actor:
      llm:
        model: anthropic:sonnet
        prompt: "Describe what changed: ${nodes.tidy.output}"
```

**Templates.**
`${nodes.NAME.output}` is what a node upstream gave, `${nodes.NAME.output.KEY}` a part of it,
`${inputs.NAME}` an input of the node itself, `${item}` the item of its `for_each`,
and `${plan.goal}` the goal.
`$${` stands for a plain `${`.
A text that is one template and nothing else keeps the type of the value.
In the arguments of a command templates are safe.
In the text of a shell they are refused: pass the value in `env`.

**Conditions.**
`when` knows `==`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `not`, `and`, `or`, lists, text, numbers,
`true`, `false`, `null`, and the same names without `${}`.
A node that is skipped lets its dependants go on; they see null.

**Fan-out.**
A node with `for_each` runs once for each item:
as `tidy[0]`, `tidy[1]` for a list, as `tidy[api]` for a mapping.
Whoever needs it waits for all, and sees their outputs in the order of the items.

**MCP servers.**
`mcp: {web: {command: [uvx, mcp-server-fetch], tools: [fetch]}}`
gives models the tool `mcp_web_fetch`.
It needs `pip install 'cleveragents[mcp]'`.
A command is started for each attempt, in an empty folder of its own, and ends with the attempt;
a `url` reaches a server that runs already.
Neither is confined to the sandbox: what a server does is not part of the plan's changes,
is not taken back, and is not done again when a plan is resumed.
So name only servers that you trust.
A server that dies or does not answer in time is an error that the model is told.
"""


def schema() -> JsonSchema:
    """Return the JSON Schema (draft 2020-12) of a plan file.

    It accepts whatever the rules accept; what only a whole plan shows, such as a loop, it cannot
    tell.
    """
    return {
        "$schema": DIALECT,
        "title": "CleverAgents plan",
        **PLAN.schema(),
        "$defs": {kind.__name__: _definition(kind) for kind in _records()},
    }


def reference() -> str:
    """Return the reference page: each record with its fields, rules and defaults."""
    return "\n".join([_INTRODUCTION, *(_section(kind) for kind in _records())])


def _records() -> tuple[type[PlanValue], ...]:
    """Return each kind of record in the order in which a reader meets it."""
    found: dict[type[PlanValue], None] = {}
    open_ends: list[Rule] = [PLAN]
    while open_ends:
        rule = open_ends.pop(0)
        if isinstance(rule, Record):
            if rule.kind in found:
                continue
            found[rule.kind] = None
        open_ends += rule.parts()
    return tuple(found)


def _definition(kind: type[PlanValue]) -> JsonSchema:
    specs = specs_of(kind)
    # A node gets its name from the mapping that it stands in, or must have one in a list.
    required = [one.key for one in specs if one.required and (kind.__name__, one.key) != _BY_KEY]
    told: JsonSchema = {
        "type": "object",
        "description": _summary(kind),
        "properties": {one.key: _property(one) for one in specs},
        "additionalProperties": False,
    }
    return {**told, "required": required} if required else told


_BY_KEY: Final = ("Node", "name")


def _property(one: Spec) -> JsonSchema:
    told = {**one.rule.schema(), "description": one.about}
    default = _plain_default(one)
    return told if default is None else {**told, "default": default}


def _plain_default(one: Spec) -> Any:
    if one.required or one.default is None or isinstance(one.default, PlanValue):
        return None
    return one.rule.plain(one.default)


def _section(kind: type[PlanValue]) -> str:
    rows = [
        f"| `{one.key}` | {one.about} | {one.rule.says} | {_default(one)} |"
        for one in specs_of(kind)
    ]
    return "\n".join(
        [
            f"## {kind.__name__}",
            "",
            _summary(kind),
            "",
            "| field | what it is | must be | default |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
        ]
    )


def _default(one: Spec) -> str:
    if one.required:
        return "required"
    if one.default in (None, (), FrozenMap()) or isinstance(one.default, PlanValue):
        return "none"
    return f"`{str(_plain_default(one)).lower()}`"


def _summary(kind: type[PlanValue]) -> str:
    return (kind.__doc__ or "").splitlines()[0]
