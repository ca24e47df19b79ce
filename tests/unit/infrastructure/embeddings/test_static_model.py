from __future__ import annotations

import socket
import sys

import numpy as np
import pytest

from cleveragents.domain.errors import SetupError
from cleveragents.infrastructure.embeddings.static_model import SCALE, loaded
from embeddingkit import MEANINGS, save_model

TEXTS = ["open the door", "close", "banana banana open", "nothing known", "", "Open-the_door!"]


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refused(*_):
        raise AssertionError("a model comes from its folder alone")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)


@pytest.mark.parametrize("kind", ["plain", "weighted", "half"])
def test_vectors_are_those_of_model2vec(tmp_path, kind):
    peer = save_model(tmp_path, kind=kind)

    ours = loaded(tmp_path).vectors(TEXTS).astype(float)

    theirs = np.asarray(peer.encode(TEXTS), dtype=float)
    lengths = np.linalg.norm(theirs, axis=1, keepdims=True)
    np.testing.assert_allclose(ours, SCALE * theirs / np.maximum(lengths, 1e-9), atol=0.6)


def test_text_without_a_known_token_has_no_direction(tmp_path):
    save_model(tmp_path)
    assert not loaded(tmp_path).vectors(["unheard of", ""]).any()


def test_a_text_has_the_same_vector_whatever_is_beside_it(tmp_path):
    save_model(tmp_path)
    model = loaded(tmp_path)
    together = model.vectors(TEXTS)
    alone = [model.vectors([text])[0] for text in TEXTS]
    assert (np.array(alone) == together).all()


def test_a_long_text_is_judged_by_its_beginning(tmp_path):
    save_model(tmp_path)
    first, whole = loaded(tmp_path).vectors(["open " * 512, "open " * 512 + "banana " * 10**5])
    assert (first == whole).all()


def test_fingerprint_is_that_of_the_files(tmp_path):
    save_model(tmp_path / "a")
    save_model(tmp_path / "b")
    save_model(tmp_path / "c", meanings={**MEANINGS, "open": (0.0, 1.0, 0.0)})
    a, b, c = (loaded(tmp_path / name).fingerprint for name in "abc")
    assert a == b != c


def test_a_folder_that_is_not_there_is_not_looked_for_elsewhere(tmp_path, monkeypatch):
    """`model2vec` would take such a name for one of a public model, and fetch that."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SetupError, match="`context_embeddings` names no model") as raised:
        loaded(tmp_path / "minishlab" / "potion-base-8M")
    assert "model.safetensors" in raised.value.hint


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("content", [None, b"", b"[1", b"{}", b"\xff\xfe" * 50], ids=repr)
def test_damaged_models_are_refused(tmp_path, name, content):
    save_model(tmp_path)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    if (name, content) == ("config.json", b"{}"):
        assert loaded(tmp_path).vectors(["open"]).any()
    else:
        with pytest.raises(SetupError, match="`context_embeddings` names no model"):
            loaded(tmp_path)


@pytest.mark.parametrize("package", ["tokenizers", "safetensors.numpy"])
def test_without_its_packages_it_says_how_to_get_them(tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SetupError, match="is not installed") as raised:
        loaded(tmp_path)
    assert "cleveragents[embeddings]" in raised.value.hint


def test_unigram_models_name_their_unknown_token_by_number(tmp_path):
    save_model(tmp_path, kind="unigram")
    model = loaded(tmp_path)
    assert model.vectors(["open"]).any()
    assert not model.vectors(["???"]).any()
