"""A model's name says who serves it."""

from __future__ import annotations

import tomllib

import pytest

from cleveragents.domain.errors import SetupError
from cleveragents.providers.model_access.names import PROVIDERS, ModelName
from tidy.source import ROOT


def test_a_name_is_a_provider_and_a_model():
    name = ModelName.parse("bedrock:us.amazon.nova-pro-v1:0")
    assert (name.provider.name, name.model) == ("bedrock", "us.amazon.nova-pro-v1:0")
    assert str(name) == "bedrock:us.amazon.nova-pro-v1:0"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_example_of_every_provider_is_a_name(provider):
    text = f"{provider}:{PROVIDERS[provider].example}"
    assert str(ModelName.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "gpt-5.2", "nobody:gpt", "openai:", "openai:a b", "openai:a\n", "openrouter:gpt-5.2"],
    ids=["empty", "no-provider", "unknown", "no-model", "space", "newline", "no-vendor"],
)
def test_what_names_no_model_is_refused_with_the_providers_that_there_are(text):
    with pytest.raises(SetupError) as refused:
        ModelName.parse(text)
    assert refused.value.code == "CA1008"
    assert refused.value.facts["providers"] == ", ".join(PROVIDERS)


def test_a_misspelt_provider_is_answered_with_the_one_that_was_meant():
    with pytest.raises(SetupError) as refused:
        ModelName.parse("antropic:claude-sonnet-5-5")
    assert refused.value.message == "There is no provider 'antropic' of models"
    assert refused.value.hint == "Write for example `anthropic:claude-sonnet-5-5`"


def test_every_provider_is_brought_by_an_extra_that_exists():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {one.extra for one in PROVIDERS.values()} <= set(project["optional-dependencies"])
