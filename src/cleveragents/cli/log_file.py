"""The log of everything unexpected: a file for reports, and never a stack on the terminal."""

from __future__ import annotations

import json
import logging
import os
import secrets
import sys
import threading
import traceback
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cleveragents._version import __version__
from cleveragents.domain.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterator

#: How the names of our own threads begin; in others a user's function may raise what it likes.
_OURS: Final = "ca-"


def log_folder() -> Path:
    """Return where the log is kept, by the convention of the platform's state folder.

    It is not in the tree: whoever deletes that, or fills its disk, still finds the report.
    """
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "cleveragents" / "log"


def write_entry(**told: str) -> dict[str, str]:
    """Write an entry; return its id, and where it is or why it is nowhere."""
    now = datetime.now(UTC)
    report = f"r-{secrets.token_hex(4)}"
    entry = {"report": report, "at": now.isoformat(), "version": __version__}
    entry |= {name: redact(text) for name, text in told.items()}
    path = log_folder() / f"{now.date()}.jsonl"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")
    except OSError as error:
        return {"report": report, "log": f"not written: {error.strerror}"}
    return {"report": report, "log": str(path)}


class LogFile(logging.Handler):
    """Takes what is logged, and what threads raise, into the log; any thread may call it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        # One reference each, replaced as a whole: the last of its kind is told, none is counted.
        self.last: dict[str, str] | None = None
        self.broken: dict[str, str] | None = None

    @property
    def has_news(self) -> bool:
        """Say whether anything went wrong beside the work."""
        return self.last is not None or self.broken is not None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record down; it must never raise, whatever the record holds."""
        try:
            trace = "" if record.exc_info is None else _trace(record.exc_info[1])
            told = write_entry(
                level=record.levelname,
                logger=record.name,
                message=record.getMessage(),
                thread=record.threadName or "",
                trace=trace,
            )
        except Exception:  # noqa: BLE001  # a log must not end the work that it tells of
            return
        if record.levelno >= logging.ERROR:
            self.last = told

    def raised(self, name: str, error: BaseException | None) -> None:
        """Write down what nobody caught; one of our own threads that dies so is our bug."""
        told = write_entry(level="CRITICAL", thread=name, trace=_trace(error))
        if name.startswith(_OURS):
            self.broken = {"thread": name, **told}
        else:
            self.last = told


@contextmanager
def kept_log() -> Iterator[LogFile]:
    """Let nothing of this process print a stack, for the length of the block."""
    log = LogFile()

    def thread_raised(about: threading.ExceptHookArgs) -> None:
        log.raised("" if about.thread is None else about.thread.name, about.exc_value)

    def raised_unseen(about: Any) -> None:
        log.raised(f"of {about.object!r}", about.exc_value)

    hooks = threading.excepthook, sys.unraisablehook
    threading.excepthook, sys.unraisablehook = thread_raised, raised_unseen
    logging.getLogger().addHandler(log)
    try:
        yield log
    finally:
        logging.getLogger().removeHandler(log)
        threading.excepthook, sys.unraisablehook = hooks


def _trace(error: BaseException | None) -> str:
    return "" if error is None else "".join(traceback.format_exception(error))
