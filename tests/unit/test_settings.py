from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cleveragents.domain.errors import SetupError
from cleveragents.domain.money import Money
from cleveragents.providers.model_access.rate_bucket import RateLimits
from cleveragents.providers.pricing import Price
from cleveragents.settings import SETTINGS_FILE, Settings, load, root_of, store_path


def test_defaults_are_valid_and_frozen():
    settings, sources = load(environment={})
    assert settings == Settings()
    assert set(sources.values()) == {"default"}
    with pytest.raises(AttributeError):
        settings.zone = "CET"


def test_flag_wins_over_environment_over_file_over_default(tmp_path):
    (tmp_path / SETTINGS_FILE).write_text(
        "context_workers_max = 5\ncontext_tokens_max = 100\ndaily_budget_usd = 5.0\n"
    )
    settings, sources = load(
        {"context_workers_max": 7, "zone": None},
        {"CLEVERAGENTS_CONTEXT_WORKERS_MAX": "6", "CLEVERAGENTS_CONTEXT_TOKENS_MAX": "200"},
        tmp_path,
    )
    assert settings.context_workers_max == 7
    assert settings.context_tokens_max == 200
    assert settings.daily_budget_usd == Money.of(5)
    assert sources["context_workers_max"] == "flag"
    assert sources["context_tokens_max"] == "environment CLEVERAGENTS_CONTEXT_TOKENS_MAX"
    assert sources["daily_budget_usd"] == str(tmp_path / SETTINGS_FILE)
    assert sources["zone"] == "default"


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("daily_budget_usd", "-1", "must be an amount of USD from 0 to 1,000,000"),
        ("daily_budget_usd", "", "must be an amount of USD"),
        ("zone", "Mars", "must be a name of the time zone database"),
        ("breaker_pause_s", 0, "must be a number of seconds above 0"),
        ("breaker_pause_s", "inf", "must be a number"),
        ("breaker_pause_s", True, "must be a number"),
        ("context_workers_max", 2.5, "must be a whole number from 1 to 64"),
        ("context_workers_max", "many", "must be a number"),
        ("context_workers_max", None, "must be a number"),
    ],
    ids=str,
)
def test_value_that_breaks_its_rule_is_refused_with_it(name, value, rule):
    with pytest.raises(SetupError, match=rule) as caught:
        Settings(**{name: value})
    assert caught.value.code == "CA1001"
    assert caught.value.hint == (
        f"Set `{name}` in `cleveragents.toml`, or `CLEVERAGENTS_{name.upper()}`"
    )


def test_refusal_names_where_the_value_came_from():
    with pytest.raises(SetupError) as caught:
        load(environment={"CLEVERAGENTS_ZONE": "Mars"})
    assert caught.value.facts["source"] == "environment CLEVERAGENTS_ZONE"


def test_unknown_setting_is_refused_with_the_nearest_known_one(tmp_path):
    (tmp_path / SETTINGS_FILE).write_text("daily_budget = 5\n")
    with pytest.raises(SetupError, match="is not known") as caught:
        load(environment={}, folder=tmp_path)
    assert caught.value.hint == "Did you mean `daily_budget_usd`?"
    (tmp_path / SETTINGS_FILE).write_text("colour = 5\n")
    with pytest.raises(SetupError) as caught:
        load(environment={}, folder=tmp_path)
    assert caught.value.hint == "Run `cleveragents settings` to see all"


@pytest.mark.parametrize("content", [b"a = ", b"\xff\xfe"], ids=["not-toml", "not-utf8"])
def test_file_that_cannot_be_read_is_a_set_up_error(tmp_path, content):
    (tmp_path / SETTINGS_FILE).write_bytes(content)
    with pytest.raises(SetupError, match="cannot be read"):
        load(environment={}, folder=tmp_path)


def test_named_file_must_exist(tmp_path):
    with pytest.raises(SetupError, match="cannot be read"):
        load(environment={"CLEVERAGENTS_SETTINGS": str(tmp_path / "missing.toml")})
    named = tmp_path / "other.toml"
    named.write_text("zone = 'Europe/Berlin'\n")
    settings, _ = load(environment={"CLEVERAGENTS_SETTINGS": str(named)})
    assert settings.zone == "Europe/Berlin"


@pytest.mark.parametrize("value", ["", " ", ".", "..", "/", "a\0b", 5], ids=repr)
def test_store_must_be_the_path_of_a_file(value):
    with pytest.raises(SetupError, match="`store` must be the path of a file"):
        Settings(store=value)


def test_store_may_start_at_the_home_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings(store="~/state.db").store == tmp_path / "state.db"


@pytest.mark.parametrize("git", [Path.mkdir, Path.touch], ids=["repository", "worktree"])
def test_store_is_found_from_every_folder_of_a_repository(tmp_path, git, monkeypatch):
    git(tmp_path / ".git")
    (tmp_path / "deep" / "down").mkdir(parents=True)
    expected = tmp_path / ".cleveragents" / "state.db"
    assert store_path(Settings(), tmp_path / "deep" / "down") == expected
    monkeypatch.chdir(tmp_path / "deep")
    assert store_path(Settings()) == expected


def test_store_outside_of_a_repository_is_in_the_folder(tmp_path):
    assert store_path(Settings(store="x.db"), tmp_path) == tmp_path / "x.db"


def test_absolute_store_is_taken_as_it_is(tmp_path):
    (tmp_path / ".git").mkdir()
    assert store_path(Settings(store=tmp_path / "a" / "x.db"), Path("/")) == (
        tmp_path / "a" / "x.db"
    )


def test_root_is_that_of_the_repository_around_a_folder(tmp_path):
    deep = tmp_path / "repository" / "deep" / "down"
    deep.mkdir(parents=True)
    assert root_of(deep) == deep
    # Of a work tree or a submodule it is a file, and it may be a link.
    (tmp_path / "repository" / ".git").symlink_to("elsewhere")
    assert root_of(deep) == tmp_path / "repository"
    (deep / ".git").mkdir()
    assert root_of(deep) == deep


def test_root_is_found_from_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / ".git").write_text("gitdir: elsewhere")
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    assert root_of() == tmp_path
    assert store_path(Settings()) == tmp_path / ".cleveragents" / "state.db"


def test_current_folder_that_was_deleted_is_said(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for ask in (load, root_of):
        with pytest.raises(SetupError, match="The current folder was deleted"):
            ask()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("sandbox_kind", "cloud", "must be one of auto, overlay, worktree, copy"),
        ("confinement", "maybe", "must be one of auto, required, off"),
        ("confinement", 1, "must be one of auto, required, off"),
    ],
)
def test_words_are_those_that_are_known(name, value, says):
    with pytest.raises(SetupError, match=f"`{name}` {says}"):
        Settings(**{name: value})


def test_ways_of_keeping_attempts_apart_can_be_chosen():
    settings = load(environment={"CLEVERAGENTS_SANDBOX_KIND": "copy"})[0]
    assert (settings.sandbox_kind, settings.confinement) == ("copy", "auto")


PRICED = """
[prices."ollama:qwen3"]
input_mtok = 0
output_mtok = 0

[prices."openai:own"]
input_mtok = 0.1
output_mtok = "0.7"
cache_read_mtok = 0.01

[rate_limits.anthropic]
requests_per_min = 50
tokens_per_min = 40_000
"""


def test_prices_and_rates_are_tables_of_the_file(tmp_path):
    (tmp_path / SETTINGS_FILE).write_text(PRICED)
    settings, sources = load(environment={}, folder=tmp_path)
    assert dict(settings.prices) == {
        "ollama:qwen3": Price(input_mtok=0, output_mtok=0),
        "openai:own": Price(input_mtok=0.1, output_mtok="0.7", cache_read_mtok=0.01),
    }
    assert dict(settings.rate_limits) == {"anthropic": RateLimits(50, 40_000)}
    assert sources["prices"] == str(tmp_path / SETTINGS_FILE)
    # What is checked once may be given again.
    assert replace(settings) == settings
    hash(settings)


def test_prices_can_stand_in_the_environment():
    written = '{ "ollama:qwen3" = { input_mtok = 0, output_mtok = 0 } }'
    settings = load(environment={"CLEVERAGENTS_PRICES": written})[0]
    assert dict(settings.prices) == {"ollama:qwen3": Price(input_mtok=0, output_mtok=0)}


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("prices", 5, "must be like `{ "),
        ("prices", "{", "must be like `{ "),
        ("prices", {"m": 5}, "a table may have input_mtok, output_mtok, cache_read_mtok"),
        ("prices", {"m": {"input_mtok": 1}}, "a table may have input_mtok, output_mtok"),
        ("prices", {"m": {"input_mtok": 1, "output_mtok": -1}}, "got -1"),
        ("rate_limits", {"openai": {"requests": 5}}, "a table may have requests_per_min"),
        ("rate_limits", {"openai": {"requests_per_min": 0}}, "whole number from 1, or None, got 0"),
        ("rate_limits", {"opnai": {}}, "must be of anthropic, bedrock"),
    ],
    ids=str,
)
def test_tables_are_refused_with_what_they_may_hold(name, value, says):
    with pytest.raises(SetupError) as caught:
        Settings(**{name: value})
    assert says in caught.value.message
    assert caught.value.message.startswith(f"The setting `{name}` must be")


def test_longest_pause_is_at_least_the_first():
    with pytest.raises(SetupError, match="must be at least `breaker_pause_s`"):
        Settings(breaker_pause_s_max=5)


@pytest.mark.parametrize("value", ["", "index", "./index", "/a\0b", 5], ids=repr)
def test_folder_of_the_index_must_be_absolute(value):
    """A relative one would mean another folder wherever a command is run."""
    with pytest.raises(SetupError, match="must be auto, off or the absolute path of a folder"):
        Settings(context_index_folder=value)


def test_folder_of_the_index_may_be_in_the_home_of_the_user(monkeypatch):
    monkeypatch.setenv("HOME", "/someone")
    assert Settings(context_index_folder="~/index").context_index_folder == "/someone/index"
    assert Settings(context_index_folder="off").context_index_folder == "off"


@pytest.mark.parametrize("value", ["", "auto", "model", "/a\0b"], ids=repr)
def test_folder_of_the_model_must_be_absolute(value):
    """`model` alone could be taken for the name of a public model; nothing is ever fetched."""
    with pytest.raises(SetupError, match="must be off or the absolute path of a folder"):
        Settings(context_embeddings=value)
