"""A pytest plugin that notes how the repository's own tests call its code.

`pytest -p cleveragents.hunt.inputs.recorder --hunt-record FILE` writes, for every function and
method below the root, the argument lists that can be written down as literals. Nothing but what
was seen is in the file: `{"app.cache:Cache.put": ["'a', 1"]}`.
"""

from __future__ import annotations

import ast
import json
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType, FrameType

    import pytest

__all__ = ["Recorder"]

_ROWS_MAX = 4
_TEXT_MAX = 120
#: Flags of code objects; the bodies of classes and modules lack the first.
_OPTIMIZED, _VARARGS, _VARKEYWORDS = 0x01, 0x04, 0x08


class Recorder:
    """Notes calls of functions whose file lies below a folder and is no test."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._wanted: dict[CodeType, bool] = {}
        self._lock = threading.Lock()  # guards: the rows below
        self._rows: dict[str, list[str]] = {}

    def start(self) -> None:
        """Note the calls of this thread and of those that start from now on."""
        threading.setprofile(self._on_event)
        sys.setprofile(self._on_event)

    def stop(self) -> dict[str, list[str]]:
        """Return what was noted."""
        sys.setprofile(None)
        threading.setprofile(None)
        with self._lock:
            return {name: list(rows) for name, rows in sorted(self._rows.items())}

    def _on_event(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        wanted = self._wanted.get(code)
        if wanted is None:
            wanted = self._wanted[code] = self._is_wanted(code)
        if not wanted:
            return
        row = _arguments(frame)
        if row is None:
            return
        self.note(f"{frame.f_globals.get('__name__')}:{code.co_qualname}", row)

    def note(self, name: str, row: str) -> None:
        """Keep a row that is new, while there are few of them."""
        with self._lock:
            rows = self._rows.setdefault(name, [])
            if len(rows) < _ROWS_MAX and row not in rows:
                rows.append(row)

    def _is_wanted(self, code: CodeType) -> bool:
        path = Path(code.co_filename)
        if not code.co_filename.startswith(self._folder) or "site-packages" in path.parts:
            return False
        is_test = path.name.startswith(("test_", "conftest")) or path.stem.endswith("_test")
        is_function = bool(code.co_flags & _OPTIMIZED)
        return is_function and not is_test and "<" not in code.co_qualname


def _arguments(frame: FrameType) -> str | None:
    """Return the arguments as source, without `self`; None if one is no literal."""
    code, values = frame.f_code, frame.f_locals
    names = list(code.co_varnames[: code.co_argcount])
    is_method = "." in code.co_qualname and names[:1] in (["self"], ["cls"])
    parts = [values[name] for name in names[is_method:]]
    only = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    named = {name: values[name] for name in only}
    further = code.co_argcount + code.co_kwonlyargcount
    if code.co_flags & _VARARGS:
        parts += values[code.co_varnames[further]]
        further += 1
    if code.co_flags & _VARKEYWORDS:
        named |= values[code.co_varnames[further]]
    texts = [*map(_literal, parts), *(_keyword(*pair) for pair in named.items())]
    row = ", ".join(text for text in texts if text is not None)
    return row if None not in texts and len(row) <= _TEXT_MAX else None


def _keyword(name: str, value: object) -> str | None:
    text = _literal(value)
    return None if text is None else f"{name}={text}"


def _literal(value: Any) -> str | None:
    if not isinstance(value, bool | int | float | str | bytes | list | tuple | dict | set | None):
        return None
    text = repr(value)
    try:
        same = len(text) <= _TEXT_MAX and ast.literal_eval(text) == value
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return text if same else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the name of the file."""
    parser.addoption("--hunt-record", metavar="FILE", help="write how tests call the code to FILE")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin to note calls, if a file is named."""
    if session.config.getoption("--hunt-record"):
        recorder = Recorder(session.config.rootpath)
        session.config.stash[_key()] = recorder
        recorder.start()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was noted."""
    recorder = session.config.stash.get(_key(), None)
    if recorder is not None:
        path = Path(session.config.getoption("--hunt-record"))
        path.write_text(json.dumps(recorder.stop(), indent=1), encoding="utf-8")


def _key() -> Any:
    import pytest

    if not _KEYS:
        _KEYS.append(pytest.StashKey[Recorder]())
    return _KEYS[0]


_KEYS: list[Any] = []
