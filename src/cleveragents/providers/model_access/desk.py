"""The loop's side of the line: the thread in which all clients live and all calls are carried."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.errors import CleverAgentsError
from cleveragents.domain.stop_signal import Stopped
from cleveragents.providers.model_access.adapters import OPENED, open_model
from cleveragents.providers.model_access.billing import CallFailed, billed_after, ended, is_whole
from cleveragents.providers.model_access.call import Answer
from cleveragents.providers.model_access.token_bound import stamp
from cleveragents.providers.model_access.usage_of import usage_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_ai.messages import AgentStreamEvent
    from pydantic_ai.models import Model, StreamedResponse
    from pydantic_ai.settings import ModelSettings

    from cleveragents.providers.model_access.access import Access
    from cleveragents.providers.model_access.call import Call

__all__ = ["Desk", "Ticket"]

#: A caller waits this much longer than its call may last, for a loop that is late.
_GRACE_S: Final = 5.0
#: How long calls that were told to end may take to close their connections.
_FAREWELL_S: Final = 2.0
#: Pieces of text are passed on together: to wake a thread for each would cost more than it tells.
_TELL_S: Final = 0.05


class Ticket:
    """One call on its way; the loop reports to the one thread that waits."""

    def __init__(self, call: Call, access: Access, digest: str, *, tells: bool) -> None:
        self.call = call
        self.access = access
        self.digest = digest
        self.tells = tells
        #: How far the call came; of the loop's thread alone.
        self.stream: StreamedResponse | None = None
        self._texts: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._reports: queue.SimpleQueue[str | Answer | BaseException] = queue.SimpleQueue()
        self._stopped_lock = threading.Lock()  # guards: _stopped
        self._stopped: Stopped | None = None  # set once; read as one reference

    def tell(self, text: str) -> None:
        """Tell the waiting thread a piece of text, soon; in the loop's thread."""
        self._texts.append(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_TELL_S, self._pass_on)

    def report(self, news: Answer | BaseException) -> None:
        """Tell the waiting thread how the call ended, and all text before; in the loop's thread."""
        self._pass_on()
        self._reports.put(news)

    def _pass_on(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._reports.put("".join(self._texts))
            self._texts.clear()

    def give_up(self, reason: str) -> None:
        """Let the waiting thread go at once, also past text that it has not heard yet."""
        last = Stopped(reason)
        with self._stopped_lock:
            # The first reason stays: a cancelled task reports too, and knows nothing but that.
            if self._stopped is None:
                self._stopped = last
            first = self._stopped
        self._reports.put(first)

    def wait(self, on_text: Callable[[str], object] | None) -> Answer:
        """Wait for the end of the call, and pass on its text meanwhile."""
        deadline = time.monotonic() + self.call.timeout_s + _GRACE_S
        while True:
            try:
                news = self._reports.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                late = TimeoutError(f"No answer after {self.call.timeout_s} s")
                raise CallFailed(late, None, "unknown") from late
            if isinstance(news, Answer):
                return news
            if self._stopped is not None:
                raise self._stopped
            if isinstance(news, BaseException):
                raise news
            if on_text is not None:
                on_text(news)


class Desk:
    """An event loop in a thread, with the clients that were opened in it.

    `post`, `cancel` and `close` may be called by any thread, and nothing may be posted after
    `close`: what was posted before it is begun before it, because the loop keeps their order.
    All other state is touched by the loop's thread alone.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._clients = AsyncExitStack()
        self._models: dict[Access, asyncio.Task[Model[Any]]] = {}
        self._running: dict[Ticket, asyncio.Task[None]] = {}
        # A daemon: a line that nobody closed must not keep the interpreter alive.
        self._thread = threading.Thread(target=self._run, name="ca-models", daemon=True)
        self._thread.start()

    def post(self, ticket: Ticket) -> None:
        """Begin a call."""
        self._loop.call_soon_threadsafe(self._begin, ticket)

    def cancel(self, ticket: Ticket, reason: str) -> None:
        """End a call: its caller leaves at once, and its connection is closed."""
        ticket.give_up(reason)
        with contextlib.suppress(RuntimeError):  # the loop is closed, and with it the connection
            self._loop.call_soon_threadsafe(self._drop, ticket)

    def close(self) -> None:
        """End all calls, close the clients and wait for the thread."""
        with contextlib.suppress(RuntimeError):  # closed before
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(2 * _FAREWELL_S)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        async with self._clients:
            await self._closing.wait()
            for ticket in tuple(self._running):
                ticket.give_up("the line to the models was closed")
                self._drop(ticket)
            if self._running:
                await asyncio.wait(tuple(self._running.values()), timeout=_FAREWELL_S)

    def _begin(self, ticket: Ticket) -> None:
        self._running[ticket] = self._loop.create_task(self._carry(ticket))

    def _drop(self, ticket: Ticket) -> None:
        task = self._running.get(ticket)
        if task is not None:
            task.cancel()

    async def _carry(self, ticket: Ticket) -> None:
        """Carry one call and report how it ended, whatever happens."""
        try:
            ticket.report(await self._answered(ticket))
        except CleverAgentsError as error:
            ticket.report(error)
        except Exception as error:  # noqa: BLE001  # whatever an SDK raises is the caller's to judge
            ticket.report(_failure(error, ticket.stream))
        except BaseException:
            ticket.give_up("the call was cancelled")
            raise
        finally:
            del self._running[ticket]

    async def _answered(self, ticket: Ticket) -> Answer:
        from pydantic_ai.exceptions import ModelConnectionError, ModelRequestTimeout

        model, timeout_s = await self._model(ticket.access), ticket.call.timeout_s
        try:
            # One clock for the whole call: pydantic-ai would wind up another for each event.
            async with asyncio.timeout(timeout_s):
                await _stream(model, ticket)
        except (TimeoutError, ModelConnectionError) as error:
            # If nothing but a farewell was lost, the answer is not asked, and paid for, again.
            if ticket.stream is None or not is_whole(ticket.stream):
                if isinstance(error, TimeoutError):
                    raise ModelRequestTimeout(model.model_name, timeout_s) from error
                raise
        assert ticket.stream is not None
        response = stamp(ticket.stream.get(), ticket.digest)
        return Answer(response, usage_of(response.usage))

    async def _model(self, access: Access) -> Model[Any]:
        opening = self._models.get(access)
        if opening is None:
            opening = self._models[access] = self._loop.create_task(self._opened(access))
        if opening.done():
            return opening.result()
        # Others may wait for the same model: whoever is cancelled leaves it to them.
        return await asyncio.shield(opening)

    async def _opened(self, access: Access) -> Model[Any]:
        try:
            return await open_model(access, self._clients)
        except BaseException:
            del self._models[access]
            raise


async def _stream(model: Model[Any], ticket: Ticket) -> None:
    """Send the request and read its answer to the end."""
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.exceptions import ModelConnectionError
    from pydantic_ai.models import ModelRequestParameters

    opened: list[Any] = []
    OPENED.set(opened)
    async with model_request_stream(
        model,
        ticket.call.messages,
        model_settings=_settings(ticket.call, model),
        model_request_parameters=ModelRequestParameters(function_tools=list(ticket.call.tools)),
        instrument=False,
    ) as stream:
        ticket.stream = stream
        try:
            async for event in stream:
                text = _text_in(event) if ticket.tells else ""
                if text:
                    ticket.tell(text)
        except BaseException:
            # Nobody reads the rest: the provider must see that, and stop to generate.
            for response in opened:
                await response.aclose()
            await stream.cancel()
            raise
    if not ended(stream):
        name = model.model_name
        raise ModelConnectionError(name, "The answer ended before it was whole", phase="read")


def _settings(call: Call, model: Model[Any]) -> ModelSettings:
    settings: ModelSettings = {"max_tokens": call.tokens_max}
    # Bedrock's client has it built in, and pydantic-ai warns if it is asked for.
    if "timeout" not in model.unsupported_settings:
        settings["timeout"] = call.timeout_s
    if call.temperature is not None:
        settings["temperature"] = call.temperature
    return settings


def _text_in(event: AgentStreamEvent) -> str:
    # Kinds are words: classes would have to be imported anew for each event.
    if event.event_kind == "part_start" and event.part.part_kind == "text":
        return event.part.content
    if event.event_kind == "part_delta" and event.delta.part_delta_kind == "text":
        return event.delta.content_delta
    return ""


def _failure(error: Exception, stream: StreamedResponse | None) -> CallFailed:
    try:
        used = None if stream is None or not stream.usage.has_values() else stream.usage
        so_far = None if used is None else usage_of(used)
        return CallFailed(error, so_far, billed_after(error, stream))
    except Exception:  # noqa: BLE001  # whatever a stream holds: the caller must hear of its end
        return CallFailed(error, None, "unknown")
