"""A key goes only where the hand that set it sends it."""

from __future__ import annotations

import pytest

from cleveragents.domain.errors import RequestError, SetupError
from cleveragents.providers.model_access.access import access_to, key_variable_of

KEYS = {"OPENAI_API_KEY": "mine", "CLEVERAGENTS_KEY_API_DEEPSEEK_COM": "theirs"}


def test_the_provider_itself_gets_its_key():
    access = access_to("openai:gpt-5.2", None, KEYS)
    assert (access.base_url, access.key, access.foreign) == (None, "mine", False)


@pytest.mark.parametrize(
    "base_url",
    ["https://evil.example/v1", "http://api.openai.com/v1", "https://api.openai.com:8443/v1"],
    ids=["stranger", "unencrypted", "other-port"],
)
def test_another_address_does_not_get_the_providers_key(base_url):
    """A plan file of a stranger may name any address."""
    access = access_to("openai:gpt-5.2", base_url, KEYS)
    assert (access.key, access.foreign) == (None, True)


def test_another_address_gets_the_key_that_is_named_after_its_host():
    assert access_to("openai:deepseek-chat", "https://api.deepseek.com/v1", KEYS).key == "theirs"


@pytest.mark.parametrize("base_url", ["https://api.openai.com/v1", "http://proxy.corp/v1/"])
def test_the_providers_host_and_the_address_beside_the_key_get_the_key(base_url):
    keys = {**KEYS, "OPENAI_BASE_URL": "http://proxy.corp/v1"}
    access = access_to("openai:gpt-5.2", base_url, keys)
    assert (access.key, access.foreign) == ("mine", False)


def test_the_address_beside_the_key_is_used_where_none_is_asked_for():
    keys = {**KEYS, "OPENAI_BASE_URL": "http://proxy.corp/v1"}
    assert access_to("openai:gpt-5.2", None, keys).base_url == "http://proxy.corp/v1"


def test_ollama_is_local_and_needs_no_key():
    access = access_to("ollama:qwen3", None, {})
    assert (access.base_url, access.key) == ("http://localhost:11434/v1", None)


def test_the_second_variable_of_a_key_serves_if_the_first_is_empty():
    keys = {"GOOGLE_API_KEY": "", "GEMINI_API_KEY": "k"}
    assert access_to("google:gemini-3.5-flash", None, keys).key == "k"


def test_a_missing_key_is_named_with_the_variable_to_set():
    with pytest.raises(SetupError) as refused:
        access_to("google:gemini-3.5-flash", None, {})
    assert refused.value.code == "CA1002"
    assert refused.value.message == "There is no API key for provider `google`"
    assert refused.value.facts == {"variable": "GOOGLE_API_KEY or GEMINI_API_KEY"}
    assert refused.value.hint == "Set `GOOGLE_API_KEY` in the environment"


@pytest.mark.parametrize(
    ("base_url", "variable"),
    [
        ("https://api.deepseek.com", "CLEVERAGENTS_KEY_API_DEEPSEEK_COM"),
        ("https://api-deepseek.com:8000/v1", "CLEVERAGENTS_KEY_API__DEEPSEEK_COM"),
        ("http://[::1]:8000/v1", None),
    ],
    ids=["dots", "hyphen", "no-name"],
)
def test_no_two_hosts_share_the_variable_of_a_key(base_url, variable):
    assert key_variable_of(base_url) == variable


def test_an_address_without_a_variable_has_no_key():
    assert access_to("openai:x", "http://[::1]:8000/v1", KEYS).key is None


@pytest.mark.parametrize("base_url", ["", "localhost:8000", "ftp://x/", "http://", "http://x:a/"])
def test_what_is_no_address_is_refused(base_url):
    with pytest.raises(RequestError, match="`base_url` must be an http address with a host"):
        access_to("openai:x", base_url, KEYS)


def test_a_key_does_not_show_in_a_representation():
    assert "mine" not in repr(access_to("openai:gpt-5.2", None, KEYS))
