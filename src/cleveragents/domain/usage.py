"""What a model call used: tokens, and the other things that providers charge for."""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The counts of one call.

    `input_tokens` counts the whole prompt, cached tokens included;
    `cache_read_tokens` and `cache_write_tokens` say how many of those were cached.
    (OpenAI and Gemini report prompts like this; Anthropic reports them apart: add them up first.)
    `reasoning_tokens` says how many of `output_tokens` were reasoning.
    In the same way every count that stands in `PART_OF` is included in the counts named there.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    reasoning_tokens: int = 0
    citation_tokens: int = 0
    input_audio_tokens: int = 0
    output_audio_tokens: int = 0
    cache_audio_read_tokens: int = 0
    input_image_tokens: int = 0
    output_image_tokens: int = 0
    cache_image_read_tokens: int = 0
    input_video_tokens: int = 0
    output_video_tokens: int = 0
    # Tools that the provider runs inside the call
    web_searches: int = 0
    storage_searches: int = 0
    # Models that do not charge by the token: speech, transcription, documents
    input_characters: int = 0
    input_text_messages: int = 0
    audio_seconds: int = 0
    input_audio_seconds: int = 0
    input_document_pages: int = 0
    input_annotated_document_pages: int = 0

    def __post_init__(self) -> None:
        counts = _counts(self)
        if set(map(type, counts)) == {int} and min(counts) >= 0:
            return
        for name, count in zip(USAGE_FIELDS, counts, strict=True):
            if type(count) is not int or count < 0:
                raise RequestError(f"`{name}` must be a whole number from 0, got {count!r}")

    @property
    def counted(self) -> dict[str, int]:
        """What was used at all, by name."""
        return {name: n for name, n in zip(USAGE_FIELDS, _counts(self), strict=True) if n}


USAGE_FIELDS: Final[tuple[str, ...]] = tuple(field.name for field in fields(Usage))

_counts: Final[Callable[[Usage], tuple[int, ...]]] = attrgetter(*USAGE_FIELDS)

#: Which counts include which: a token that is priced as a part is not priced again in the whole.
PART_OF: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "cache_read_tokens": ("input_tokens",),
        "cache_write_tokens": ("input_tokens",),
        "cache_write_1h_tokens": ("input_tokens", "cache_write_tokens"),
        "reasoning_tokens": ("output_tokens",),
        "citation_tokens": ("output_tokens",),
        "input_audio_tokens": ("input_tokens",),
        "output_audio_tokens": ("output_tokens",),
        "cache_audio_read_tokens": ("input_tokens", "cache_read_tokens", "input_audio_tokens"),
        "input_image_tokens": ("input_tokens",),
        "output_image_tokens": ("output_tokens",),
        "cache_image_read_tokens": ("input_tokens", "cache_read_tokens", "input_image_tokens"),
        "input_video_tokens": ("input_tokens",),
        "output_video_tokens": ("output_tokens",),
        "input_audio_seconds": ("audio_seconds",),
        "input_annotated_document_pages": ("input_document_pages",),
    }
)
