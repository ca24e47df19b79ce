"""Facts told to listeners, and the one rule about them: a listener cannot hurt."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

E = TypeVar("E")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning as a record: it stopped nothing, and a person may want to act on it."""

    code: str
    message: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def tell(listener: Callable[[E], object] | None, event: E) -> None:
    """Hand a fact to a listener; one that raises is logged, and the work goes on.

    Call it only after every lock is free.
    """
    if listener is None:
        return
    try:
        listener(event)
    except KeyboardInterrupt:  # the user's, whomever it hits
        raise
    except BaseException:  # noqa: BLE001  # whatever a listener does, the work goes on
        _log.exception("A listener raised on %r; the work goes on", event)
