"""What our layer adds to a request of a model that answers at once.

A request of ours is let through, admitted by the budget, sent, kept durably with its bill, and
paid; all of it is in a store on the disk before the answer is used. The peer is pydantic-ai alone:
the same class, stream and server, and nothing kept. The model is our loopback server in a process
of its own, which answers at once; pydantic-ai's `FunctionModel`, which needs no wire, shows what
our layer costs by itself. Contestants take turns in one run; of each, the median round counts.
Real models take seconds to answer: there the same milliseconds are a thousandth.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from _yardstick import Goals
from cleveragents.actors.llm.building import llm_tools
from cleveragents.actors.llm.model_calls import ModelCalls
from cleveragents.actors.llm.parts import Line, LlmParts
from cleveragents.actors.llm.talk import Talk
from cleveragents.actors.tool_journal import MemoryToolJournal
from cleveragents.application.attempts import AttemptContext, Payer
from cleveragents.application.services.error_recovery_service import ErrorRecoveryService
from cleveragents.domain.budget import Limit
from cleveragents.domain.plan import LlmActor, Node
from cleveragents.domain.stop_signal import StopSignal
from cleveragents.domain.usage import Usage
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.purses import TrackerPurses
from cleveragents.infrastructure.sqlite_conversations import SqliteConversations
from cleveragents.infrastructure.store import Store
from cleveragents.providers.model_access.call import Answer, Call
from cleveragents.providers.model_access.line import ModelLine
from cleveragents.providers.pricing import PriceTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

MODEL: Final = "openai:gpt-5.2"
SYSTEM: Final = "You are one of several engineers. " * 40
TASK: Final = "Say what this code does. " * 80
REQUESTS: Final = 64
ROUNDS: Final = 7
AT_ONCE: Final = (1, 16)
COMMITS: Final = 3
GOAL_PERCENT: Final = 5.0
#: A call has an end, ours and theirs: pydantic-ai watches over that in its own time.
SETTINGS: Final[ModelSettings] = {
    "max_tokens": 500,
    "timeout": 600.0,
    "request_timeout": 600.0,
    "max_retries": 0,
}
_SERVER: Final = """\
import sys
from cleveragents.testing import ModelServer
with ModelServer(lambda asked: "It adds two numbers.") as server:
    print(server.openai_url, flush=True)
    sys.stdin.read()
"""


@contextmanager
def served() -> Iterator[str]:
    """Run the model server in a process of its own, so that its work is nobody's overhead."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


def messages() -> list[Any]:
    """Return what is asked."""
    return [ModelRequest(parts=[SystemPromptPart(SYSTEM), UserPromptPart(TASK)])]


class FunctionLine:
    """A line to a function: the same layer above, and no wire below."""

    def __init__(self) -> None:
        self._model = FunctionModel(lambda *_: ModelResponse(parts=[TextPart("It adds.")]))

    def check(self, model: str, base_url: str | None = None) -> None:
        """Let every model be asked."""

    def request(self, call: Any, *, stop: Any = None, on_text: Any = None) -> Answer:  # noqa: ARG002  # as the protocol
        """Call the function in a loop of this thread."""
        response = asyncio.run(self._model.request(call.messages, None, ModelRequestParameters()))
        return Answer(response, Usage(input_tokens=800, output_tokens=4))


@dataclass(frozen=True)
class Desk:
    """Our layer, with everything durable in one store."""

    parts: LlmParts
    store: Store
    attempt: AttemptContext
    names: Iterator[int]
    talks: deque[Talk]

    def prepare(self) -> None:
        """Begin the conversations of one round: that is once for a node, and not for a request."""
        for _ in range(REQUESTS):
            self.talks.append(
                Talk(self.parts.conversations.open("p-1", f"n{next(self.names)}", "d"))
            )

    def ask(self) -> None:
        """Ask one question: let through, admitted, sent, kept and paid."""
        talk = self.talks.popleft()
        talk.begin(SYSTEM, TASK)
        value = self.attempt.node.actor
        assert isinstance(value, LlmActor), "the node asks a model"
        ModelCalls(self.parts, self.attempt, value, (), [MODEL]).ask(talk)
        assert talk.last is not None, "it was answered"

    def commit(self) -> None:
        """Do what the disk has to do for one question: promise, keep and pay."""
        for _ in range(COMMITS):
            self.store.write(lambda tx: tx.event("bench", {"text": TASK}, at=0.0))


_NO_BENCH: Any = None


def desk(opened: ExitStack, folder: Path, line: Line, base_url: str | None) -> Desk:
    """Return our layer on a new store."""
    store = opened.enter_context(Store(folder / f"{type(line).__name__}.db"))
    tracker = opened.enter_context(DurableCostTracker(store))
    tracker.set_limit(Limit("plan", 1000, name="p-1"))
    parts = LlmParts(
        line=line,
        prices=PriceTable(),
        errors=ErrorRecoveryService(),
        conversations=SqliteConversations(store),
        tools=llm_tools(MemoryToolJournal(), folder),
    )
    value = LlmActor(MODEL, TASK, base_url=base_url, tokens_max=500)
    payer = Payer(plan_id="p-1", node="n", actor="llm")
    attempt = AttemptContext(
        plan_id="p-1",
        goal="g",
        node=Node(name="n", actor=value),
        instance="n",
        attempt=1,
        inputs={},
        bench=_NO_BENCH,
        purse=TrackerPurses(tracker).open(payer, lambda _: None),
        stop=StopSignal(),
        log=lambda _: None,
    )
    return Desk(parts, store, attempt, itertools.count(), deque())


def prepare(*desks: Desk) -> None:
    """Let each desk have a conversation for every request of a round."""
    for one in desks:
        if not one.talks:
            one.prepare()


def bare(line: ModelLine, url: str) -> None:
    """Ask by our line, with nothing around it."""
    line.request(Call(model=MODEL, messages=messages(), tokens_max=500, base_url=url))


def peer(model: Model[Any], at_once: int, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    """Return pydantic-ai alone, as its users have it: so many requests at once in one loop."""

    async def one() -> None:
        async with model_request_stream(
            model, messages(), model_settings=SETTINGS, instrument=False
        ) as stream:
            async for _ in stream:
                pass
        assert stream.get().parts

    async def some(count: int) -> None:
        for _ in range(count):
            await one()

    async def everything() -> None:
        await asyncio.gather(*(some(REQUESTS // at_once) for _ in range(at_once)))

    return lambda: loop.run_until_complete(everything())


def in_threads(ask: Callable[[], object], at_once: int) -> Callable[[], None]:
    """Return ours: so many threads at once, as the runner has them."""

    def some() -> None:
        for _ in range(REQUESTS // at_once):
            ask()

    def everything() -> None:
        threads = [threading.Thread(target=some) for _ in range(at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return everything


def measured(
    contestants: dict[str, Callable[[], None]], prepare: Callable[[], None]
) -> dict[str, tuple[float, float]]:
    """Return the median wall and CPU milliseconds of a request, contestants in turns."""
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, work in contestants.items():
            prepare()
            wall, cpu = time.perf_counter(), time.process_time()
            work()
            spent = (time.perf_counter() - wall, time.process_time() - cpu)
            rounds[name].append((spent[0] * 1e3 / REQUESTS, spent[1] * 1e3 / REQUESTS))
    return {
        name: (
            statistics.median(wall for wall, _ in found),
            statistics.median(cpu for _, cpu in found),
        )
        for name, found in rounds.items()
    }


def main() -> None:
    """Measure and judge."""
    goals = Goals()
    os.environ["NO_PROXY"] = "127.0.0.1"
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(dir=".")))
        url = opened.enter_context(served())
        loop = asyncio.new_event_loop()
        opened.callback(loop.close)
        opened.callback(lambda: loop.run_until_complete(loop.shutdown_asyncgens()))
        line = opened.enter_context(ModelLine())
        ours = desk(opened, folder, line, url)
        by_function = desk(opened, folder, FunctionLine(), None)
        model = OpenAIChatModel("gpt-5.2", provider=OpenAIProvider(base_url=url, api_key="none"))
        print(f"{'at once':>7}  {'contestant':<28} {'wall ms':>8} {'cpu ms':>8}")
        for at_once in AT_ONCE:
            found = measured(
                {
                    "pydantic-ai, loopback": peer(model, at_once, loop),
                    "our line alone, loopback": in_threads(lambda: bare(line, url), at_once),
                    "ours, loopback": in_threads(ours.ask, at_once),
                    "the commits of ours alone": in_threads(ours.commit, at_once),
                    "ours, FunctionModel": in_threads(by_function.ask, at_once),
                },
                lambda: prepare(ours, by_function),
            )
            for name, (wall, cpu) in found.items():
                print(f"{at_once:>7}  {name:<28} {wall:>8.2f} {cpu:>8.2f}")
            walls = {name: wall for name, (wall, _) in found.items()}
            theirs, mine = walls["pydantic-ai, loopback"], walls["ours, loopback"]
            disk = walls["the commits of ours alone"]
            print(f"{'':>7}  of what ours adds, the disk takes {disk:.2f} ms")
            goals.at_most(
                f"{at_once} at once: percent that ours adds to pydantic-ai's",
                100 * (mine / theirs - 1),
                GOAL_PERCENT,
            )
    goals.finish()


if __name__ == "__main__":
    main()
