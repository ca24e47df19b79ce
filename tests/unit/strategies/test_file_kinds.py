from __future__ import annotations

import pytest

from cleveragents.strategies.file_kinds import worth


@pytest.mark.parametrize(
    "path", ["src/app.py", "click/testing.py", "contest.go", "web/src/latest.tsx", "a/doc.rs"]
)
def test_code_is_worth_most(path):
    assert worth(path) == 1.0


@pytest.mark.parametrize(
    "path",
    [
        "tests/app.py",
        "testing/deep/app.py",
        "src/test_app.py",
        "conftest.py",
        "internal/app_test.go",
        "src/app.spec.ts",
        "src/__tests__/App.tsx",
    ],
)
def test_tests_are_worth_less(path):
    assert worth(path) == 0.3


@pytest.mark.parametrize("path", ["README.md", "Makefile", "pyproject.toml", "py"])
def test_what_is_no_code_is_worth_less(path):
    assert worth(path) == 0.3


@pytest.mark.parametrize("path", ["docs_src/a.py", "examples/a.py", "benchmarks/a.py"])
def test_code_aside_is_worth_less_than_the_code(path):
    assert worth(path) == 0.5


def test_kinds_multiply():
    assert worth("docs/tests/a.md") == pytest.approx(0.3 * 0.3 * 0.5)
