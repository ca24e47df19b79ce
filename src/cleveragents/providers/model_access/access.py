"""Where a call goes and which key goes with it.

**A key goes only where the hand that set it sends it**: to the provider's own host, or to the
address that stands in the environment beside the key (`OPENAI_BASE_URL`). Another `base_url`,
which may come from a plan file of a stranger, gets no provider's key: it gets the key that is
named after its host, if there is one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from cleveragents.domain.errors import RequestError, SetupError
from cleveragents.providers.model_access.names import ModelName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cleveragents.providers.model_access.names import Provider

__all__ = ["Access", "access_to", "key_variable_of"]


@dataclass(frozen=True, slots=True)
class Access:
    """A model, the address that serves it (None: the provider's own) and the key for it."""

    name: ModelName
    base_url: str | None
    key: str | None = field(repr=False)
    #: Whether this is no address of the provider: only the protocol is the same.
    foreign: bool = False


def access_to(model: str, base_url: str | None, keys: Mapping[str, str]) -> Access:
    """Find the address and the key for a model; a coded error says what is missing."""
    name = ModelName.parse(model)
    provider = name.provider
    own_url = (provider.url_variable and keys.get(provider.url_variable)) or provider.url
    if base_url is None or _is_home(base_url, own_url, provider.host):
        return Access(name, base_url or own_url, _own_key(provider, keys))
    variable = key_variable_of(base_url)
    return Access(name, base_url, keys.get(variable) if variable else None, foreign=True)


@lru_cache
def key_variable_of(base_url: str) -> str | None:
    """Name the variable that holds the key of another address, from its host.

    `https://api.deepseek.com` has `CLEVERAGENTS_KEY_API_DEEPSEEK_COM`. No two hosts share one:
    a dot becomes one underscore, a hyphen two, and a host holds neither `..` nor `_`.
    """
    host = _address(base_url).hostname or ""
    if re.fullmatch(r"[a-z0-9.-]+", host) is None:
        return None
    return "CLEVERAGENTS_KEY_" + host.upper().replace("-", "__").replace(".", "_")


@lru_cache
def _is_home(base_url: str, own_url: str | None, own_host: str | None) -> bool:
    parts = _address(base_url)
    if own_url is not None and base_url.rstrip("/") == own_url.rstrip("/"):
        return True
    return parts.scheme == "https" and parts.hostname == own_host and parts.port in {None, 443}


def _address(base_url: str) -> SplitResult:
    try:
        parts = urlsplit(base_url)
        if parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass  # told below, like every other address that is none
    raise RequestError(
        f"`base_url` must be an http address with a host, got {base_url!r}",
        hint="Write for example `http://localhost:8000/v1`",
    )


def _own_key(provider: Provider, keys: Mapping[str, str]) -> str | None:
    for variable in provider.key_variables:
        key = keys.get(variable)
        if key:
            return key
    if not provider.key_needed:
        return None
    raise SetupError(
        f"There is no API key for provider `{provider.name}`",
        code="CA1002",
        facts={"variable": " or ".join(provider.key_variables)},
        hint=f"Set `{provider.key_variables[0]}` in the environment",
    )
