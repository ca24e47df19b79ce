"""Asking the person at the terminal: how to go on with a node, or whether to apply."""

from __future__ import annotations

import os
import select
import sys
from typing import TYPE_CHECKING, Final

from cleveragents.application.services.attempt_order import Answer
from cleveragents.cli import output
from cleveragents.cli.table import one_line
from cleveragents.domain.error_record import Action

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.application.services.attempt_order import Question

#: How soon it is seen that nobody waits for the answer any more.
_LOOK_S: Final = 0.1
_LINE_BYTES_MAX: Final = 4096
_ANSWERS: Final = {
    "r": Action.RETRY,
    "retry": Action.RETRY,
    "s": Action.SKIP,
    "skip": Action.SKIP,
    "a": Action.ABORT,
    "abort": Action.ABORT,
}


def person_is_there() -> bool:
    """Say whether somebody can read a question and answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def told(question: Question) -> str:
    """Return a question with what helps to decide."""
    error = question.error
    attempts = "1 attempt" if question.attempt == 1 else f"{question.attempt} attempts"
    facts = {"fault": str(error.category), "decided": one_line(question.decision.reason)}
    return "\n".join(
        (
            f"Node `{one_line(question.node)}` failed after {attempts}: {one_line(error.message)}",
            output.facts(facts),
            output.facts(
                {
                    "r": "try it again",
                    "s": "skip it: what needs it goes on without it",
                    "a": "stop here; what is done is kept",
                    "or": "a word for the actor, and it is tried again",
                }
            ),
        )
    )


def answered(line: str) -> Answer | None:
    """Return what a line means; None when it says nothing."""
    text = line.strip()
    if not text:
        return None
    action = _ANSWERS.get(text.lower())
    return Answer(Action.FEEDBACK, text) if action is None else Answer(action)


def ask(question: Question, is_over: Callable[[], bool]) -> Answer:
    """Ask until there is an answer; whoever goes away, or is over, stops the node."""
    output.talk(told(question))
    while (line := read_line(is_over)) is not None:
        answer = answered(line)
        if answer is not None:
            return answer
        output.talk("Type r, s, a, or a word for the actor")
    return Answer()


def confirmed(text: str) -> bool:
    """Ask for a yes; everything else is a no."""
    output.talk(f"{text} [y/N]")
    line = read_line(lambda: False)
    return line is not None and line.strip().lower() in {"y", "yes"}


def read_line(is_over: Callable[[], bool]) -> str | None:
    """Return a line from the terminal; None at its end, or when it is over."""
    # The descriptor itself: what Python had read ahead, `select` would not see.
    descriptor = sys.stdin.fileno()
    while not is_over():
        if select.select([descriptor], [], [], _LOOK_S)[0]:
            data = os.read(descriptor, _LINE_BYTES_MAX)
            return data.decode("utf-8", "replace") if data else None
    return None
