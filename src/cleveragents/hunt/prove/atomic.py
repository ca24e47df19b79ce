"""`assert_atomic`: the check that regression tests of found races call."""

from __future__ import annotations

import importlib.util
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frontrun._tracing import set_active_trace_filter

from cleveragents.hunt.prove.modules import FreshModule, UserCode, shared_with
from cleveragents.hunt.prove.stage import Play, Stage
from cleveragents.hunt.prove.telling import reason_of, steps_of
from cleveragents.hunt.prove.trying import Tried, try_out
from cleveragents.hunt.prove.world import the_world
from cleveragents.hunt.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["assert_atomic"]

_REPLAYS = 3


def assert_atomic(
    subject: Callable[[], Any],
    calls: Sequence[Callable[[Any], Any]],
    *,
    setup: Sequence[Callable[[Any], Any]] = (),
    fresh: Sequence[str] = (),
    seconds: float = 10.0,
) -> None:
    """Fail if calls that overlap give what no order of whole calls gives, or never end.

    `subject` makes a fresh object, to which the calls of `setup` are made one after the other;
    then those of `calls` are made at once, in many interleavings. The modules named by `fresh`
    are imported anew each time, so import from them inside the functions: only then are locks
    that they make when they are imported under control, and is what they keep new.
    """
    besides = sys._getframe(1).f_code.co_filename  # noqa: SLF001  # the test is not under test
    modules = [FreshModule(name) for name in fresh]

    def build() -> Any:
        for module in modules:
            module.load()
        made = subject()
        for call in setup:
            call(made)
        return made

    def roots(made: Any) -> Mapping[str, object]:
        return shared_with(made, fresh)

    with the_world.entered(), _put_back(fresh):
        set_active_trace_filter(UserCode([Path("/")], _packages(fresh), besides=besides))
        try:
            stage = Stage(Play(build, tuple(calls), roots), the_world)
            tried = try_out(stage, time.monotonic() + seconds, replays=_REPLAYS)
        finally:
            set_active_trace_filter(None)
    if tried.verdict not in {Verdict.SILENT, Verdict.BENIGN}:
        raise AssertionError(_message(tried, len(calls)))


def _packages(modules: Sequence[str]) -> list[Path]:
    """Return the folders or files of the packages that hold some modules."""
    found = []
    for name in modules:
        spec = importlib.util.find_spec(name.partition(".")[0])
        if spec is not None and spec.submodule_search_locations:
            found += [Path(place) for place in spec.submodule_search_locations]
        elif spec is not None and spec.origin:
            found.append(Path(spec.origin))
    return found


@contextmanager
def _put_back(names: Sequence[str]) -> Iterator[None]:
    """Let the modules be as they were: other tests hold their classes."""
    before = {name: sys.modules.get(name) for name in names}
    try:
        yield
    finally:
        for name, module in before.items():
            parent, _, last = name.rpartition(".")
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
                if parent in sys.modules:
                    setattr(sys.modules[parent], last, module)


def _message(tried: Tried, calls: int) -> str:
    strange, base = tried.strange, tried.base
    if strange is None or base is None or not tried.verdict.is_bug:
        return f"Nothing can be said of these calls: {tried.reason}"
    lines = [reason_of(strange, base, [f"call {number + 1}" for number in range(calls)])]
    lines += [
        f"  thread {step.thread}  {step.path}:{step.line}  {step.source}"
        for step in steps_of(strange.ran.points, Path.cwd())
    ]
    return "\n".join(lines)
