"""From what pydantic-ai read in a provider's answer to our counts."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.usage import USAGE_FIELDS, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_ai.usage import RequestUsage

__all__ = ["usage_of"]

#: Our names that differ from pydantic-ai's.
_THEIRS: Final[Mapping[str, str]] = {"reasoning_tokens": "output_reasoning_tokens"}
#: No call counts so many of anything: whoever says so says nothing.
_COUNT_MAX: Final = 10**12
_OURS: Final = {_THEIRS.get(name, name): name for name in USAGE_FIELDS}
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
    the two are added. Where nothing at all was used nothing was told, or nobody could read it.
    """
    if reported.unmeasured_requests or not reported.has_values():
        return None
    try:
        return _counted(reported)
    except OverflowError:
        return None


def _counted(reported: RequestUsage) -> Usage:
    details = reported.details
    # Of all that can be counted a call has little: the rest is left to the defaults of `Usage`.
    counts = defaultdict[str, int](int)
    for theirs, told in vars(reported).items():
        if told and theirs in _OURS:
            counts[_OURS[theirs]] = _count(told)
    for name, theirs in _IN_DETAILS.items() if details else ():
        counts[name] = counts[name] or _count(details.get(theirs, 0))
    cached = counts["cache_read_tokens"] + counts["cache_write_tokens"]
    if cached > counts["input_tokens"]:
        counts["input_tokens"] += cached
    if counts["reasoning_tokens"] > counts["output_tokens"]:
        counts["output_tokens"] += counts["reasoning_tokens"]
    return Usage(**counts)


def _count(told: Any) -> int:
    # Some servers send null, and seconds come with a fraction: a part of one is charged as one.
    if not told or not isinstance(told, int | float) or told < 0:
        return 0
    if told <= _COUNT_MAX:  # which holds for no infinity, and for nothing that is no number
        return math.ceil(told)
    raise OverflowError(f"{told} is no count")
