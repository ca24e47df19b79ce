"""Sixteen actors ask for context while the files change: what they read was once so."""

from __future__ import annotations

import pytest

from cleveragents.bootstrap import Container
from cleveragents.domain.context_request import ContextRequest, Written
from cleveragents.settings import Settings
from cleveragents.testing import run_together

pytestmark = [pytest.mark.stress, pytest.mark.usefixtures("frequent_switches")]

ACTORS = 16
ROUNDS = 3
#: Long enough on a machine that does many other things: nothing here is about speed.
SLOW = {"context_timeout_s": 60.0, "context_deadline_s": 120.0}


def source(owner: int, version: int) -> str:
    """Each line tells its version, and its place depends on it: mixtures and shifts show."""
    lines = ["#"] * (version % 5)
    for part in range(6):
        lines += [
            f"def settle_{owner}_{part}(invoice):  # version {version}",
            *[f"    total = {part}  # version {version}, line {n}" for n in range(8)],
            "",
        ]
    return "\n".join(lines)


def put(path, text: str) -> None:
    """Replace a file as a whole, as editors do."""
    beside = path.parents[1] / path.name
    beside.write_text(text)
    beside.replace(path)


def was_once(passage, versions) -> bool:
    first, last = passage.start_line - 1, passage.end_line
    return any("\n".join(text.split("\n")[first:last]) == passage.text for text in versions)


def test_context_of_sixteen_actors_holds_only_what_files_held(tmp_path):
    root = tmp_path / "tree"
    root.mkdir()
    versions = {f"file_{n}.py": [source(n, v) for v in range(ROUNDS + 1)] for n in range(ACTORS)}
    for name, texts in versions.items():
        put(root / name, texts[0])

    def actor(mine: int) -> list:
        name = f"file_{mine}.py"
        found = []
        for version in range(1, ROUNDS + 1):
            put(root / name, versions[name][version])
            task = f"settle_{mine}_3 of the invoice, see file_{(mine + 1) % ACTORS}.py:20"
            context = services.pipeline.build(ContextRequest(task, root))
            assert {str(one.status) for one in context.reports} == {"ok"}
            found += context.fragments
            own = "\n".join(one.text for one in context.fragments if one.path == name)
            assert f"settle_{mine}_3(invoice):  # version {version}" in own
        return found

    settings = Settings(context_index_folder=str(tmp_path / "index"), **SLOW)
    with Container(settings) as services:
        found = run_together([lambda n=n: actor(n) for n in range(ACTORS)])
    passages = [one for some in found for one in some]
    torn = [one for one in passages if not was_once(one, versions[one.path])]
    assert len(passages) > ACTORS * ROUNDS
    assert torn == []


def test_actors_with_files_of_their_own_never_see_those_of_others(tmp_path):
    root = tmp_path / "tree"
    root.mkdir()
    put(root / "shared.py", source(99, 0))

    def actor(mine: int) -> set[tuple[str, str]]:
        overlay = Written({"shared.py": source(mine, mine + 1).encode(), f"own_{mine}.py": b"x\n"})
        task = "settle the invoice in shared.py"
        request = ContextRequest(task, root, overlay=overlay)
        contexts = [services.pipeline.build(request) for _ in range(ROUNDS)]
        texts = {one.render() for one in contexts}
        assert len(texts) == 1
        return {(one.path, one.text) for one in contexts[0].fragments}

    settings = Settings(context_index_folder=str(tmp_path / "index"), **SLOW)
    with Container(settings) as services:
        seen = run_together([lambda n=n: actor(n) for n in range(ACTORS)])
    for mine, found in enumerate(seen):
        found.discard((f"own_{mine}.py", "x"))
        assert found == {("shared.py", source(mine, mine + 1).rstrip())}
