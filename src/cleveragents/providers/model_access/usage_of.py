"""From what pydantic-ai read in a provider's answer to our counts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.usage import USAGE_FIELDS, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_ai.usage import RequestUsage

__all__ = ["usage_of"]

#: Our names that differ from pydantic-ai's.
_THEIRS: Final[Mapping[str, str]] = {"reasoning_tokens": "output_reasoning_tokens"}
#: What is priced and stands in `details` only.
_IN_DETAILS: Final[Mapping[str, str]] = {
    "reasoning_tokens": "reasoning_tokens",
    "citation_tokens": "citation_tokens",
    "web_searches": "web_search_requests",
}


def usage_of(reported: RequestUsage) -> Usage | None:
    """Return what a call used; None if the provider did not say, because unknown is not zero.

    pydantic-ai counts as we do: a whole includes its parts, whatever the provider's own way.
    A server that reports a part apart from its whole shows it by a part larger than the whole;
    the two are added.
    """
    if reported.unmeasured_requests:
        return None
    counts = {name: _count(reported, name) for name in USAGE_FIELDS}
    cached = counts["cache_read_tokens"] + counts["cache_write_tokens"]
    if cached > counts["input_tokens"]:
        counts["input_tokens"] += cached
    if counts["reasoning_tokens"] > counts["output_tokens"]:
        counts["output_tokens"] += counts["reasoning_tokens"]
    return Usage(**counts)


def _count(reported: RequestUsage, name: str) -> int:
    told: Any = getattr(reported, _THEIRS.get(name, name), 0)
    if not told:
        told = reported.details.get(_IN_DETAILS.get(name, ""), 0)
    # Some servers send null, and seconds come with a fraction: a part of one is charged as one.
    return math.ceil(told) if isinstance(told, int | float) and told > 0 else 0
