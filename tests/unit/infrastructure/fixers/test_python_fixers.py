from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("[tool.ruff]\nline-length = 100\n", ["ruff"]),
        ("[tool.ruff.lint]\nselect = ['ALL']\n", ["ruff"]),
        ("[tool.ruff.format]\nquote-style = 'single'\n", ["ruff-format"]),
        ("[tool.ruff]\nselect = ['E']\n[tool.ruff.format]\n", ["ruff", "ruff-format"]),
        ("[tool.ruff.lint]\n[tool.ruff.format]\n", ["ruff", "ruff-format"]),
        ("[tool]\nruff = 3\n", []),
    ],
    ids=["bare", "lint", "format", "old-lint-and-format", "both", "nonsense"],
)
def test_ruff_lints_and_formats_only_where_it_is_configured_to(repository, content, names):
    """A formatter that nobody chose would rewrite the whole tree."""
    repository.write("pyproject.toml", content)
    assert repository.names == names


def test_ruff_has_a_file_of_its_own(repository):
    repository.write("ruff.toml", "[format]\n[lint]\n")
    assert [fixer.why for fixer in repository.fixers] == ["ruff.toml [lint]", "ruff.toml [format]"]
    repository.write("ruff.toml", "line-length = 90\n")
    assert [fixer.why for fixer in repository.fixers] == ["ruff.toml"]


def test_what_rewrites_code_stands_before_what_lays_it_out(repository):
    tools = ("black", "isort", "ruff", "autoflake", "docformatter", "codespell")
    repository.write("pyproject.toml", "".join(f"[tool.{one}]\n" for one in tools))
    assert repository.names == ["ruff", "codespell", "autoflake", "isort", "docformatter", "black"]


@pytest.mark.parametrize(
    ("file", "section", "name"),
    [
        (".isort.cfg", "settings", "isort"),
        ("setup.cfg", "isort", "isort"),
        ("setup.cfg", "tool:isort", "isort"),
        ("tox.ini", "isort", "isort"),
        (".flake8", "autopep8", "autopep8"),
        ("setup.cfg", "yapf", "yapf"),
        (".style.yapf", "style", "yapf"),
        ("setup.cfg", "codespell", "codespell"),
    ],
)
def test_the_files_before_pyproject_are_read_too(repository, file, section, name):
    repository.write(file, f"[{section}]\nkey = value\nflag\n")
    (fixer,) = repository.fixers
    assert (fixer.name, fixer.why) == (name, f"{file} [{section}]")


def test_mdformat_is_told_by_its_own_file_or_by_pyproject_and_not_twice(repository):
    repository.write(".mdformat.toml", "wrap = 80\n")
    assert [fixer.why for fixer in repository.fixers] == [".mdformat.toml"]
    repository.write("pyproject.toml", "[tool.mdformat]\n")
    assert [fixer.why for fixer in repository.fixers] == ["pyproject.toml [tool.mdformat]"]


def test_a_linter_without_fixes_is_no_fixer(repository):
    repository.write("setup.cfg", "[flake8]\nmax-line-length = 100\n[mypy]\nstrict = true\n")
    assert repository.fixers == ()


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        ("pyproject.toml", "[tool.pytest.ini_options]\n", "pyproject.toml [tool.pytest]"),
        ("setup.cfg", "[tool:pytest]\n", "setup.cfg [tool:pytest]"),
        ("tox.ini", "[pytest]\n", "tox.ini [pytest]"),
        ("tests/conftest.py", "", "tests/conftest.py"),
    ],
)
def test_pytest_is_the_check_where_it_is_configured(repository, file, content, why):
    repository.write(file, content)
    assert (repository.check.why, repository.check.why_not) == (why, "`pytest` is not installed")
    repository.install("pytest", folder="venv/bin")
    assert repository.check.argv[0] == str(repository.root / "venv/bin/pytest")
    assert repository.check.why_not is None
