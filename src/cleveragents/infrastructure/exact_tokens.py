"""Exact token counts without a network: the vocabulary comes inside its package."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final, NamedTuple

from cleveragents.application.services.context_assembly import approximate_tokens
from cleveragents.domain.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TokenCounter", "exact_counter"]

_VOCABULARY: Final = "o200k_base"


def exact_counter() -> Callable[[str], int] | None:
    """Return what counts the tokens of `o200k_base`; None unless the extra `tokens` is installed.

    Against it the guess by bytes was about half as much again too high for Python code.
    """
    try:
        vocabularies = importlib.import_module("rs_bpe.bpe").openai
    except ImportError:
        return None
    count: Callable[[str], int] = getattr(vocabularies, _VOCABULARY)().count
    return count


class _Way(NamedTuple):
    name: str
    count: Callable[[str], int]


class TokenCounter:
    """Counts tokens in the way that the setting `context_token_count` names; threads may share one.

    `exact` needs the extra `tokens`, `bytes` does not, and `auto` is exact where it is installed.
    The vocabulary is read when it is first needed.
    """

    def __init__(self, setting: str = "auto") -> None:
        self._setting = setting
        #: One reference; who comes first, and who comes at the same time, sets it to the same.
        self._way: _Way | None = None

    def __call__(self, text: str) -> int:
        """Return how many tokens a text has, or at most has."""
        return self._chosen().count(text)

    @property
    def name(self) -> str:
        """The vocabulary, or `bytes`."""
        return self._chosen().name

    def _chosen(self) -> _Way:
        way = self._way
        if way is None:
            way = self._way = self._choose()
        return way

    def _choose(self) -> _Way:
        exact = None if self._setting == "bytes" else exact_counter()
        if exact is not None:
            return _Way(_VOCABULARY, exact)
        if self._setting == "exact":
            raise SetupError(
                "`context_token_count` is exact, and the package that counts is not installed",
                hint="Run `pip install 'cleveragents[tokens]'`, or set `context_token_count` to"
                " auto",
            )
        return _Way("bytes", approximate_tokens)
