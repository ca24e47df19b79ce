"""The tables behind the classification: who calls which fault what."""

from __future__ import annotations

from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from cleveragents.domain.error_record import ErrorCategory as Is

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def _classes(*groups: tuple[str, Is, str]) -> Mapping[tuple[str, str], Is]:
    return MappingProxyType(
        {
            (package, name): category
            for packages, category, names in groups
            for package, name in product(packages.split(), names.split())
        }
    )


def _codes(groups: Iterable[tuple[Is, str]]) -> Mapping[str, Is]:
    return MappingProxyType(
        {code: category for category, codes in groups for code in codes.split()}
    )


# httpx and httpx2 share their names, as do the SDKs that one generator writes.
_HTTPX: Final = "httpx httpx2 httpcore httpcore2"
_SDKS: Final = "openai anthropic groq cerebras"

#: Classes that say by themselves what happened, by top-level package and name.
CLASSES: Final = _classes(
    # ours
    ("cleveragents", Is.BUDGET, "LimitError"),
    ("cleveragents", Is.OVERLOADED, "ProviderError"),
    ("cleveragents", Is.AUTH, "SetupError"),
    ("cleveragents", Is.BAD_REQUEST, "RequestError PlanError"),
    ("cleveragents", Is.BUG, "InternalError"),
    # the standard library
    ("builtins", Is.CONNECT, "ConnectionRefusedError"),
    ("socket", Is.CONNECT, "gaierror herror"),
    ("ssl", Is.AUTH, "SSLCertVerificationError"),
    ("builtins", Is.READ_TIMEOUT, "ConnectionResetError ConnectionAbortedError BrokenPipeError"),
    ("http", Is.READ_TIMEOUT, "IncompleteRead BadStatusLine"),
    ("json", Is.BAD_OUTPUT, "JSONDecodeError"),
    ("pydantic_core", Is.BAD_OUTPUT, "ValidationError"),
    ("concurrent asyncio", Is.CANCELLED, "CancelledError"),
    ("builtins", Is.TOOL_DENIED, "PermissionError"),
    ("builtins", Is.TOOL_TRANSIENT, "BlockingIOError InterruptedError"),
    ("subprocess", Is.TOOL_TIMEOUT, "TimeoutExpired"),
    # HTTP clients; a full pool is ours, nothing was sent
    (_HTTPX, Is.CONNECT, "ConnectTimeout ConnectError PoolTimeout ProxyError"),
    (
        _HTTPX,
        Is.READ_TIMEOUT,
        "ReadTimeout WriteTimeout ReadError WriteError CloseError RemoteProtocolError",
    ),
    (_HTTPX, Is.BAD_REQUEST, "UnsupportedProtocol InvalidURL LocalProtocolError TooManyRedirects"),
    (_HTTPX, Is.BAD_OUTPUT, "DecodingError"),
    ("requests", Is.CONNECT, "ConnectTimeout ProxyError"),
    ("requests", Is.READ_TIMEOUT, "ReadTimeout ChunkedEncodingError"),
    ("requests", Is.BAD_OUTPUT, "InvalidJSONError ContentDecodingError"),
    (
        "requests",
        Is.BAD_REQUEST,
        "InvalidURL MissingSchema InvalidSchema InvalidHeader URLRequired TooManyRedirects",
    ),
    ("urllib3", Is.CONNECT, "ConnectTimeoutError NewConnectionError EmptyPoolError"),
    ("urllib3", Is.READ_TIMEOUT, "ReadTimeoutError IncompleteRead InvalidChunkLength"),
    ("urllib3", Is.BAD_REQUEST, "LocationValueError"),
    # provider SDKs: their status classes, and those that carry no status
    (_SDKS, Is.RATE_LIMIT, "RateLimitError"),
    (_SDKS, Is.AUTH, "AuthenticationError PermissionDeniedError NotFoundError CredentialsError"),
    (_SDKS, Is.CONTEXT_OVERFLOW, "ContentTooLargeError RequestTooLargeError"),
    (_SDKS, Is.BAD_REQUEST, "BadRequestError UnprocessableEntityError"),
    (_SDKS, Is.BAD_OUTPUT, "APIResponseValidationError LengthFinishReasonError"),
    (_SDKS, Is.CONTENT_FILTER, "ContentFilterFinishReasonError"),
    (_SDKS, Is.READ_TIMEOUT, "WebSocketConnectionClosedError"),
    ("google", Is.AUTH, "DefaultCredentialsError RefreshError"),
    ("google", Is.BAD_OUTPUT, "UnknownApiResponseError"),
    ("botocore", Is.CONNECT, "ConnectTimeoutError EndpointConnectionError ProxyConnectionError"),
    (
        "botocore",
        Is.READ_TIMEOUT,
        "ReadTimeoutError ConnectionClosedError ResponseStreamingError IncompleteReadError",
    ),
    (
        "botocore",
        Is.AUTH,
        """NoCredentialsError PartialCredentialsError CredentialRetrievalError NoAuthTokenError
        TokenRetrievalError SSOError LoginError ProfileNotFound NoRegionError""",
    ),
    ("botocore", Is.BAD_REQUEST, "ParamValidationError ValidationError"),
    # pydantic-ai
    ("pydantic_ai", Is.RATE_LIMIT, "ModelRateLimitError"),
    ("pydantic_ai", Is.QUOTA, "ModelQuotaExceededError"),
    ("pydantic_ai", Is.OVERLOADED, "ModelUnavailableError"),
    ("pydantic_ai", Is.READ_TIMEOUT, "ModelRequestTimeout"),
    ("pydantic_ai", Is.CONTEXT_OVERFLOW, "ModelContextWindowExceededError"),
    ("pydantic_ai", Is.AUTH, "ModelAuthenticationError ModelNotFoundError"),
    ("pydantic_ai", Is.BAD_REQUEST, "ModelRequestRejectedError UserError"),
    ("pydantic_ai", Is.CONTENT_FILTER, "ContentFilterError"),
    ("pydantic_ai", Is.BAD_OUTPUT, "UnexpectedModelBehavior ModelRetry ToolRetryError"),
    ("pydantic_ai", Is.TOOL_CRASH, "ToolFailed ToolFailedError"),
    ("pydantic_ai", Is.TOOL_DENIED, "ApprovalRequired"),
    ("pydantic_ai", Is.BUDGET, "UsageLimitExceeded"),
    ("pydantic_ai", Is.CONNECT, "ConcurrencyLimitExceeded"),
    ("pydantic_ai", Is.STALLED, "RunTimedOut"),
    ("pydantic_ai", Is.CANCELLED, "RunCancelled"),
)

#: Classes that leave open how far the request got: their cause knows better, if there is one.
#: Alone they count as sent, because a call that may be billed is the case to be careful with.
VAGUE_CLASSES: Final = _classes(
    ("builtins", Is.READ_TIMEOUT, "TimeoutError ConnectionError"),
    ("ssl", Is.READ_TIMEOUT, "SSLError"),
    (_HTTPX, Is.READ_TIMEOUT, "TransportError TimeoutException NetworkError ProtocolError"),
    ("requests", Is.READ_TIMEOUT, "ConnectionError Timeout RetryError"),
    ("urllib3", Is.READ_TIMEOUT, "TimeoutError ProtocolError MaxRetryError SSLError ProxyError"),
    ("urllib", Is.READ_TIMEOUT, "URLError"),
    (_SDKS, Is.READ_TIMEOUT, "APIConnectionError"),
    (_SDKS, Is.OVERLOADED, "InternalServerError APIError"),
    # Raised bare, before any request, when a client gets no key.
    ("openai", Is.AUTH, "OpenAIError"),
    ("botocore", Is.READ_TIMEOUT, "ConnectionError HTTPClientError"),
    # It raises the second bare for a stream that broke a rule: sent, and maybe billed.
    ("pydantic_ai", Is.READ_TIMEOUT, "ModelConnectionError ModelAPIError"),
    # A status, if there is one, tells a gateway that gave up waiting from a server that failed.
    ("pydantic_ai", Is.OVERLOADED, "ModelServerError"),
    ("google", Is.OVERLOADED, "ServerError"),
    ("google", Is.BAD_REQUEST, "ClientError"),
)

#: Codes in the bodies of OpenAI, Anthropic, Google and AWS that outrank the HTTP status.
CODES: Final = _codes(
    (
        (
            Is.QUOTA,
            """insufficient_quota billing_hard_limit_reached billing_not_active billing_error
            credit_balance_exhausted organization_spend_limit_exceeded
            project_spend_limit_exceeded organization_usage_limit_exceeded
            enforced_spend_limit_reached servicequotaexceededexception daily_quota_exhausted""",
        ),
        (
            Is.RATE_LIMIT,
            """rate_limit_exceeded rate_limit_error too_many_requests resource_exhausted slow_down
            rate_limit_reached ramp_limit_exceeded throttlingexception throttling
            throttledexception toomanyrequestsexception requestlimitexceeded""",
        ),
        (
            Is.OVERLOADED,
            """overloaded_error overloaded server_is_overloaded engine_overloaded unavailable
            service_unavailable service_unavailable_error serviceunavailableexception
            modelnotreadyexception modelstreamerrorexception mpagreementbeingcreated""",
        ),
        (Is.READ_TIMEOUT, "timeout_error deadline_exceeded modeltimeoutexception"),
        (
            Is.CONTEXT_OVERFLOW,
            """context_length_exceeded context_window_exceeded model_context_window_exceeded
            request_too_large string_above_max_length request_body_too_large_after_decoding""",
        ),
        (
            Is.CONTENT_FILTER,
            """content_filter content_policy_violation responsibleaipolicyviolation
            moderation_blocked invalid_prompt bio_policy misalignment_policy_violation
            image_content_policy_violation""",
        ),
        (
            Is.AUTH,
            """invalid_api_key incorrect_api_key api_key_invalid authentication_error
            permission_error not_found_error model_not_found unauthenticated permission_denied
            account_deactivated organization_on_hold unsupported_country_region_territory
            accessdeniedexception unrecognizedclientexception invalidsignatureexception
            expiredtokenexception expiredtoken resourcenotfoundexception""",
        ),
        # our own codes
        (Is.RATE_LIMIT, "ca3108"),
        (Is.CONFLICT, "ca4101"),
    )
)

#: Codes that gateways put on anything: they speak only where no status does.
VAGUE_CODES: Final = _codes(
    (
        (Is.OVERLOADED, "server_error api_error internal_server_error internal aborted"),
        (Is.OVERLOADED, "internalserverexception"),
        (Is.BAD_REQUEST, "invalid_request_error invalid_argument failed_precondition"),
        (Is.BAD_REQUEST, "validationexception out_of_range data_residency_mismatch"),
        (
            Is.BAD_REQUEST,
            """invalid_image invalid_image_format invalid_base64_image invalid_image_url
            invalid_image_mode image_too_large image_too_small image_parse_error
            image_file_too_large unsupported_image_media_type empty_image_file
            failed_to_download_image image_file_not_found""",
        ),
        (Is.AUTH, "not_found"),
    )
)

#: Sentences of providers that send a refused request (HTTP 400) without a telling code.
PHRASES: Final = (
    ("prompt is too long", Is.CONTEXT_OVERFLOW),
    ("maximum context length", Is.CONTEXT_OVERFLOW),
    ("input token count", Is.CONTEXT_OVERFLOW),
    ("number of tokens allowed", Is.CONTEXT_OVERFLOW),
    ("input is too long", Is.CONTEXT_OVERFLOW),
    ("input tokens exceeded", Is.CONTEXT_OVERFLOW),
    ("reduce the length of the messages", Is.CONTEXT_OVERFLOW),
    ("exceed context limit", Is.CONTEXT_OVERFLOW),
    ("payload size exceeds", Is.CONTEXT_OVERFLOW),
    ("content filtering policy", Is.CONTENT_FILTER),
    ("credit balance is too low", Is.QUOTA),
)

#: The same fault, met by a tool instead of a model call.
AS_TOOL: Final[Mapping[Is, Is]] = MappingProxyType(
    {
        Is.RATE_LIMIT: Is.TOOL_TRANSIENT,
        Is.OVERLOADED: Is.TOOL_TRANSIENT,
        Is.CONNECT: Is.TOOL_TRANSIENT,
        Is.READ_TIMEOUT: Is.TOOL_TIMEOUT,
        Is.STALLED: Is.TOOL_TIMEOUT,
        Is.QUOTA: Is.TOOL_DENIED,
        Is.AUTH: Is.TOOL_DENIED,
        Is.CONTEXT_OVERFLOW: Is.TOOL_ARGS,
        Is.BAD_REQUEST: Is.TOOL_ARGS,
        Is.BAD_OUTPUT: Is.TOOL_ARGS,
        Is.CONTENT_FILTER: Is.TOOL_ARGS,
        Is.UNKNOWN: Is.TOOL_CRASH,
    }
)

_STATUSES: Final[Mapping[int, Is]] = MappingProxyType(
    {
        401: Is.AUTH,
        402: Is.QUOTA,
        403: Is.AUTH,
        404: Is.AUTH,
        407: Is.AUTH,
        408: Is.OVERLOADED,
        409: Is.OVERLOADED,
        410: Is.AUTH,
        413: Is.CONTEXT_OVERFLOW,
        425: Is.OVERLOADED,
        429: Is.RATE_LIMIT,
        501: Is.BAD_REQUEST,
        # A gateway gave up waiting: the model may have worked, and billed.
        504: Is.READ_TIMEOUT,
        524: Is.READ_TIMEOUT,
    }
)


def category_of_status(status: int | None) -> Is | None:
    """Return what an HTTP status says on its own; below 400 it says nothing."""
    if status is None or status < 400:
        return None
    return _STATUSES.get(status) or (Is.BAD_REQUEST if status < 500 else Is.OVERLOADED)
