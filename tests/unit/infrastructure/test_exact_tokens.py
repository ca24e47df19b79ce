from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from cleveragents.application.services.context_assembly import approximate_tokens
from cleveragents.domain.errors import SetupError
from cleveragents.infrastructure import exact_tokens
from cleveragents.infrastructure.exact_tokens import TokenCounter, exact_counter


def test_without_the_package_there_is_no_exact_counter(monkeypatch):
    monkeypatch.setitem(sys.modules, "rs_bpe", None)
    monkeypatch.setitem(sys.modules, "rs_bpe.bpe", None)

    assert exact_counter() is None


def test_the_counter_is_that_of_the_package(monkeypatch):
    bpe = ModuleType("rs_bpe.bpe")
    bpe.openai = SimpleNamespace(o200k_base=lambda: SimpleNamespace(count=len))
    monkeypatch.setitem(sys.modules, "rs_bpe", ModuleType("rs_bpe"))
    monkeypatch.setitem(sys.modules, "rs_bpe.bpe", bpe)

    assert exact_counter()("four") == 4


def test_a_guess_by_bytes_is_not_below_the_exact_count():
    pytest.importorskip("rs_bpe")
    text = "def parse_header(line: str) -> dict[str, str]:\n    return {}\n" * 20

    assert 0 < exact_counter()(text) <= approximate_tokens(text)


@pytest.mark.parametrize(
    ("setting", "installed", "name"),
    [
        ("auto", True, "o200k_base"),
        ("auto", False, "bytes"),
        ("exact", True, "o200k_base"),
        ("bytes", True, "bytes"),
    ],
)
def test_the_setting_and_what_is_installed_choose_the_way(monkeypatch, setting, installed, name):
    monkeypatch.setattr(exact_tokens, "exact_counter", lambda: len if installed else None)
    counter = TokenCounter(setting)

    assert counter.name == name
    assert counter("four") == (4 if name == "o200k_base" else 2)


def test_exact_counts_are_refused_without_the_package(monkeypatch):
    monkeypatch.setattr(exact_tokens, "exact_counter", lambda: None)

    with pytest.raises(SetupError, match="`context_token_count` is exact") as raised:
        TokenCounter("exact")("text")

    assert "cleveragents[tokens]" in raised.value.hint


def test_the_vocabulary_is_read_when_it_is_first_needed(monkeypatch):
    reads = []
    monkeypatch.setattr(exact_tokens, "exact_counter", lambda: reads.append(1) or len)
    counter = TokenCounter()

    assert not reads
    assert (counter("a"), counter("bc"), len(reads)) == (1, 2, 1)
