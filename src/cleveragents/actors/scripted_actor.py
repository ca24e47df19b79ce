"""An actor that does the same steps on every run, for tests, demos and trying a plan out."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cleveragents.actors.captured_output import captured
from cleveragents.actors.exact_edit import edited
from cleveragents.actors.pause import Pause, pause
from cleveragents.application.attempts import ActorResult
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.plan_actors import (
    DeleteStep,
    EditStep,
    FailStep,
    PrintStep,
    SleepStep,
    SpendStep,
    Step,
    WriteStep,
)
from cleveragents.domain.stop_signal import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.application.attempts import AttemptContext
    from cleveragents.domain.plan_actors import ScriptedActor as ScriptedValue


@dataclass(frozen=True, slots=True)
class ScriptedActor:
    """Does its steps in their order; what they print is the node's output."""

    value: ScriptedValue
    clock: Callable[[], float] = field(default=time.monotonic)
    pause: Pause = field(default=pause)

    def run(self, attempt: AttemptContext) -> ActorResult:
        """Do the steps; between any two, a stop is heeded."""
        began_s = self.clock()
        printed: list[str] = []
        for step in self.value.steps:
            attempt.stop.raise_if_stopped()
            if isinstance(step, SleepStep):
                self._sleep(attempt, began_s + step.until_s)
            else:
                _do(step, attempt, printed)
        text = "".join(f"{line}\n" for line in printed).encode("utf-8", "replace")
        return ActorResult(captured(text, attempt.node.outputs, of="the script"))

    def _sleep(self, attempt: AttemptContext, until_s: float) -> None:
        while (left_s := until_s - self.clock()) > 0:
            self.pause(attempt.stop, left_s)
            attempt.stop.raise_if_stopped()


def _do(step: Step, attempt: AttemptContext, printed: list[str]) -> None:
    match step:
        case WriteStep(path=path, text=text):
            attempt.files.write(path, text.encode("utf-8", "surrogateescape"))
        case EditStep(path=path, old=old, new=new):
            attempt.files.write(path, edited(path, attempt.files.read(path), old, new))
        case DeleteStep(path=path):
            attempt.files.remove(path)
        case PrintStep(text=text):
            attempt.log(text)
            printed.append(text)
        case SpendStep(amount=amount):
            attempt.purse.reserve(amount).settle(amount)
        case FailStep() if step.attempts is None or attempt.attempt <= step.attempts:
            raise _failure(step)


def _failure(step: FailStep) -> BaseException:
    if step.category is ErrorCategory.CANCELLED:
        return Stopped(step.message)
    return SandboxError(step.message, code="CA5206", facts={"category": step.category})
