"""Writes of a group that are undone alone where they raise."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.infrastructure.store import Transaction

T = TypeVar("T")


class Raised:
    """A write that raised, where its neighbours did not."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def alone(write: Callable[[Transaction], T]) -> Callable[[Transaction], T | Raised]:
    """Return the write in a savepoint of its own; what it raises is returned."""

    def run(transaction: Transaction) -> T | Raised:
        mark = transaction.savepoint()
        try:
            answer: T | Raised = write(transaction)
        except sqlite3.Error:
            raise  # the transaction may be gone
        except Exception as error:  # noqa: BLE001  # handed to the caller of this write alone
            transaction.undo_to(mark)
            answer = Raised(error)
        transaction.execute("RELEASE write")
        return answer

    return run
