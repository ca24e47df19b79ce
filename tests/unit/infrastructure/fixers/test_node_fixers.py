from __future__ import annotations

import pytest


def test_tools_are_told_by_a_file_a_key_or_a_dependency(repository):
    repository.write(
        "package.json",
        {"prettier": {}, "dependencies": {"standard": "17"}, "devDependencies": {}},
    )
    repository.write("eslint.config.mjs")
    repository.write("biome.json", {})
    assert {fixer.name: fixer.why for fixer in repository.fixers} == {
        "eslint": "eslint.config.mjs",
        "standard": "package.json dependencies.standard",
        "biome": "biome.json",
        "prettier": "package.json prettier",
    }


def test_a_script_that_fixes_is_run_and_its_tools_are_not_run_again(repository):
    repository.write(
        "package.json",
        {
            "scripts": {"lint:fix": "eslint --fix src", "lint": "eslint src", "test": "jest"},
            "devDependencies": {"eslint": "9", "prettier": "3"},
        },
    )
    repository.install("npm")
    repository.install("prettier", folder="node_modules/.bin")
    script, prettier = repository.fixers
    assert script.argv[1:] == ("run", "lint:fix")
    assert (script.name, script.why, script.runnable) == (
        "lint-fix",
        "package.json scripts.lint:fix",
        True,
    )
    assert prettier.name == "prettier"


@pytest.mark.parametrize("text", ["prettier --check .", "prettier -l src", 7])
def test_a_script_that_only_looks_is_no_fixer(repository, text):
    repository.write("package.json", {"scripts": {"format": text}})
    assert repository.fixers == ()


@pytest.mark.parametrize(
    ("lock", "program"), [("yarn.lock", "yarn"), ("pnpm-lock.yaml", "pnpm"), ("", "npm")]
)
def test_scripts_run_by_the_program_whose_lock_file_is_there(repository, lock, program):
    repository.write("package.json", {"scripts": {"fmt": "dprint fmt", "test": "jest"}})
    if lock:
        repository.write(lock)
    assert repository.fixers[0].argv[0] == program
    assert repository.check.argv == (program, "test")


def test_packages_that_are_not_installed_are_the_reason_not_to_run(repository):
    repository.write(
        "package.json",
        {"scripts": {"format": "prettier -w .", "test": "jest"}, "dependencies": {"jest": "1"}},
    )
    repository.install("npm")
    reason = "`node_modules` is not there: run `npm install`"
    assert repository.fixers[0].why_not == reason
    assert repository.check.why_not == reason


def test_the_test_script_that_npm_writes_is_no_check(repository):
    repository.write(
        "package.json", {"scripts": {"test": 'echo "Error: no test specified" && exit 1'}}
    )
    assert repository.check is None
