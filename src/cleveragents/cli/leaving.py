"""How an interrupted process ends: at once where threads hang, which Python cannot end."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn


def leave(code: int) -> NoReturn:
    """End an interrupted process; by now every store is closed, and all that counts is written.

    Whoever pressed Ctrl-C does not wait for a thread of a user's function, which Python would
    join on its way out, however long that takes.
    """
    if _hung():
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _hung() -> bool:
    others = set(threading.enumerate()) - {threading.main_thread()}
    return any(thread.is_alive() for thread in others)
