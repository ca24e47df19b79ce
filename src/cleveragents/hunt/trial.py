"""A trial: calls on one fresh object, to be run in every order; all of it is Python source.

Source can be shown, replayed, and written into a regression test as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Trial"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Build `subject`, run `setup` one after the other, then all of `calls` at once.

    ```python
    Trial(
        imports=("from app.cache import Cache",),
        subject="Cache(limit=2)",
        setup=("subject.put('a', 1)",),
        calls=("subject.put('b', 2)", "subject.put('c', 3)"),
    )
    ```
    """

    #: Statements that bring the names into scope.
    imports: tuple[str, ...]
    #: An expression that makes a fresh object; for the state of a module: the module itself.
    subject: str
    setup: tuple[str, ...] = ()
    #: Expressions, each run by a thread of its own; two or three of them.
    calls: tuple[str, ...]
    #: For the state of a module: its name; it is imported anew for every run.
    fresh_module: str | None = None
