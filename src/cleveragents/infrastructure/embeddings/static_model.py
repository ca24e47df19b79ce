"""A static model in the format of `model2vec`, read from a folder and from nowhere else."""

from __future__ import annotations

import importlib
import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cleveragents.domain.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["SCALE", "StaticModel", "loaded"]

#: The length of a vector: its numbers are whole, so that products of vectors are exact.
SCALE: Final = 127
#: To be raised whenever the same model gives other vectors; it is part of the fingerprint.
_FORMAT: Final = b"1"
_FILES: Final = ("config.json", "model.safetensors", "tokenizer.json")
#: As `model2vec` and as `sentence-transformers` name it.
_TABLES: Final = ("embeddings", "embedding.weight")
_TOKENS_MAX: Final = 512
#: More tokens than are looked at, unless they are longer than words are.
_CHARS_MAX: Final = 8000


class StaticModel:
    """Gives texts of like meaning like vectors: the mean of the vectors of a text's tokens.

    It never changes, so any number of threads may share one.
    """

    def __init__(self, fingerprint: bytes, tokenizer: Any, tables: dict[str, Any]) -> None:
        #: The same fingerprint means the same vectors.
        self.fingerprint = fingerprint
        self._tokenizer = tokenizer
        self._vectors = next(tables[name] for name in _TABLES if name in tables)
        self._weights = tables.get("weights")
        self._places = tables.get("mapping")
        self.dimensions: int = self._vectors.shape[1]
        self._unknown = _unknown_token(tokenizer)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.int8]:
        """Return a row for each text; that of a text without a known token is zero."""
        rows = np.zeros((len(texts), self.dimensions), np.int8)
        cut = [text[:_CHARS_MAX] for text in texts]
        for row, found in zip(
            rows, self._tokenizer.encode_batch_fast(cut, add_special_tokens=False), strict=True
        ):
            tokens = [token for token in found.ids if token != self._unknown]
            if tokens:
                row[:] = _whole(self._mean(tokens))
        return rows

    def _mean(self, tokens: list[int]) -> NDArray[np.float32]:
        places = tokens if self._places is None else self._places[tokens]
        found = self._vectors[places].astype(np.float32)
        if self._weights is not None:
            found *= self._weights[tokens][:, None]
        mean: NDArray[np.float32] = found.mean(axis=0)
        return mean


def loaded(folder: Path) -> StaticModel:
    """Read a model; what is not in the folder is not looked for elsewhere."""
    try:
        tokenizers = importlib.import_module("tokenizers")
        tensors = importlib.import_module("safetensors.numpy")
    except ImportError as error:
        raise SetupError(
            f"`context_embeddings` needs a package that is not installed: {error}",
            hint="Run `pip install 'cleveragents[embeddings]'`, or set `context_embeddings` to off",
        ) from error
    try:
        config, table, words = ((folder / name).read_bytes() for name in _FILES)
        tokenizer = tokenizers.Tokenizer.from_str(words.decode())
        limit = json.loads(config).get("max_length") or _TOKENS_MAX
        tokenizer.no_padding()
        tokenizer.enable_truncation(min(int(limit), _TOKENS_MAX))
        model = StaticModel(_fingerprint(config, table, words), tokenizer, tensors.load(table))
        model.vectors(["a b"])
    except Exception as error:
        # Foreign bytes, and packages that raise errors of their own.
        raise SetupError(
            f"`context_embeddings` names no model: {type(error).__name__}: {error}",
            facts={"folder": folder},
            hint=f"Name a folder with {', '.join(_FILES)}, as `model2vec` saves them",
        ) from error
    return model


def _whole(vector: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return a vector of length `SCALE` in whole numbers."""
    length = float(np.sqrt(np.square(vector, dtype=np.float64).sum()))
    return np.rint(vector * (SCALE / length) if length else vector * 0).astype(np.int8)


def _fingerprint(*parts: bytes) -> bytes:
    whole = blake2b(_FORMAT, digest_size=16)
    for part in parts:
        whole.update(blake2b(part).digest())
    return whole.digest()


def _unknown_token(tokenizer: Any) -> int | None:
    model = json.loads(tokenizer.to_str())["model"]
    if model.get("unk_token") is not None:
        number: int | None = tokenizer.token_to_id(model["unk_token"])
        return number
    unknown: int | None = model.get("unk_id")
    return unknown
