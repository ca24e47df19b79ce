from __future__ import annotations

import subprocess
import sys

import pytest

from cleveragents.cli.grammar import parser


def test_grammar_needs_neither_the_store_nor_sqlite():
    """Late imports keep `--help` and `--version` fast."""
    program = (
        "import sys; before = set(sys.modules); "
        "from cleveragents.cli.grammar import parser; parser(); "
        "print([name for name in set(sys.modules) - before if name == 'sqlite3' "
        "or name.startswith(('cleveragents.infrastructure', 'cleveragents.domain'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "as_json"),
    [
        (["costs", "settle", "r-1", "1"], False),
        (["costs", "--json", "settle", "r-1", "1"], True),
        (["costs", "settle", "--json", "r-1", "1"], True),
        (["costs", "release", "r-1", "--json"], True),
    ],
    ids=["without", "before", "after", "last"],
)
def test_json_is_heard_before_and_after_a_correction(arguments, as_json):
    assert parser().parse_args(arguments).json is as_json
