"""From an address and a key to pydantic-ai's model.

SDKs are imported here, when a model is asked for, and nowhere else.
"""

from __future__ import annotations

from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.errors import SetupError
from cleveragents.providers.model_access.shortcuts import remember_tools, send_as_is

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

    from cleveragents.providers.model_access.access import Access
    from cleveragents.providers.model_access.names import Provider

__all__ = ["OPENED", "load", "open_model"]

#: Clients refuse to be made without a key; a server without keys does not look at it.
_NO_KEY: Final = "no-key"
#: How long a connection of Bedrock may be silent: its SDK takes no limit for a single call.
_BEDROCK_READ_TIMEOUT_S: Final = 600
#: Providers whose clients know themselves how often they try.
_CLIENT_COUNTS: Final = frozenset(
    {"anthropic", "groq", "ollama", "openai", "openai-responses", "openrouter"}
)

#: The responses that the call of this task has opened.
OPENED: Final[ContextVar[list[Any]]] = ContextVar("opened")

#: Of each provider, pydantic-ai's module (of `models` and of `providers`) and its two classes.
_CLASSES: Final = {
    "anthropic": ("anthropic", "AnthropicModel", "AnthropicProvider"),
    "bedrock": ("bedrock", "BedrockConverseModel", "BedrockProvider"),
    "google": ("google", "GoogleModel", "GoogleProvider"),
    "groq": ("groq", "GroqModel", "GroqProvider"),
    "mistral": ("mistral", "MistralModel", "MistralProvider"),
    "ollama": ("ollama", "OllamaModel", "OllamaProvider"),
    "openai": ("openai", "OpenAIChatModel", "OpenAIProvider"),
    "openai-responses": ("openai", "OpenAIResponsesModel", "OpenAIProvider"),
    "openrouter": ("openrouter", "OpenRouterModel", "OpenRouterProvider"),
}


def load(provider: Provider) -> tuple[Any, Any]:
    """Import a provider's two classes; if their packages are not installed, say how to get them."""
    module, model, access = _CLASSES[provider.name]
    try:
        return (
            getattr(import_module(f"pydantic_ai.models.{module}"), model),
            getattr(import_module(f"pydantic_ai.providers.{module}"), access),
        )
    except ImportError as error:
        raise SetupError(
            f"Models of `{provider.name}` need packages that are not installed",
            code="CA1007",
            facts={"missing": error},
            hint=f"Run `pip install 'cleveragents[{provider.extra}]'`",
        ) from error


async def open_model(access: Access, clients: AsyncExitStack) -> Model[Any]:
    """Make the model in the loop that will use it, and have its client closed with `clients`."""
    model_class, provider_class = load(access.name.provider)
    key = access.key or _NO_KEY
    profile = None
    match access.name.provider.name:
        case "bedrock":
            provider = provider_class(bedrock_client=_bedrock_client(access.base_url))
        case "openai" if access.foreign:
            provider = _compatible(access.base_url, key)
            profile = _max_tokens_profile(provider, access.name.model)
        case "ollama":
            provider = provider_class(base_url=access.base_url, api_key=key)
            profile = _max_tokens_profile(provider, access.name.model)
        case "google":
            client = await clients.enter_async_context(_remembering_client())
            provider = provider_class(base_url=access.base_url, api_key=key, http_client=client)
        case "openrouter":
            provider = provider_class(api_key=key)
            if access.base_url is not None:
                provider.client.base_url = access.base_url
        case _:
            provider = provider_class(base_url=access.base_url, api_key=key)
    settings = _tries_once(access.name.provider.name, provider.client)
    send_as_is(provider.client, access.name.provider.name)
    model: Model[Any] = model_class(
        access.name.model, provider=provider, profile=profile, settings=settings
    )
    remember_tools(model)
    return await clients.enter_async_context(model)


def _tries_once(provider: str, client: Any) -> ModelSettings | None:
    """Have every request sent once, by its client or by the settings that are returned.

    An SDK that retries sends, and may be billed for, calls that nobody admitted.
    """
    if provider in _CLIENT_COUNTS:
        # As a setting it would have the client copied for each call, and its shortcuts lost.
        client.max_retries = 0
        return None
    # Bedrock's client has it built in, and pydantic-ai warns if it is asked for.
    return None if provider == "bedrock" else {"max_retries": 0}


def _remembering_client() -> Any:
    """Make a client that notes each response in `OPENED`.

    Google's SDK wraps a response into generators; a call that is cancelled while none of them
    reads leaves the connection open, and the provider goes on answering, and charging.
    """
    from pydantic_ai.models import create_async_httpx2_client

    async def remember(response: Any) -> None:
        OPENED.get().append(response)

    client = create_async_httpx2_client()
    client.event_hooks = {**client.event_hooks, "response": [remember]}
    return client


def _compatible(base_url: str | None, key: str) -> Any:
    """Reach another server that speaks OpenAI's protocol."""
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    assert base_url is not None
    return OpenAICompatibleProvider("openai-compatible", base_url=base_url, api_key=key)


def _max_tokens_profile(provider: Any, model: str) -> Any:
    """Have the longest answer sent as `max_tokens`, which all servers like OpenAI's understand.

    Ollama and others ignore OpenAI's newer word for it, and an answer without its limit could
    cost more than was reserved.
    """
    from pydantic_ai.profiles import merge_profile
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    older = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False)
    return merge_profile(provider.model_profile(model), older)


def _bedrock_client(base_url: str | None) -> Any:
    """Make a client that tries once; it finds credentials and region as AWS programs do."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import NoRegionError

    once = Config(retries={"total_max_attempts": 1}, read_timeout=_BEDROCK_READ_TIMEOUT_S)
    try:
        return boto3.client("bedrock-runtime", config=once, endpoint_url=base_url)
    except NoRegionError as error:
        raise SetupError(
            "There is no AWS region for provider `bedrock`",
            code="CA1002",
            facts={"variable": "AWS_DEFAULT_REGION"},
            hint="Set `AWS_DEFAULT_REGION` in the environment",
        ) from error
