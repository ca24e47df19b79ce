from __future__ import annotations

import pytest

from cleveragents.domain.errors import SetupError
from cleveragents.infrastructure.fixers import found_fixers


def test_an_empty_tree_asks_for_nothing(repository):
    assert repository.fixers == ()
    assert repository.check is None


def test_a_program_of_the_tree_comes_before_one_of_the_machine(repository):
    repository.write("pyproject.toml", "[tool.black]\n")
    repository.install("black")
    repository.install("black", folder=".venv/bin")
    (fixer,) = repository.fixers
    assert fixer.argv[0] == str(repository.root / ".venv/bin/black")
    assert fixer.runnable


def test_a_program_that_is_not_installed_is_named_with_the_reason(repository):
    repository.write("pyproject.toml", "[tool.black]\n")
    (fixer,) = repository.fixers
    assert fixer.argv[0] == "black"
    assert (fixer.runnable, fixer.why_not) == (False, "`black` is not installed")


def test_the_path_of_the_user_is_searched_by_default(repository, monkeypatch):
    repository.write("pyproject.toml", "[tool.black]\n")
    repository.install("black")
    monkeypatch.setenv("PATH", repository.path)
    assert found_fixers(repository.root)[0].runnable


def test_a_hook_and_a_table_for_one_tool_are_one_fixer_run_as_the_hook_says(repository):
    repository.write("pyproject.toml", "[tool.black]\n")
    repository.write(
        ".pre-commit-config.yaml", "repos: [{repo: x, hooks: [{id: black, args: [-l, '79']}]}]"
    )
    repository.install("black")
    (fixer,) = repository.fixers
    assert fixer.argv[1:] == ("--quiet", "-l", "79")


def test_a_hook_that_cannot_run_gives_way_to_a_table_that_can(repository):
    repository.write("package.json", {"devDependencies": {"prettier": "3"}})
    repository.write(
        ".pre-commit-config.yaml",
        "repos: [{repo: x, hooks: [{id: prettier, stages: [manual]}]}]",
    )
    repository.install("prettier", folder="node_modules/.bin")
    (fixer,) = repository.fixers
    assert fixer.why == "package.json devDependencies.prettier"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pyproject.toml", "[tool"),
        ("package.json", "{"),
        (".pre-commit-config.yaml", "repos: [\n  }"),
        ("setup.cfg", "no section\n"),
        ("tox.ini", "\ud800".encode("utf-8", "surrogatepass")),
    ],
)
def test_a_file_that_cannot_be_read_is_named(repository, name, content):
    repository.write(name)
    data = content if isinstance(content, bytes) else content.encode()
    (repository.root / name).write_bytes(data)
    with pytest.raises(SetupError, match=f"`{name}` cannot be read") as caught:
        _ = repository.fixers
    assert "\n" not in caught.value.message


def test_a_folder_where_a_file_is_expected_configures_nothing(repository):
    (repository.root / "pyproject.toml").mkdir()
    repository.write("package.json", "[1, 2]")
    assert repository.fixers == ()


def test_a_check_that_can_run_comes_before_one_that_cannot(repository):
    repository.write("pytest.ini", "[pytest]\n")
    repository.write("package.json", {"scripts": {"test": "node test.js"}})
    repository.install("npm")
    assert repository.check.why == "package.json scripts.test"
    repository.install("pytest")
    assert repository.check.why == "pytest.ini [pytest]"
