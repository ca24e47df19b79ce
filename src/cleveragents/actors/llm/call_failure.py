"""A failed call of a model as its user reads it: who, what, and the way out."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pydantic_ai.exceptions import ModelRequestTimeout

from cleveragents.application.services.error_classification import classify, story_of
from cleveragents.application.services.run_result import ANEW
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import ProviderError
from cleveragents.providers.model_access.names import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What helps, so that the plan as it is kept can go on.
_HINTS: Final[Mapping[ErrorCategory, str]] = MappingProxyType(
    {
        ErrorCategory.AUTH: "Check the key, and whether it may use this model",
        ErrorCategory.QUOTA: "Add credit at the provider",
        ErrorCategory.CONNECT: "See that the server runs and can be reached",
        ErrorCategory.RATE_LIMIT: "Wait until the provider takes requests again",
        ErrorCategory.OVERLOADED: "Wait until the provider is well again",
        ErrorCategory.READ_TIMEOUT: "Wait until the provider is well again",
    }
)
_MORE_TIME: Final = f"Raise `call_timeout_s` of the actor: {ANEW}"


def call_failure(error: Exception, model: str, base_url: str | None) -> ProviderError:
    """Return an error of a provider's SDK with a code, a sentence and the category that it has."""
    verdict = classify(error, time.time())
    category, status = verdict.category, verdict.evidence.status
    hint, said = _HINTS.get(category), story_of(error)
    if isinstance(error, TimeoutError | ModelRequestTimeout):
        # Below it stands only how it was cancelled.
        hint, said = _MORE_TIME, said.partition(" <- ")[0]
    if status is not None:
        message = f"`{model}` refused: {said}"
    elif category is ErrorCategory.CONNECT:
        message = f"`{model}` cannot be reached at {_place(model, base_url)}"
    else:
        message = f"The call of `{model}` was lost: {said}"
    return ProviderError(message, code="CA3110", facts={"category": category}, hint=hint)


def _place(model: str, base_url: str | None) -> str:
    """Return where a model is served, without what may be secret in an address."""
    provider = PROVIDERS[model.partition(":")[0]]
    if base_url is None:
        return f"`{provider.url or provider.host or provider.name}`"
    parts = urlsplit(base_url)
    return f"`{parts.scheme}://{parts.netloc.rpartition('@')[2]}`"
