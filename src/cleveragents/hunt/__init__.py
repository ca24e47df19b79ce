"""`hunt`: find, prove, mend and re-prove data races in a user's Python code.

find    reads the source, runs none of it, and names candidates
prove   runs the user's code, in a process of its own, and replays what it calls a bug
mend    puts a lock, or the atomic form, beside the state
report  tells it to people and to programs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cleveragents.domain.errors import SetupError

if TYPE_CHECKING:
    from cleveragents.hunt.prove.atomic import assert_atomic

__all__ = ["assert_atomic"]


def __getattr__(name: str) -> Any:
    """Import what needs the packages of the hunt only when it is asked for."""
    if name != "assert_atomic":
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    try:
        from cleveragents.hunt.prove.atomic import assert_atomic
    except ModuleNotFoundError as error:
        raise SetupError(
            "The packages for the hunt are not installed",
            code="CA1007",
            facts={"missing": error.name or ""},
            hint="Run `pip install 'cleveragents[hunt]'`",
        ) from error
    return assert_atomic
