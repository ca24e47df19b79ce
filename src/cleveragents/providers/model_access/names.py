"""Names of models, `provider:model`, and what each provider needs: a key, a package, an address.

Nothing here imports an SDK.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

__all__ = ["PROVIDERS", "ModelName", "Provider"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """What must be there before a model of this provider can be asked."""

    name: str
    #: The variables that may hold the key, the usual one first.
    key_variables: tuple[str, ...] = ()
    key_needed: bool = True
    #: The extra of this package that brings the provider's SDK.
    extra: str = "llm"
    #: The variable that may name another address, set by whoever sets the key.
    url_variable: str | None = None
    #: The address where that variable is not set; None if the SDK knows it.
    url: str | None = None
    #: The provider's own host: its key may go there, over https.
    host: str | None = None
    #: An example of a name, for hints.
    example: str
    #: What every name must match.
    names: str = r"[^\s\x00-\x1f]+"


_TABLE: Final = (
    Provider(
        name="anthropic",
        key_variables=("ANTHROPIC_API_KEY",),
        url_variable="ANTHROPIC_BASE_URL",
        host="api.anthropic.com",
        example="claude-sonnet-5-5",
    ),
    # The AWS chain finds credentials in many places: files, roles, variables. It is asked itself.
    Provider(name="bedrock", key_needed=False, extra="bedrock", example="us.amazon.nova-pro-v1:0"),
    Provider(
        name="google",
        key_variables=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        extra="google",
        url_variable="GOOGLE_GEMINI_BASE_URL",
        host="generativelanguage.googleapis.com",
        example="gemini-3.5-flash",
    ),
    Provider(
        name="groq",
        key_variables=("GROQ_API_KEY",),
        extra="groq",
        url_variable="GROQ_BASE_URL",
        host="api.groq.com",
        example="llama-3.3-70b-versatile",
    ),
    Provider(
        name="mistral",
        key_variables=("MISTRAL_API_KEY",),
        extra="mistral",
        host="api.mistral.ai",
        example="mistral-large-latest",
    ),
    Provider(
        name="ollama",
        key_variables=("OLLAMA_API_KEY",),
        key_needed=False,
        url_variable="OLLAMA_BASE_URL",
        url="http://localhost:11434/v1",
        example="qwen3",
    ),
    Provider(
        name="openai",
        key_variables=("OPENAI_API_KEY",),
        url_variable="OPENAI_BASE_URL",
        host="api.openai.com",
        example="gpt-5.2",
    ),
    Provider(
        name="openai-responses",
        key_variables=("OPENAI_API_KEY",),
        url_variable="OPENAI_BASE_URL",
        host="api.openai.com",
        example="gpt-5.2",
    ),
    Provider(
        name="openrouter",
        key_variables=("OPENROUTER_API_KEY",),
        host="openrouter.ai",
        example="anthropic/claude-sonnet-4.5",
        names=r"[^\s\x00-\x1f/]+/[^\s\x00-\x1f]+",
    ),
)

#: Every provider by its name.
PROVIDERS: Final[Mapping[str, Provider]] = MappingProxyType({one.name: one for one in _TABLE})


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model and who serves it; written `provider:model`."""

    provider: Provider
    model: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `provider:model`; refuse what names no provider that we know, with the way out."""
        prefix, colon, model = text.partition(":")
        if not colon:
            raise _unknown(f"A model is named `provider:model`, got {text!r}", text)
        provider = PROVIDERS.get(prefix)
        if provider is None:
            raise _unknown(f"There is no provider {prefix!r} of models", prefix)
        if re.fullmatch(provider.names, model) is None:
            raise _unknown(f"{model!r} is not a name of a model of `{prefix}`", prefix)
        return cls(provider, model)

    def __str__(self) -> str:
        return f"{self.provider.name}:{self.model}"


def _unknown(message: str, near: str) -> SetupError:
    close = difflib.get_close_matches(near, PROVIDERS, n=1)
    example = PROVIDERS[close[0] if close else "anthropic"]
    return SetupError(
        message,
        code="CA1008",
        facts={"providers": ", ".join(PROVIDERS)},
        hint=f"Write for example `{example.name}:{example.example}`",
    )
