"""Model actors without models: a line that follows a script, on real sandboxes and real books."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from cleveragents.actors.llm.actor import LlmActor
from cleveragents.actors.llm.building import llm_tools
from cleveragents.actors.llm.parts import LlmParts
from cleveragents.actors.tool_journal import MemoryToolJournal
from cleveragents.application.attempts import Payer
from cleveragents.application.services.error_recovery_service import ErrorRecoveryService
from cleveragents.domain.budget import Limit
from cleveragents.domain.money import Money
from cleveragents.domain.plan import LlmActor as LlmValue
from cleveragents.domain.plan import Node
from cleveragents.domain.usage import Usage
from cleveragents.infrastructure.purses import TrackerPurses
from cleveragents.providers.model_access.billing import CallFailed
from cleveragents.providers.model_access.call import Answer
from cleveragents.providers.pricing import Price, PriceTable
from conversationkit import InMemoryConversations

MODEL = "test:small"
OTHER = "test:large"
PRICES = PriceTable(
    {
        MODEL: Price(input_mtok=1, output_mtok=2),
        OTHER: Price(input_mtok=10, output_mtok=20),
    }
)
USAGE = Usage(input_tokens=100, output_tokens=20)
#: What one answer of `MODEL` costs with that usage.
COST = Money.of("0.00014")


def say(text, **options):
    return ModelResponse(parts=[TextPart(text)], finish_reason="stop", **options)


def use(*calls):
    """An answer that calls tools: `use(("read_file", {"path": "a"}), …)`."""
    parts = [
        ToolCallPart(name, args, tool_call_id=f"{name}-{at}")
        for at, (name, args) in enumerate(calls)
    ]
    return ModelResponse(parts=parts, finish_reason="tool_call")


def fails(error=None, billed="no", usage=None):
    return CallFailed(error or ConnectionRefusedError("no route"), usage, billed)


class ScriptedLine:
    """Answers one call after the other; a function is called with the call."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.calls = []
        self.checked = []

    def check(self, model, base_url=None):
        self.checked.append((model, base_url))

    def request(self, call, *, stop=None, on_text=None):  # noqa: ARG002  # as the protocol
        self.calls.append(call)
        answer = self.answers.pop(0)
        if callable(answer):
            answer = answer(call)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Answer):
            return answer
        if on_text is not None and answer.text:
            on_text(answer.text)
        return Answer(answer, USAGE)

    def results(self, at=-1):
        """What the tools gave that a call tells about, newest message only."""
        return [
            part.content
            for part in self.calls[at].messages[-1].parts
            if isinstance(part, ToolReturnPart)
        ]

    def told(self, at=-1):
        """Everything that a call says in our own words."""
        return "\n".join(
            part.content
            for message in self.calls[at].messages
            if isinstance(message, ModelRequest)
            for part in message.parts
            if isinstance(part, UserPromptPart)
        )


@dataclass
class Desk:
    """Everything for model actors on one world of attempts."""

    world: object
    tracker: object
    line: ScriptedLine = field(default_factory=ScriptedLine)
    conversations: object = field(default_factory=InMemoryConversations)
    errors: ErrorRecoveryService = field(
        default_factory=lambda: ErrorRecoveryService(chance=lambda: 0.0)
    )
    journal: MemoryToolJournal = field(default_factory=MemoryToolJournal)
    waits: list = field(default_factory=list)
    spent: list = field(default_factory=list)

    def parts(self, **given):
        known = {
            "line": self.line,
            "prices": PRICES,
            "errors": self.errors,
            "conversations": self.conversations,
            "tools": llm_tools(self.journal, self.world.workspace.changes.root),
            "root": self.world.workspace.changes.root,
            "pause": lambda _, seconds: self.waits.append(seconds),
        }
        return LlmParts(**{**known, **given})

    def node(self, prompt="Do it", *, model=MODEL, name="work", tools=None, **given):
        known = {one: given.pop(one) for one in list(given) if one in NODE_OPTIONS}
        return Node(name=name, actor=LlmValue(model, prompt, **given), tools=tools, **known)

    def run(self, *answers, node=None, parts=None, budget=None, **given):
        """Run one attempt; the answers follow those that are left."""
        self.line.answers += answers
        node = node or self.node()
        payer = Payer(plan_id="p-1", node=node.name, actor="llm")
        if budget is not None:
            self.tracker.set_limit(Limit("plan", budget, name="p-1"))
        purse = TrackerPurses(self.tracker).open(payer, self.spent.append)
        with self.world.attempt(node, purse=purse, **given) as attempt:
            self.attempt = attempt
            return LlmActor(node.actor, parts or self.parts()).run(attempt)

    def balance(self):
        return self.tracker.balance("plan", "p-1")


NODE_OPTIONS = frozenset({"outputs", "context", "writes", "recovery", "inputs"})
