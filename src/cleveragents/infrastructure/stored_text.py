"""Texts on their way into the store, which holds UTF-8 and no lone surrogates."""

from __future__ import annotations

from cleveragents.domain.errors import RequestError


def plain(text: str) -> str:
    r"""Return a text as UTF-8 can hold it; a lone surrogate is spelled out, as in `\udce9`."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def check_names(**names: str | None) -> None:
    """Refuse names that cannot be stored as they are: spelled out they would be others."""
    for what, name in names.items():
        if name is not None and plain(name) != name:
            raise RequestError(
                f"`{what}` must be a text that UTF-8 can hold, got {name!r:.80}",
                hint="Choose a name without lone surrogates",
            )
