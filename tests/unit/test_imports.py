"""Nobody pays for the SDKs of models who does not ask one: a start takes 0.1 s, not 2 s."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.skipif(
    find_spec("pydantic_ai") is None, reason="could not fail without the packages for models"
)

SDKS = ("pydantic", "pydantic_ai", "openai", "anthropic", "groq", "mistralai", "boto3", "httpx")
MORE = ("google.genai", "genai_prices", "mcp")
PROGRAM = f"""
import sys
import cleveragents
if sys.argv[1:]:
    from cleveragents.cli.main import main
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
print("loaded", [one for one in {SDKS + MORE} if one in sys.modules])
"""


@pytest.mark.parametrize(
    "words",
    [(), ("--help",), ("--version",), ("run", "--help"), ("settings",)],
    ids=lambda words: " ".join(words) or "import",
)
def test_no_sdk_is_loaded_before_a_model_is_asked(words, tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert ended.stdout.endswith("loaded []\n")


def test_the_program_above_sees_an_sdk_that_is_loaded():
    planted = PROGRAM.replace("import cleveragents\n", "import pydantic_ai\n", 1)
    ended = subprocess.run(
        [sys.executable, "-c", planted], capture_output=True, text=True, check=True
    )
    assert "'pydantic_ai'" in ended.stdout
