"""Imports point one way: domain at the bottom, the command line at the top."""

from __future__ import annotations

import ast

from tidy.source import PACKAGE, name_of, sources, tree_of

#: What each part may import of ours, besides itself.
ARROWS = {
    "domain": set(),
    "providers": {"domain"},
    "application": {"domain"},
    "strategies": {"domain", "application"},
    "infrastructure": {"domain", "providers", "application"},
    "testing": {"domain"},
    "hunt": {"domain", "application"},
    "settings": {"domain", "providers"},
    "bootstrap": {"domain", "providers", "application", "strategies", "infrastructure", "settings"},
    "actors": {"domain", "application", "providers"},
    "workspace": {"domain", "application", "infrastructure"},
    "runs": {
        "domain",
        "providers",
        "application",
        "actors",
        "infrastructure",
        "settings",
        "bootstrap",
        "workspace",
    },
    "cli": {
        "_version",
        "domain",
        "providers",
        "application",
        "strategies",
        "infrastructure",
        "settings",
        "bootstrap",
        "actors",
        "workspace",
        "runs",
        "hunt",
        # The demo with a model runs the model server that is shipped for tests.
        "testing",
    },
    "__init__": {
        "_version",
        "domain",
        "providers",
        "application",
        "strategies",
        "infrastructure",
        "settings",
        "bootstrap",
        "actors",
        "workspace",
        "runs",
    },
    "__main__": {"cli"},
    "_version": set(),
}


def part_of(path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports_of(path) -> set[str]:
    modules = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            modules |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module} | {f"{node.module}.{one.name}" for one in node.names}
    ours = [parts for module in modules if (parts := module.split("."))[0] == "cleveragents"]
    return {parts[1] for parts in ours if len(parts) > 1}


def test_every_part_has_its_arrows_drawn():
    assert {part_of(path) for path in sources()} <= set(ARROWS)


def test_imports_follow_the_arrows():
    parts = set(ARROWS)
    wrong = [
        f"{name_of(path)} imports {other}"
        for path in sources()
        for other in imports_of(path) & parts
        if other not in ARROWS[part_of(path)] | {part_of(path)}
    ]
    assert wrong == []


def test_no_model_sdk_is_imported_by_the_package():
    sdks = {"openai", "anthropic", "litellm", "pydantic_ai", "google"}
    found = [
        f"{name_of(path)} imports {node.names[0].name}"
        for path in sources()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Import) and node.names[0].name.split(".")[0] in sdks
    ]
    assert found == []
