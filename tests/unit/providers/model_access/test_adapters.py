"""SDKs are imported late, and what is missing is told with the command that brings it."""

from __future__ import annotations

import subprocess
import sys

import pytest

BLOCKED = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
from cleveragents.domain.errors import SetupError
from cleveragents.providers.model_access.line import ModelLine
keys = dict.fromkeys(["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"], "k")
try:
    ModelLine(keys).check({model!r})
except SetupError as error:
    print(error.code, error.message, error.hint, sep="|")
else:
    print("fine")
"""


def run(program):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("blocked", "model", "extra"),
    [
        (["pydantic_ai"], "openai:gpt-5.2", "llm"),
        (["anthropic"], "anthropic:claude-sonnet-5-5", "llm"),
        (["google.genai"], "google:gemini-3.5-flash", "google"),
    ],
    ids=["everything", "anthropic", "google"],
)
def test_a_missing_package_is_told_with_the_command_that_installs_it(blocked, model, extra):
    provider = model.partition(":")[0]
    assert run(BLOCKED.format(blocked=blocked, model=model)) == (
        f"CA1007|Models of `{provider}` need packages that are not installed"
        f"|Run `pip install 'cleveragents[{extra}]'`"
    )


def test_a_provider_works_without_the_packages_of_the_others():
    blocked = ["anthropic", "boto3", "google.genai", "groq", "mistralai"]
    assert run(BLOCKED.format(blocked=blocked, model="openai:gpt-5.2")) == "fine"


def test_no_sdk_is_imported_before_a_model_is_asked_for():
    program = """
import sys
import cleveragents, cleveragents.cli.main
from cleveragents.providers.model_access import line, names, token_bound, usage_of
sdks = {"anthropic", "boto3", "httpx", "openai", "pydantic", "pydantic_ai"}
print(sorted(sdks & set(sys.modules)))
"""
    assert run(program) == "[]"
