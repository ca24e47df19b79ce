"""The books of the model server: what was asked, what is charged, and what went wrong."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from cleveragents.domain.errors import RequestError
from cleveragents.testing.script import Asked, reply_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cleveragents.testing.billing import Bill
    from cleveragents.testing.dialects.dialect import Dialect, Prompt
    from cleveragents.testing.script import Answerable, Reply

Script: TypeAlias = (
    "Callable[[Asked], Answerable] | Sequence[Answerable] | Mapping[str, Sequence[Answerable]]"
)


class Desk:
    """Numbers requests, asks the script and keeps the bills; any thread may do each at any time.

    A function as the script is called without the lock, by several threads at once.
    """

    def __init__(self, script: Script) -> None:
        self._script = script if callable(script) else None
        self._lists: Mapping[str, Sequence[Answerable]] = {}
        if isinstance(script, Mapping):
            self._lists = script
        elif not callable(script):
            self._lists = {"": script}
        self._changed = threading.Condition()  # guards: _asked, _bills, _faults, _given
        self._asked: list[Asked] = []
        self._bills: dict[int, Bill] = {}
        self._faults: list[BaseException] = []
        self._given: dict[str, int] = {}

    def receive(
        self, dialect: Dialect, prompt: Prompt, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> Asked:
        """Give a request its number and keep it."""
        with self._changed:
            asked = Asked(
                number=len(self._asked) + 1,
                protocol=dialect.name,
                model=prompt.model,
                messages=prompt.messages,
                tools=prompt.tool_names,
                max_tokens=prompt.max_tokens,
                stream=prompt.stream,
                headers=headers,
                body=body,
            )
            self._asked.append(asked)
            self._changed.notify_all()
        return asked

    def ask(self, asked: Asked) -> Reply:
        """Return what the script answers; a list that is used up is a fault of the script."""
        if self._script is not None:
            return reply_of(self._script(asked))
        key = asked.model if asked.model in self._lists else ""
        replies = self._lists.get(key, ())
        with self._changed:
            turn = self._given.get(key, 0)
            self._given[key] = turn + 1
        if turn >= len(replies):
            raise RequestError(
                f"The script must have a reply for every request, got request {turn + 1} for "
                f"`{asked.model}` and {len(replies)} replies"
            )
        return reply_of(replies[turn])

    def charge(self, bill: Bill) -> None:
        """Keep a bill; a later one of the same request takes its place."""
        with self._changed:
            self._bills[bill.number] = bill
            self._changed.notify_all()

    def report(self, fault: BaseException) -> None:
        """Keep a fault of the script."""
        with self._changed:
            self._faults.append(fault)

    @property
    def asked(self) -> tuple[Asked, ...]:
        """All requests so far, in the order of arrival."""
        with self._changed:
            return tuple(self._asked)

    @property
    def bills(self) -> tuple[Bill, ...]:
        """What is charged so far, in the order of the requests."""
        with self._changed:
            return tuple(bill for _, bill in sorted(self._bills.items()))

    @property
    def faults(self) -> tuple[BaseException, ...]:
        """What the script raised so far."""
        with self._changed:
            return tuple(self._faults)

    def wait_for(self, *, asked: int, bills: int, timeout_s: float) -> None:
        """Wait until so many requests have come and so many bills are written."""
        with self._changed:
            if not self._changed.wait_for(
                lambda: len(self._asked) >= asked and len(self._bills) >= bills, timeout_s
            ):
                raise TimeoutError(
                    f"Waited {timeout_s} s for {asked} requests and {bills} bills, "
                    f"got {len(self._asked)} and {len(self._bills)}"
                )
