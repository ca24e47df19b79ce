"""What a model call used, in tokens."""

from __future__ import annotations

from dataclasses import dataclass, fields

from cleveragents.domain.errors import RequestError


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The tokens of one call.

    `input_tokens` counts the whole prompt, cached tokens included;
    `cache_read_tokens` and `cache_write_tokens` say how many of those were cached.
    (OpenAI and Gemini report prompts like this; Anthropic reports them apart: add them up first.)
    `reasoning_tokens` says how many of `output_tokens` were reasoning.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    input_audio_tokens: int = 0
    output_audio_tokens: int = 0
    cache_audio_read_tokens: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            count = getattr(self, field.name)
            if type(count) is not int or count < 0:
                raise RequestError(
                    f"`{field.name}` must be a whole number of tokens from 0, got {count!r}"
                )
