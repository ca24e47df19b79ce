"""Writes of a group that are undone alone where they raise."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.infrastructure.transaction import Transaction

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
            answer = write(transaction)
            transaction.release()
        except sqlite3.Error:
            raise  # the transaction may be gone
        except Exception as error:  # noqa: BLE001  # handed to the caller of this write alone
            transaction.undo_to(mark)
            return Raised(error)
        return answer

    return run
