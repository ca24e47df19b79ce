"""What our layer adds to a request of a model that answers at once.

**The yardstick is pydantic-ai as its users have it:** an `Agent` with the same tools and a limit
of usage, whose answer is streamed. **The overhead is what a request through our layer takes beyond
pydantic-ai's bare model request**: the same settings, messages, tools, server and stream, in one
loop, with nothing around it. All that is ours counts: the way to the loop's thread and back, the
bound of the prompt, the rate limit, gate and breaker, the promise of money, which is on the disk
before the request is sent, and the answer, which is kept and paid in a store before it is used;
and so does what our line saves, because it does not let the SDK walk along the body in vain
(`providers/model_access/shortcuts.py`) and has one clock for a call, not one for each event.
`overhead / yardstick` is to be at most 5 %, in time on the wall and of the processor, for a first
question and for one after a long conversation.
The same against a bare request with those shortcuts is told beside it: what our layer would add to
a pydantic-ai that had them.

The model is our loopback server in a process of its own. Contestants take turns; each round gives
a share, and the median of the shares counts. Real models take seconds to answer: there the same
parts of a millisecond are a ten-thousandth.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic_ai import Agent, Tool
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RequestUsage, UsageLimits

from _yardstick import Goals
from cleveragents.actors.llm.building import llm_tools
from cleveragents.actors.llm.model_calls import ModelCalls
from cleveragents.actors.llm.parts import LlmParts
from cleveragents.actors.llm.talk import Talk, written
from cleveragents.actors.llm.tool_calls import ToolCalls
from cleveragents.actors.tool_journal import MemoryToolJournal
from cleveragents.application.attempts import AttemptContext, Payer
from cleveragents.application.conversations import Turn
from cleveragents.application.services.error_recovery_service import ErrorRecoveryService
from cleveragents.domain.budget import Limit
from cleveragents.domain.money import Money
from cleveragents.domain.plan import LlmActor, Node
from cleveragents.domain.stop_signal import StopSignal
from cleveragents.domain.usage import Usage
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.purses import TrackerPurses
from cleveragents.infrastructure.sqlite_conversations import SqliteConversations
from cleveragents.infrastructure.store import Store
from cleveragents.providers.model_access.access import access_to
from cleveragents.providers.model_access.adapters import open_model
from cleveragents.providers.model_access.call import Answer, Call
from cleveragents.providers.model_access.line import ModelLine
from cleveragents.providers.model_access.token_bound import digest_of, input_bound, stamp
from cleveragents.providers.model_access.weights import Weights
from cleveragents.providers.pricing import PriceTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition

MODEL: Final = "openai:gpt-5.2"
SYSTEM: Final = "You are one of several engineers. " * 40
TASK: Final = "Say what this code does. " * 80
TOLD: Final = "Now look at the next function. " * 20
REPLY: Final = "It adds two numbers."
TOKENS_MAX: Final = 500
REQUESTS: Final = 32
ROUNDS: Final = 9
#: How many exchanges were before the question, and how many conversations go on at once.
SCENES: Final = ((0, 1), (0, 16), (8, 1), (8, 16))
GOAL_PERCENT: Final = 5.0
#: A call has an end, ours and theirs: pydantic-ai watches over that in its own time.
SETTINGS: Final[ModelSettings] = {
    "max_tokens": TOKENS_MAX,
    "timeout": 600.0,
    "request_timeout": 600.0,
}
_SERVER: Final = f"""\
import sys
from cleveragents.testing import ModelServer
with ModelServer(lambda asked: {REPLY!r}) as server:
    print(server.openai_url, flush=True)
    sys.stdin.read()
"""
_NO_BENCH: Any = None
YARDSTICK: Final = "pydantic-ai, Agent.run_stream"
BARE: Final = "pydantic-ai, bare request"
SHORT: Final = "  the same, with our shortcuts"
OURS: Final = "ours, all of it"

Work: TypeAlias = "Callable[[], None]"


@contextmanager
def served() -> Iterator[str]:
    """Run the model server in a process of its own, so that its work is nobody's overhead."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


@dataclass(frozen=True)
class Exchange:
    """A question and its answer, before the one that is measured."""

    request: ModelRequest
    response: ModelResponse


def said(depth: int, tools: tuple[ToolDefinition, ...], url: str) -> list[Exchange]:
    """Return a conversation so far, each answer marked as our line marks it."""
    found: list[Exchange] = []
    for number in range(depth):
        request = ModelRequest(parts=asked(number))
        messages = [*flat(found), request]
        call = Scene([], 1, tools, url).call(messages)
        usage = RequestUsage(input_tokens=800 + 100 * number, output_tokens=6)
        response = ModelResponse(parts=[TextPart(REPLY)], usage=usage, model_name="gpt-5.2")
        found.append(Exchange(request, stamp(response, digest_of(call))))
    return found


def asked(number: int) -> list[Any]:
    """Return what is new in a question."""
    return [UserPromptPart(TOLD)] if number else [SystemPromptPart(SYSTEM), UserPromptPart(TASK)]


def flat(exchanges: list[Exchange]) -> list[ModelMessage]:
    """Return all messages of a conversation."""
    return [one for exchange in exchanges for one in (exchange.request, exchange.response)]


@dataclass(frozen=True)
class Scene:
    """What all contestants do: so many questions, after the same words, with the same tools."""

    before: list[Exchange]
    at_once: int
    tools: tuple[ToolDefinition, ...]
    url: str

    def messages(self) -> list[ModelMessage]:
        """Return all that is sent."""
        return [*flat(self.before), ModelRequest(parts=asked(len(self.before)))]

    def call(self, messages: list[ModelMessage], weights: Weights | None = None) -> Call:
        """Return a question of ours."""
        return Call(
            model=MODEL,
            messages=messages,
            tools=self.tools,
            tokens_max=TOKENS_MAX,
            base_url=self.url,
            weights=weights or Weights(),
        )


# -- pydantic-ai ---------------------------------------------------------------------------


async def _tool(**_: object) -> str:
    return "never called here"


def agent(model: Model[Any], scene: Scene, loop: asyncio.AbstractEventLoop) -> Work:
    """Return an agent, as the documents of pydantic-ai show it."""
    tools = [
        Tool.from_schema(_tool, one.name, one.description, one.parameters_json_schema)
        for one in scene.tools
    ]
    asks: Agent[None, str] = Agent(
        model, system_prompt=SYSTEM, tools=tools, model_settings=SETTINGS
    )
    limits = UsageLimits(request_limit=50, total_tokens_limit=10_000_000)
    history = flat(scene.before) or None
    task = TOLD if scene.before else TASK

    async def one() -> None:
        async with asks.run_stream(task, message_history=history, usage_limits=limits) as result:
            assert await result.get_output() == REPLY

    return in_loop(one, scene, loop)


def bare(
    model: Model[Any],
    scene: Scene,
    loop: asyncio.AbstractEventLoop,
    settings: ModelSettings = SETTINGS,
) -> Work:
    """Return the request that an agent makes, and ours, with nothing around it."""
    parameters = ModelRequestParameters(function_tools=list(scene.tools))

    async def one() -> None:
        async with model_request_stream(
            model,
            scene.messages(),
            model_settings=settings,
            model_request_parameters=parameters,
            instrument=False,
        ) as stream:
            async for _ in stream:
                pass
        assert stream.get().parts

    return in_loop(one, scene, loop)


def in_loop(one: Callable[[], Any], scene: Scene, loop: asyncio.AbstractEventLoop) -> Work:
    """Return so many at once in one loop, as users of pydantic-ai have it."""

    async def some() -> None:
        for _ in range(REQUESTS // scene.at_once):
            await one()

    async def everything() -> None:
        await asyncio.gather(*(some() for _ in range(scene.at_once)))

    return lambda: loop.run_until_complete(everything())


# -- ours ----------------------------------------------------------------------------------


class EchoLine:
    """A line to nowhere: all of our layer but the way to a model."""

    def check(self, model: str, base_url: str | None = None) -> None:
        """Let every model be asked."""

    def request(self, call: Any, *, stop: Any = None, on_text: Any = None) -> Answer:  # noqa: ARG002  # as the protocol
        """Answer at once."""
        usage = RequestUsage(input_tokens=800, output_tokens=6)
        response = ModelResponse(parts=[TextPart(REPLY)], usage=usage, model_name="gpt-5.2")
        return Answer(stamp(response, digest_of(call)), Usage(input_tokens=800, output_tokens=6))


@dataclass(frozen=True)
class Desk:
    """Our layer, with everything durable in one store."""

    parts: LlmParts
    store: Store
    attempt: AttemptContext
    scene: Scene
    names: Iterator[int]
    talks: deque[Talk]
    #: Kept to the end of a round, because to forget a conversation is no part of a question.
    asked: deque[Talk]

    def prepare(self) -> None:
        """Begin the conversations of one round, up to the question that is measured."""
        self.asked.clear()
        while len(self.talks) < REQUESTS:
            self.talks.append(self._talk(f"n{next(self.names)}"))

    def ask(self) -> None:
        """Ask one question: let through, admitted, sent, kept and paid."""
        value = self.attempt.node.actor
        assert isinstance(value, LlmActor), "the node asks a model"
        talk = self.talks.popleft()
        ModelCalls(self.parts, self.attempt, value, self.scene.tools, [MODEL]).ask(talk)
        assert talk.last is not None, "it was answered"
        self.asked.append(talk)

    def commit(self) -> None:
        """Do what the disk has to do for one question: one write that waits, one that does not."""
        body = {"text": TASK}
        self.store.write(lambda tx: tx.event("bench", {}, at=0.0))
        self.store.write(lambda tx: tx.event("bench", body, at=0.0), sync=False)

    def _talk(self, node: str) -> Talk:
        talk = Talk(self.parts.conversations.open("p-1", node, "d"))
        for number, one in enumerate(self.scene.before):
            self._say(talk, number)
            # Marked for the very words of this conversation, as our line marks an answer to them.
            asked_for = digest_of(self.scene.call(talk.messages(), talk.weights))
            response = stamp(one.response, asked_for)
            turn = Turn(
                number=number + 1,
                attempt=1,
                model=MODEL,
                request=written(one.request),
                response=written(response),
                usage=Usage(),
                cost=Money(0),
            )
            self.parts.conversations.keep(talk.id, turn)
            talk.heard(turn, response)
        self._say(talk, len(self.scene.before))
        return talk

    @staticmethod
    def _say(talk: Talk, number: int) -> None:
        if number:
            talk.tell(TOLD)
        else:
            talk.begin(SYSTEM, TASK)


def desk(opened: ExitStack, folder: Path, line: Any, scene: Scene) -> Desk:
    """Return our layer on a new store."""
    folder.mkdir()
    store = opened.enter_context(Store(folder / "state.db"))
    tracker = opened.enter_context(DurableCostTracker(store))
    tracker.set_limit(Limit("plan", 1000, name="p-1"))
    parts = LlmParts(
        line=line,
        prices=PriceTable(),
        errors=ErrorRecoveryService(),
        conversations=SqliteConversations(store),
        tools=llm_tools(MemoryToolJournal(), folder),
    )
    value = LlmActor(MODEL, TASK, base_url=scene.url, tokens_max=TOKENS_MAX)
    attempt = AttemptContext(
        plan_id="p-1",
        goal="g",
        node=Node(name="n", actor=value),
        instance="n",
        attempt=1,
        inputs={},
        bench=_NO_BENCH,
        purse=TrackerPurses(tracker).open(
            Payer(plan_id="p-1", node="n", actor="llm"), lambda _: None
        ),
        stop=StopSignal(),
        log=lambda _: None,
    )
    return Desk(parts, store, attempt, scene, itertools.count(), deque(), deque())


@dataclass(frozen=True)
class Alone:
    """Our line, with nothing around it."""

    line: ModelLine
    scene: Scene
    calls: deque[Call]
    asked: deque[Call]

    def prepare(self) -> None:
        """Make the questions of one round; what is sent is weighed before the line gets it."""
        self.asked.clear()
        while len(self.calls) < REQUESTS:
            call = self.scene.call(self.scene.messages())
            input_bound(call)
            self.calls.append(call)

    def ask(self) -> None:
        """Ask one question."""
        call = self.calls.popleft()
        self.line.request(call)
        self.asked.append(call)


def in_threads(ask: Callable[[], object], scene: Scene, threads: ThreadPoolExecutor) -> Work:
    """Return so many at once in threads, as the runner has them."""

    def some(_: int) -> None:
        for _ in range(REQUESTS // scene.at_once):
            ask()

    def everything() -> None:
        list(threads.map(some, range(scene.at_once)))

    return everything


# -- measuring -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Round:
    """What one request took in one round: milliseconds on the wall, and of the processor."""

    wall: float
    cpu: float


def measured(contestants: dict[str, Work], prepare: list[Work]) -> dict[str, list[Round]]:
    """Return the rounds of each contestant; all take turns, and the first round warms up."""
    rounds: dict[str, list[Round]] = {name: [] for name in contestants}
    for number in range(ROUNDS + 1):
        for name, work in contestants.items():
            for one in prepare:
                one()
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            work()
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            if number:
                rounds[name].append(Round(wall * 1e3 / REQUESTS, cpu * 1e3 / REQUESTS))
    return rounds


def percent(rounds: dict[str, list[Round]], what: str, beyond: str) -> float:
    """Return what ours takes beyond another, as a share of the yardstick: the median of rounds."""
    shares: list[float] = [
        100 * (getattr(ours, what) - getattr(least, what)) / getattr(yardstick, what)
        for ours, least, yardstick in zip(
            rounds[OURS], rounds[beyond], rounds[YARDSTICK], strict=True
        )
    ]
    return statistics.median(shares)


def play(goals: Goals, folder: Path, depth: int, at_once: int) -> None:
    """Measure one scene and judge."""
    with ExitStack() as opened:
        url = opened.enter_context(served())
        loop = asyncio.new_event_loop()
        opened.callback(loop.close)
        opened.callback(lambda: loop.run_until_complete(loop.shutdown_asyncgens()))
        clients = AsyncExitStack()
        opened.callback(lambda: loop.run_until_complete(clients.aclose()))
        threads = opened.enter_context(ThreadPoolExecutor(at_once))
        line = opened.enter_context(ModelLine())
        scene = Scene([], at_once, (), url)
        first = desk(opened, folder / "tools", line, scene)
        tools = ToolCalls(first.parts.tools, first.attempt).definitions()
        scene = Scene(said(depth, tools, url), at_once, tools, url)
        ours = desk(opened, folder / "ours", line, scene)
        nowhere = desk(opened, folder / "nowhere", EchoLine(), scene)
        alone = Alone(line, scene, deque(), deque())
        theirs = OpenAIChatModel("gpt-5.2", provider=OpenAIProvider(base_url=url, api_key="none"))
        short = loop.run_until_complete(open_model(access_to(MODEL, url, {}), clients))
        rounds = measured(
            {
                YARDSTICK: agent(theirs, scene, loop),
                BARE: bare(theirs, scene, loop),
                SHORT: bare(short, scene, loop, {"max_tokens": TOKENS_MAX, "timeout": 600.0}),
                OURS: in_threads(ours.ask, scene, threads),
                "  our line alone": in_threads(alone.ask, scene, threads),
                "  ours but the line": in_threads(nowhere.ask, scene, threads),
                "  the two commits of ours": in_threads(ours.commit, scene, threads),
            },
            [ours.prepare, nowhere.prepare, alone.prepare],
        )
    print(f"\n{at_once} at once, {depth} exchanges before   {'wall ms':>8} {'cpu ms':>8}")
    for name, found in rounds.items():
        wall, cpu = (statistics.median(getattr(one, what) for one in found) for what in _KINDS)
        print(f"  {name:<32} {wall:>8.2f} {cpu:>8.2f}")
    for what in _KINDS:
        told = f"{what}: percent of the yardstick that ours adds to the bare request"
        goals.at_most(told, percent(rounds, what, BARE), GOAL_PERCENT)
        print(f"         {what}: to the one with shortcuts {percent(rounds, what, SHORT):.1f}")


_KINDS: Final = ("wall", "cpu")


def main() -> None:
    """Measure and judge."""
    goals = Goals()
    os.environ["NO_PROXY"] = "127.0.0.1"
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for depth, at_once in SCENES:
            place = Path(folder) / f"{depth}-{at_once}"
            place.mkdir()
            play(goals, place, depth, at_once)
    goals.finish()


if __name__ == "__main__":
    main()
