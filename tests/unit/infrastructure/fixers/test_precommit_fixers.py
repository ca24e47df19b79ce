from __future__ import annotations

import json

import pytest

from cleveragents.infrastructure.fixers.fixer import FileChoice


@pytest.fixture
def hooks(repository):
    def write(*hooks, repo="https://example.org/hooks", **top):
        config = {"repos": [{"repo": repo, "hooks": list(hooks)}], **top}
        # JSON is YAML.
        repository.write(".pre-commit-config.yaml", json.dumps(config))
        return repository.fixers

    return write


def test_hooks_run_in_their_order_with_their_arguments(repository, hooks):
    repository.install("pyupgrade", "ruff")
    upgrade, ruff = hooks(
        {"id": "pyupgrade", "args": ["--py311-plus"]},
        {"id": "ruff-check", "args": ["--fix", "--exit-non-zero-on-fix", "--select", "I"]},
    )
    assert upgrade.argv[1:] == ("--exit-zero-even-if-changed", "--py311-plus")
    # Told `--fix` twice, ruff refuses to run.
    assert ruff.argv[1:] == (
        *("check", "--fix", "--exit-zero", "--no-cache", "--force-exclude"),
        *("--select", "I"),
    )
    assert (ruff.name, ruff.why) == ("ruff", ".pre-commit-config.yaml hook `ruff-check`")


def test_a_hook_that_only_looks_is_no_fixer(hooks):
    assert hooks({"id": "check-yaml"}, {"id": "mypy"}) == ()


def test_a_hook_that_nobody_knows_is_named_and_not_run(hooks):
    (fixer,) = hooks({"id": "Make It So!"})
    assert fixer.name == "make-it-so"
    assert "`pre-commit run 'Make It So!'`" in fixer.why_not


@pytest.mark.parametrize("broken", [{}, {"id": "…"}])
def test_a_hook_without_a_usable_name_is_named_somehow(hooks, broken):
    assert [fixer.name for fixer in hooks(broken)] == ["hook"]


def test_what_is_no_hook_is_passed_over(repository):
    repository.write(".pre-commit-config.yaml", "repos: [3, {repo: x}, {repo: y, hooks: {id: a}}]")
    assert repository.fixers == ()


def test_a_hook_for_another_stage_is_named_and_not_run(hooks):
    late, now = hooks(
        {"id": "black", "stages": ["manual"]}, {"id": "isort", "stages": ["pre-commit"]}
    )
    assert late.why_not == "it is for the stage `manual` only"
    assert now.why_not == "`isort` is not installed"


def test_a_hook_that_stands_there_twice_is_two_fixers(hooks):
    names = [fixer.name for fixer in hooks({"id": "prettier"}, {"id": "prettier", "args": ["-x"]})]
    assert names == ["prettier", "prettier-2"]


def test_a_hook_takes_the_files_that_it_is_meant_for(hooks):
    (fixer,) = hooks(
        {"id": "black", "files": "^src/", "exclude": "_pb2"}, exclude="^src/vendor/", files="x"
    )
    takes = fixer.files.takes
    assert takes("src/a.py")
    for path in ("a.py", "src/a_pb2.py", "src/vendor/b.py", "src/a.js"):
        assert not takes(path), path


def test_a_hook_may_name_other_kinds_of_files(hooks):
    named, unknown = hooks(
        {"id": "prettier", "types_or": ["css", "scss"]}, {"id": "black", "types": ["cython"]}
    )
    assert named.files.suffixes == (".css", ".scss")
    assert unknown.files.suffixes == (".py", ".pyi")


def test_a_pattern_that_cannot_be_read_is_the_reason_not_to_run(repository, hooks):
    repository.install("black")
    (fixer,) = hooks({"id": "black", "exclude": "("})
    assert "pattern '(' cannot be read" in fixer.why_not


def test_a_hook_of_the_repository_is_known_by_its_program(hooks):
    whole, given, formats = hooks(
        {"id": "style", "entry": "black --check src", "pass_filenames": False},
        {"id": "imports", "entry": "isort --profile black"},
        {"id": "layout", "entry": "ruff format"},
        repo="local",
    )
    assert (whole.argv, whole.files) == (("black", "--quiet", "src"), None)
    assert given.argv == ("isort", "--quiet", "--filter-files", "--profile", "black")
    assert given.files.suffixes == (".py", ".pyi")
    assert formats.name == "ruff-format"


@pytest.mark.parametrize("entry", ["make tidy", "black 'unfinished", ""])
def test_a_hook_of_the_repository_that_runs_anything_else_is_not_run(hooks, entry):
    (fixer,) = hooks({"id": "check-own", "entry": entry}, repo="local")
    assert "not known here" in fixer.why_not


def test_a_hook_without_names_of_files_works_on_the_tree(hooks):
    black, cargo = hooks(
        {"id": "black", "pass_filenames": False}, {"id": "fmt", "pass_filenames": False}
    )
    assert (black.argv, black.files) == (("black", "--quiet", "."), None)
    assert (cargo.argv, cargo.files) == (("cargo", "fmt"), None)


def test_a_fixer_of_text_takes_no_binary_file():
    """`trailing-whitespace-fixer` would cut bytes out of a picture."""
    choice = FileChoice()
    assert choice.takes("a.png")
    assert choice.takes_content("Größe 7\n".encode())
    assert not choice.takes_content(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")


def test_a_choice_of_files_survives_the_plan_that_holds_it():
    choice = FileChoice(suffixes=(".py",), wanted="^src/", unwanted=("x", "y"))
    assert FileChoice.of(choice.plain()) == choice
