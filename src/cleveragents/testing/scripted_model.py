"""A model that follows a list: what it says depends on how often it has spoken before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cleveragents.domain.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cleveragents.testing.script import Answerable, Asked


class ScriptedModel:
    """A script for `ModelServer`, written as the list of a conversation's answers.

    `ScriptedModel([CallTool("read", {"path": "a.py"}), "done"])` first reads, then is done.
    Several conversations are told apart by words that stand in them:
    `ScriptedModel({"fix the login": […], "write the docs": […]})`.
    It keeps no state: the answer follows from the conversation that was sent,
    so a request that is repeated, or resumed after a crash, gets the same answer again.
    (An empty answer leaves no trace in a conversation and so comes again, too.)
    """

    def __init__(self, script: Sequence[Answerable] | Mapping[str, Sequence[Answerable]]) -> None:
        self._scripts = dict(script) if isinstance(script, Mapping) else {"": script}

    def __call__(self, asked: Asked) -> Answerable:
        """Answer with the reply whose turn it is."""
        for words, replies in self._scripts.items():
            if words in asked.text:
                return self._reply(words, replies, asked)
        raise RequestError(
            f"A conversation must contain the words of one script, got {asked.text!r:.200}",
            facts={"scripts": ", ".join(self._scripts)},
        )

    @staticmethod
    def _reply(words: str, replies: Sequence[Answerable], asked: Asked) -> Answerable:
        if asked.turns >= len(replies):
            raise RequestError(
                f"The script {words!r} has {len(replies)} replies, "
                f"got a request for reply {asked.turns + 1}"
            )
        return replies[asked.turns]
