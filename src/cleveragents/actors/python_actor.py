"""An actor that calls a Python function of the user."""

from __future__ import annotations

import importlib
import inspect
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from cleveragents.actors.json_value import plain_json
from cleveragents.application.attempts import ActorResult
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import SetupError
from cleveragents.domain.stop_signal import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from cleveragents.application.attempts import AttemptContext
    from cleveragents.domain.plan_actors import PythonActor as PythonValue


@dataclass(frozen=True, slots=True)
class PythonActor:
    """Calls `package.module:function` with the `AttemptContext`; what it returns is the output.

    The function runs unconfined, in this process and with its rights: it changes files by
    `attempt.files`, looks at `attempt.stop` when it works long, and raises when it could not.
    One that is `async` runs in an event loop of its own, and is cancelled at the stop.
    Modules are found where Python finds them, and then in `modules`.
    """

    value: PythonValue
    modules: Path | None = None

    def check(self) -> None:
        """Refuse, with CA5205, a function that is not there or cannot take an attempt."""
        self._function()

    def run(self, attempt: AttemptContext) -> ActorResult:
        """Call the function; a result that is no `ActorResult` is the output itself."""
        attempt.stop.raise_if_stopped()
        result = self._function()(attempt)
        if inspect.iscoroutine(result):
            result = _awaited(result, attempt)
        told = result if isinstance(result, ActorResult) else ActorResult(result)
        output = plain_json(told.output, of=f"`{self.value.function}`")
        return ActorResult(output, told.summary, told.facts)

    def _function(self) -> Callable[[AttemptContext], Any]:
        found = self._found()
        try:
            inspect.signature(found).bind(None)
        except (TypeError, ValueError) as error:
            says = f"it must take one argument, the attempt ({error})"
            raise self._unusable(says) from error
        return cast("Callable[[AttemptContext], Any]", found)

    def _found(self) -> Any:
        module, _, path = self.value.function.partition(":")
        self._make_importable()
        try:
            found: Any = importlib.import_module(module)
            for part in path.split("."):
                found = getattr(found, part)
        # The user's module may raise anything while it is imported.
        except Exception as error:
            raise self._unusable(f"{type(error).__name__}: {error}") from error
        return found

    def _unusable(self, says: str) -> SetupError:
        name = self.value.function
        return SetupError(
            f"The function `{name}` cannot be used as an actor: {says}",
            code="CA5205",
            facts={"function": name, "category": ErrorCategory.BAD_REQUEST},
            hint="Write `def function(attempt): …` in a module that Python can import",
        )

    def _make_importable(self) -> None:
        # Behind all others: a `json.py` of the user must not become the one of everybody.
        if self.modules is not None and str(self.modules) not in sys.path:
            sys.path.append(str(self.modules))


def _awaited(work: Coroutine[Any, Any, Any], attempt: AttemptContext) -> Any:
    """Run a coroutine in a loop of its own; the stop of the attempt cancels it."""
    import asyncio

    async def guarded() -> Any:
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
        forget = attempt.stop.when_stopped(lambda _: loop.call_soon_threadsafe(task.cancel))
        try:
            return await task
        finally:
            forget()

    try:
        return asyncio.run(guarded())
    except asyncio.CancelledError:
        raise Stopped(attempt.stop.reason or "cancelled") from None
