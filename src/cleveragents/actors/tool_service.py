"""Calls of tools: allowed, checked, bounded in time and size, and each one on record."""

from __future__ import annotations

import contextvars
import threading
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cleveragents.actors.building import kind_of
from cleveragents.actors.cut_text import without_middle
from cleveragents.actors.json_value import as_json
from cleveragents.actors.tool import Permission, Tool, ToolCall
from cleveragents.actors.tool_journal import ToolRecord
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.redaction import redact, redact_to
from cleveragents.domain.stop_signal import Stopped, StopSignal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from cleveragents.actors.tool_journal import ToolJournal
    from cleveragents.actors.tool_registry import ToolRegistry
    from cleveragents.application.attempts import AttemptContext

_ARGUMENT_CHARS_MAX: Final = 500
_ERROR_CHARS_MAX: Final = 1_000
_OUT_OF_TIME: Final = "the tool is out of time"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered; `cut` says that the answer was longer."""

    call_id: str
    tool: str
    text: str
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLimits:
    """What calls may do at most, and how patient the service is."""

    permissions: frozenset[Permission] = frozenset(Permission)
    #: Longer answers lose their middle: models pay for every character.
    result_chars_max: int = 60_000
    #: How long a tool that was asked to stop may take to do so, before it is left alone.
    grace_s: float = 2.0


@dataclass(frozen=True, slots=True)
class ToolService:
    """Calls tools for actors; any number of threads may share it.

    Each call runs on a thread of its own, in the context of its caller, and is recorded when it
    ends, whatever came of it: what the caller got is on record before the caller gets it. A tool
    that does not heed its stop signal is left alone after a grace; nobody waits for it.
    """

    registry: ToolRegistry
    journal: ToolJournal
    limits: ToolLimits = ToolLimits()
    clock: Callable[[], float] = field(default=time.time)
    new_id: Callable[[], str] = field(default=lambda: f"t-{uuid.uuid4().hex[:12]}")

    def call(
        self,
        attempt: AttemptContext,
        name: str,
        arguments: object,
        *,
        allowed: Collection[str] | None = None,
    ) -> ToolResult:
        """Call a tool; what is not among the names that are `allowed` is refused with CA5202."""
        call_id, began_s, began = self.new_id(), time.monotonic(), self.clock()
        outcome: dict[str, Any] = {}
        try:
            result = self._answer(attempt, name, arguments, allowed, call_id)
            outcome = {"result_chars": len(result.text)}
        except BaseException as error:
            code = getattr(error, "code", None)
            outcome = {
                "error_code": code if isinstance(code, str) else type(error).__name__,
                "error": redact_to(str(error), _ERROR_CHARS_MAX),
            }
            raise
        finally:
            self.journal.record(
                ToolRecord(
                    call_id=call_id,
                    plan_id=attempt.plan_id,
                    node=attempt.instance,
                    attempt=attempt.attempt,
                    actor=kind_of(attempt.node.actor),
                    tool=redact_to(str(name), _ARGUMENT_CHARS_MAX),
                    arguments=_shown(arguments),
                    at=began,
                    duration_s=round(time.monotonic() - began_s, 6),
                    **outcome,
                )
            )
        return result

    def _answer(
        self,
        attempt: AttemptContext,
        name: str,
        arguments: object,
        allowed: Collection[str] | None,
        call_id: str,
    ) -> ToolResult:
        attempt.stop.raise_if_stopped()
        tool = self.registry.get(name)
        self._check_permission(tool, allowed)
        call = ToolCall(call_id, attempt, tool.accepted(arguments), StopSignal())
        text = self._run(tool, call)
        shown = without_middle(text, self.limits.result_chars_max)
        return ToolResult(call_id, name, shown, cut=shown is not text)

    def _check_permission(self, tool: Tool, allowed: Collection[str] | None) -> None:
        named = allowed is None or tool.name in allowed
        if named and tool.permission in self.limits.permissions:
            return
        rule = f"`tools` of its node must name it, got {', '.join(allowed or ()) or 'none'}"
        raise SandboxError(
            f"The tool `{tool.name}` is not allowed here: "
            + (f"tools that {tool.permission} are not" if named else rule),
            code="CA5202",
            facts={"tool": tool.name, "category": ErrorCategory.TOOL_DENIED},
        )

    def _run(self, tool: Tool, call: ToolCall) -> str:
        """Run a tool on a thread; wait for its end, its time limit, or a stop and the grace."""
        done: Future[str] = Future()
        woken = threading.Event()
        done.add_done_callback(lambda _: woken.set())
        unlink = call.attempt.stop.when_stopped(call.stop.stop)
        call.stop.when_stopped(lambda _: woken.set())
        # A daemon, because a tool that hangs for ever must not keep the interpreter alive.
        worker = threading.Thread(
            target=contextvars.copy_context().run,
            args=(_work, tool, call, done),
            name=f"ca-tool-{call.id}",
            daemon=True,
        )
        try:
            worker.start()
            woken.wait(tool.timeout_s)
            if not done.done():
                call.stop.stop(_OUT_OF_TIME)
            return done.result(None if done.done() else self.limits.grace_s)
        except TimeoutError as error:
            if done.done() and done.exception() is error:
                raise
            raise self._gave_up(tool, call, hung=True) from None
        except Stopped:
            raise self._gave_up(tool, call, hung=False) from None
        finally:
            unlink()
            # Whoever is left alone, or still works because we were interrupted, shall end.
            call.stop.stop("the call has ended")

    def _gave_up(self, tool: Tool, call: ToolCall, *, hung: bool) -> BaseException:
        if call.stop.reason != _OUT_OF_TIME:
            return Stopped(call.stop.reason or "stopped by the tool")
        return SandboxError(
            f"The tool `{tool.name}` did not end within its {tool.timeout_s:g} s",
            code="CA5005",
            facts={"tool": tool.name, "category": ErrorCategory.TOOL_TIMEOUT, "hung": hung},
            hint="Ask for less at once",
        )


def _work(tool: Tool, call: ToolCall, done: Future[str]) -> None:
    try:
        done.set_result(tool.run(call))
    except BaseException as error:  # noqa: BLE001  # handed to the caller
        done.set_exception(error)


def _shown(arguments: object) -> str:
    """Return arguments for the record: secrets go first, then what is long is cut."""
    if not isinstance(arguments, Mapping):
        return redact_to(repr(arguments), _ARGUMENT_CHARS_MAX)
    cut = {
        str(name): redact_to(value if isinstance(value, str) else repr(value), _ARGUMENT_CHARS_MAX)
        for name, value in arguments.items()
    }
    # Again as a whole: a secret may be known only by the name in front of it.
    return redact(as_json(cut))
