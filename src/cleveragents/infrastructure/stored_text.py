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


def check_plan_id(plan_id: str) -> None:
    """Refuse the id of a new plan that no command could be given: it would be read as an option."""
    check_names(plan_id=plan_id)
    if not plan_id.strip() or plan_id.startswith("-"):
        raise RequestError(
            f"A plan id must be a text that is not empty and does not begin with `-`,"
            f" got {plan_id!r:.80}",
            hint="Choose another name for the plan",
        )
