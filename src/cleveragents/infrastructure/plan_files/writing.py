"""Write a plan as YAML that reads back as an equal plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from cleveragents.domain.plan import PLAN
from cleveragents.infrastructure.plan_files.core_schema import PLAIN_WORDS

if TYPE_CHECKING:
    from cleveragents.domain.plan import Plan

_ODD_LINE_ENDS: Final = frozenset("\x85\u2028\u2029")


class _Dumper(yaml.SafeDumper):
    """Puts into quotes what the core schema would not read as text, and shares nothing."""

    # Replaced, not extended: the words of YAML 1.1 mean nothing here.
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # a class attribute of the library

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # each value is written where it stands
        """Write equal values out, each in its place."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Keep lines readable, and escape the line ends that YAML would fold away."""
    style = "|" if "\n" in text else None
    if not _ODD_LINE_ENDS.isdisjoint(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _text)
for _tag, _pattern, _first, _meaning in PLAIN_WORDS:
    _firsts = [*_first, ""] if _tag == "null" else list(_first)
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, _firsts)


def dump(plan: Plan) -> str:
    """Return the plan as YAML; `parse_plan(dump(plan)) == plan`."""
    return yaml.dump(
        PLAN.plain(plan),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=100,
    )
