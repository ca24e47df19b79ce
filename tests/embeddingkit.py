"""A real static model of a dozen words, saved as `model2vec` saves one."""

from __future__ import annotations

import pytest

#: Words of one direction mean the same.
MEANINGS = {
    "open": (1.0, 0.1, 0.0),
    "unlock": (0.9, 0.2, 0.0),
    "enter": (0.8, 0.3, 0.1),
    "close": (-0.7, 0.2, 0.3),
    "door": (0.5, 0.5, 0.0),
    "gate": (0.5, 0.6, 0.0),
    "banana": (0.0, 0.0, 1.0),
    "fruit": (0.0, 0.1, 0.9),
    "def": (0.1, 0.1, 0.1),
    "the": (0.0, 0.1, 0.0),
}


def save_model(folder, *, kind="plain", meanings=MEANINGS):
    """Save a model; return it as `model2vec` knows it."""
    np = pytest.importorskip("numpy")
    tokenizers = pytest.importorskip("tokenizers")
    static = pytest.importorskip("model2vec")
    words = ["[UNK]", *meanings]
    if kind == "unigram":
        model = tokenizers.models.Unigram([(word, -1.0) for word in words], unk_id=0)
    else:
        numbers = {word: number for number, word in enumerate(words)}
        model = tokenizers.models.WordLevel(numbers, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    # Parts of identifiers are words too.
    separators = tokenizers.Regex(r"[\W_]+")
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(separators, "removed")
    vectors = np.array([(0.3, 0.3, 0.3), *meanings.values()], np.float32)
    if kind == "half":
        vectors = vectors.astype(np.float16)
    options = {}
    if kind == "weighted":
        options["weights"] = np.linspace(0.5, 1.5, len(words), dtype=np.float32)
        options["token_mapping"] = np.arange(len(words))[::-1].copy()
    saved = static.StaticModel(vectors, tokenizer, **options)
    saved.save_pretrained(folder)
    return saved
