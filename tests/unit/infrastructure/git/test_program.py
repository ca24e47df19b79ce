"""The program git: there, young enough, and told nothing by strangers."""

from __future__ import annotations

import os

import pytest

from cleveragents.domain.errors import SandboxError, SetupError
from cleveragents.infrastructure.git import program


@pytest.fixture(autouse=True)
def asked_anew():
    program.git_program.cache_clear()
    yield
    program.git_program.cache_clear()


def fake_git(folder, says):
    path = folder / "git"
    path.write_text(f"#!/bin/sh\necho '{says}'\n", encoding="utf-8")
    path.chmod(0o755)


def test_a_missing_git_is_told_with_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError) as caught:
        program.git_program()
    assert caught.value.code == "CA1006"
    assert "2.38" in caught.value.hint


@pytest.mark.parametrize("says", ["git version 2.37.9", "git version 1.99.0", "nonsense", ""])
def test_an_old_git_is_refused(tmp_path, monkeypatch, says):
    fake_git(tmp_path, says)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxError) as caught:
        program.git_program()
    assert caught.value.code == "CA5101"


@pytest.mark.parametrize("says", ["git version 2.38.0", "git version 3.0.1 (Apple Git-154)"])
def test_a_young_git_is_found_once(tmp_path, monkeypatch, says):
    fake_git(tmp_path, says)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert program.git_program() == str(tmp_path / "git")
    monkeypatch.setenv("PATH", "")
    assert program.git_program() == str(tmp_path / "git")


def test_only_variables_that_lead_nowhere_else_are_passed_on(monkeypatch):
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_PARAMETERS", "GIT_NEW_ONE"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "mine")
    passed = program.foreign_environment()
    assert {name for name in passed if name.startswith("GIT_")} <= {
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
    }
    assert program.clean_environment()["GIT_CONFIG_GLOBAL"] == os.devnull


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("warning: x\nfatal: no.\nhint: y", "`git verb` refused: fatal: no"),
        ("one\ntwo", "`git verb` refused: two"),
        ("", "`git verb` refused: it did not say why"),
    ],
    ids=["fatal", "plain", "silent"],
)
def test_a_refusal_says_what_git_said(said, told):
    assert program.refused("verb", said).message == told


def test_repository_of_another_owner_is_refused_with_the_command_that_trusts_it():
    said = (
        "fatal: detected dubious ownership in repository at '/a b'\n"
        "To add an exception for this directory, call:\n\n"
        "\tgit config --global --add safe.directory '/a b'"
    )
    error = program.refused("verb", said)
    assert error.message.endswith("detected dubious ownership in repository at '/a b'")
    assert error.hint == (
        "Run `git config --global --add safe.directory '/a b'` if you trust whoever owns it"
    )
    assert program.refused("verb", "fatal: no").hint is None


def test_an_exit_code_that_is_not_fine_is_refused(tmp_path):
    with pytest.raises(SandboxError, match="rev-parse"):
        program.run_git(("rev-parse", "HEAD"), program.clean_environment(), folder=tmp_path)
