"""The user's modules: which code is theirs, and how a module is imported anew for every run."""

from __future__ import annotations

import datetime as dt
import enum
import importlib
import importlib.util
import logging
import sys
import sysconfig
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from frontrun._tracing import TraceFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from importlib.machinery import ModuleSpec

__all__ = ["FreshModule", "UserCode", "forget_strangers", "shared_by_module", "shared_with"]

_OURS = str(Path(__file__).parent)
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib")})


class UserCode(TraceFilter):
    """Threads are switched in the user's code alone: below some folders, or in some packages.

    What is installed below a folder is not the user's, unless it is one of the packages.
    """

    def __init__(
        self, folders: Sequence[Path], packages: Sequence[Path], *, besides: str = ""
    ) -> None:
        super().__init__(None)
        self._folders = tuple(str(folder) for folder in folders)
        self._packages = tuple(str(package) for package in packages)
        self._besides = besides
        self._known: dict[str, bool] = {}

    def should_trace_file(self, filename: str) -> bool:
        """Say whether a file is the user's; asked at every call, so the answer is kept."""
        known = self._known.get(filename)
        if known is None:
            known = self._known[filename] = self._is_users(filename)
        return known

    def _is_users(self, filename: str) -> bool:
        if filename.startswith(("<", _OURS)) or filename == self._besides:
            return False
        if filename.startswith(self._packages):
            return True
        installed = "site-packages" in filename or filename.startswith(_LIBRARIES)
        return filename.startswith(self._folders) and not installed


class FreshModule:
    """Imports one module anew, from code that is compiled once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: ModuleSpec | None = None
        self._code: CodeType | None = None

    def load(self) -> ModuleType:
        """Run the module's code in a new module, and put that in the place of the old one."""
        spec = self._spec = self._spec or importlib.util.find_spec(self._name)
        if spec is None or spec.loader is None:
            msg = f"no module named {self._name}"
            raise ModuleNotFoundError(msg, name=self._name)
        get_code: Any = getattr(spec.loader, "get_code", None)
        if self._code is None and get_code is not None:
            self._code = get_code(self._name)
        module = importlib.util.module_from_spec(spec)
        sys.modules[self._name] = module
        if self._code is None:
            spec.loader.exec_module(module)
        else:
            exec(self._code, module.__dict__)  # noqa: S102  # to run the user's code is the point
        parent, _, last = self._name.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], last, module)
        return module


def forget_strangers(name: str, folder: Path) -> None:
    """Let a module be imported from a folder, even if we use a package of that name ourselves."""
    top = name.partition(".")[0]
    known = sys.modules.get(top)
    places = [getattr(known, "__file__", None), *getattr(known, "__path__", ())]
    if known is None or any(Path(place).is_relative_to(folder) for place in places if place):
        return
    for other in [one for one in sys.modules if one == top or one.startswith(f"{top}.")]:
        del sys.modules[other]


def shared_with(subject: object, modules: Iterable[str]) -> Mapping[str, object]:
    """Return all that calls of a subject share: its own state, and that of these modules."""
    if isinstance(subject, ModuleType):
        return shared_by_module(subject)
    found: dict[str, object] = {} if isinstance(subject, type) else {"subject": subject}
    for name in modules:
        found |= shared_by_module(sys.modules[name])
    return found


def shared_by_module(module: ModuleType) -> Mapping[str, object]:
    """Return the data that a module and its classes keep: what is not code, by name."""
    found: dict[str, object] = {}
    for name, value in vars(module).items():
        if isinstance(value, enum.EnumMeta):
            continue
        if isinstance(value, type) and value.__module__ == module.__name__:
            found.update(
                {
                    f"{value.__qualname__}.{key}": one
                    for key, one in vars(value).items()
                    if _is_data(key, one)
                }
            )
        elif _is_data(name, value):
            found[name] = value
    return found


def _is_data(name: str, value: object) -> bool:
    if name.startswith("__") or (name.isupper() and isinstance(value, str | int | float | tuple)):
        return False
    if name == "_abc_impl" or isinstance(value, logging.Logger | dt.tzinfo):
        return False
    if isinstance(value, type | ModuleType | property) or callable(value):
        return False
    if type(value).__module__ in {"__future__", "typing", "typing_extensions"}:
        return False
    return not hasattr(type(value), "__get__")
