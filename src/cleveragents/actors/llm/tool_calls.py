"""The calls of tools that a model wants: carried out in order, told to it, and done once more."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.tools import ToolDefinition

from cleveragents.actors.json_value import as_json
from cleveragents.actors.llm.talk import utf8
from cleveragents.actors.tool import Permission
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import CleverAgentsError, RequestError, SandboxError, StoreError
from cleveragents.domain.redaction import redact_to

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolCallPart

    from cleveragents.actors.llm.talk import Talk
    from cleveragents.actors.tool_service import ToolService
    from cleveragents.application.attempts import AttemptContext

#: The same tool with the same error so often in one attempt is a loop.
REPEATS_MAX: Final = 3
_LOGGED_CHARS: Final = 200
_SEEN: Final = "sha256"


@dataclass(slots=True)
class ToolCalls:
    """Carries out what a model calls, for one attempt; for the one thread that runs it."""

    service: ToolService
    attempt: AttemptContext
    #: Whether a call was done once more, so that the sandbox is not as it was.
    has_repeated: bool = field(default=False, init=False)
    _failures: Counter[tuple[str, str]] = field(default_factory=Counter, init=False)

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Return the tools that the node allows, as a model wants to be told."""
        allowed = self.attempt.node.tools
        return tuple(
            ToolDefinition(
                name=tool.name, description=tool.description, parameters_json_schema=tool.schema()
            )
            for tool in self.service.registry.tools(allowed)
            if tool.permission in self.service.limits.permissions
        )

    def carry_out(self, calls: list[ToolCallPart]) -> list[ToolReturnPart]:
        """Carry out calls in their order; what fails is told to the model, and raises nothing.

        A question to the user is raised, and so is the same failure for the third time.
        """
        return [self._carried_out(call) for call in calls]

    def repeat(self, talk: Talk) -> str | None:
        """Do once more what changed files, in a sandbox that knows nothing of it yet.

        Return why the conversation cannot go on, if it cannot: a file that the model saw is not
        what it was, because others changed it meanwhile, or a change does not work any more.
        """
        for response, results in talk.exchanges():
            for call in response.tool_calls:
                result = results.get(call.tool_call_id)
                if result is not None and (why := self._repeated(call, result)) is not None:
                    return why
        return None

    def _carried_out(self, call: ToolCallPart) -> ToolReturnPart:
        self.attempt.stop.raise_if_stopped()
        self.attempt.log(redact_to(f"-> {call.tool_name} {_shown(call)}", _LOGGED_CHARS))
        seen = self._seen(call)
        try:
            text = self._call(call)
        except StoreError:
            raise  # nothing of ours is kept any more; no model can help there
        except Exception as error:  # noqa: BLE001  # a tool may raise anything, and the model is told
            self._raise_if_not_for_the_model(call, error)
            return _result(call, f"Error: {_told(error)}", seen, failed=True)
        return _result(call, text, seen, failed=False)

    def _call(self, call: ToolCallPart) -> str:
        arguments = _arguments(call)
        allowed = self.attempt.node.tools
        return self.service.call(self.attempt, call.tool_name, arguments, allowed=allowed).text

    def _raise_if_not_for_the_model(self, call: ToolCallPart, error: Exception) -> None:
        if _category(error) is ErrorCategory.QUESTION:
            raise error
        what = (call.tool_name, _told(error))
        self._failures[what] += 1
        if self._failures[what] >= REPEATS_MAX:
            raise RequestError(
                f"The model called `{call.tool_name}` {REPEATS_MAX} times with the same error:"
                f" {_told(error):.500}",
                code="CA5208",
                facts={"tool": call.tool_name, "category": ErrorCategory.LOOP},
                hint="Do something else than before",
            ) from None

    def _repeated(self, call: ToolCallPart, result: ToolReturnPart) -> str | None:
        seen = result.metadata if isinstance(result.metadata, dict) else {}
        if seen != self._seen(call):
            return f"{_path(call)!r} was changed by others since the model saw it"
        if result.outcome != "success" or not self._changes_files(call):
            return None
        self.has_repeated = True
        try:
            self._call(call)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is, the conversation begins anew
            return f"`{call.tool_name}` does not work any more: {_told(error):.500}"
        return None

    def _changes_files(self, call: ToolCallPart) -> bool:
        known = self.service.registry.tools((call.tool_name,))
        return any(tool.permission is not Permission.READ and not tool.outside for tool in known)

    def _seen(self, call: ToolCallPart) -> dict[str, str]:
        """Return the mark of the file that a call is about, as it is before the call."""
        path = _path(call)
        if path is None:
            return {}
        files = self.attempt.files
        try:
            return {_SEEN: hashlib.sha256(files.read(path)).hexdigest()}
        except (SandboxError, RequestError):
            return {_SEEN: ""}  # no file: that may change, too


def _arguments(call: ToolCallPart) -> object:
    try:
        return call.args_as_dict(raise_if_invalid=True)
    except (ValueError, AssertionError):
        return call.args  # no JSON object: the tool refuses it, and says how it is called


def _path(call: ToolCallPart) -> str | None:
    arguments = _arguments(call)
    path = arguments.get("path") if isinstance(arguments, dict) else None
    return path if isinstance(path, str) else None


def _result(
    call: ToolCallPart, text: str, seen: dict[str, str], *, failed: bool
) -> ToolReturnPart[Any]:
    return ToolReturnPart(
        tool_name=call.tool_name,
        content=utf8(text),
        tool_call_id=call.tool_call_id,
        # Kept with the result, and never sent to the model.
        metadata=seen or None,
        outcome="failed" if failed else "success",
    )


def _told(error: Exception) -> str:
    """Return an error as a model is told: what is wrong, and the way out."""
    if not isinstance(error, CleverAgentsError):
        return redact_to(f"{type(error).__name__}: {error}", 2_000)
    hint = f" ({error.hint})" if error.hint else ""
    return redact_to(f"{error.message}{hint}", 8_000)


def _category(error: Exception) -> object:
    return error.facts.get("category") if isinstance(error, CleverAgentsError) else None


def _shown(call: ToolCallPart) -> str:
    arguments = _arguments(call)
    return as_json(arguments) if isinstance(arguments, dict) else repr(arguments)
