"""What is computed from one content, once: its card, and its terms chunk by chunk."""

from __future__ import annotations

import json
import re
import struct
from array import array
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import Final
from zlib import crc32

from cleveragents.application.code_index import FileCard, Symbol
from cleveragents.infrastructure.code_index.chunking import card_of, cut_of
from cleveragents.infrastructure.code_index.terms import terms_of_word

__all__ = ["FORMAT", "Features", "features_of", "key_of", "name_number", "numbered", "term_number"]

#: To be raised whenever chunks, terms or the encoding change; kept features of others are not read.
FORMAT: Final = 4
_KEY_BYTES: Final = 16
_COUNT_MAX: Final = 255
_WORD: Final = re.compile(r"\w+")
#: The same for ASCII: everything between words becomes a space, many times as fast.
_WORDS_ONLY: Final = bytes(
    code if chr(code).isascii() and _WORD.match(chr(code)) else ord(" ") for code in range(256)
)
_WORDS_KEPT: Final = 1 << 17
#: A card is unpacked anew when so many others were asked for in between.
_CARDS_KEPT: Final = 4096
_HEAD: Final = struct.Struct("<III")


@dataclass(frozen=True, slots=True)
class _Terms:
    """Which term stands how often in which part; three arrays of one length."""

    numbers: array[int]
    parts: array[int]
    counts: array[int]

    @classmethod
    def of(cls, parts: list[dict[int, int]]) -> _Terms:
        """Return the terms of parts, each given as counts by number."""
        # Lists first: they take whole dicts at once, arrays one value after the other.
        numbers: list[int] = []
        counts: list[int] = []
        for part in parts:
            numbers += part
            counts += part.values()
        if max(counts, default=0) > _COUNT_MAX:
            counts = [min(count, _COUNT_MAX) for count in counts]
        sizes = [len(part) for part in parts]
        places = b"".join(struct.pack("=H", place) * size for place, size in enumerate(sizes))
        return cls(array("I", numbers), array("H", places), array("B", counts))


@dataclass(frozen=True, slots=True)
class Features:
    """Everything that is known of a content; the same bytes and name give the same features."""

    card: FileCard
    #: The parts are chunks.
    terms: _Terms
    #: How many terms each chunk has.
    lengths: array[int]
    #: Of the names that the content defines; one part.
    names: _Terms

    def packed(self) -> tuple[bytes, bytes]:
        """Return the terms and the card as bytes, each with its checksum."""
        head = _HEAD.pack(len(self.lengths), len(self.terms.numbers), len(self.names.numbers))
        arrays = (
            self.lengths,
            array("I", [line for span in self.card.chunks for line in span]),
            self.terms.numbers,
            self.terms.parts,
            self.terms.counts,
            self.names.numbers,
            self.names.counts,
        )
        body = head + b"".join(one.tobytes() for one in arrays)
        return sealed(body), packed_card(self.card)


def key_of(path: str, content: bytes) -> bytes:
    """Return the name of a content: the same name means the same features."""
    person = cut_of(path).encode()[: blake2b.PERSON_SIZE]
    return blake2b(content, digest_size=_KEY_BYTES, person=person).digest()


def features_of(path: str, text: str) -> Features:
    """Compute what is known of a text."""
    card = card_of(path, text)
    lines = text.split("\n")
    parts = [numbered("\n".join(lines[start - 1 : end])) for start, end in card.chunks]
    lengths = array("I", [sum(part.values()) for part in parts])
    names = dict(numbered(" ".join(symbol.name for symbol in card.symbols)))
    names |= {name_number(symbol.name): 1 for symbol in card.symbols}
    return Features(card, _Terms.of(parts), lengths, _Terms.of([names]))


def term_number(term: str) -> int:
    """Return the number that stands for a term; two terms in millions share one."""
    return crc32(term.encode("utf-8", "surrogatepass"))


def name_number(name: str) -> int:
    """Return the number that stands for exactly this name of a definition."""
    return term_number(f"={name}")


def numbered(text: str) -> dict[int, int]:
    """Return the terms of a text, as numbers with their counts."""
    if text.isascii():
        words = text.encode().translate(_WORDS_ONLY).decode().split()
    else:
        words = _WORD.findall(text)
    return Counter(chain.from_iterable(map(_NUMBERS.__getitem__, words)))


class _Numbers(dict[str, tuple[int, ...]]):
    """The term numbers of words that were met, so that a text is counted without a loop of ours.

    Threads that meet a word at once compute the same.
    """

    def __missing__(self, word: str) -> tuple[int, ...]:
        numbers = tuple(map(term_number, terms_of_word(word)))
        if len(self) >= _WORDS_KEPT:
            self.clear()
        self[word] = numbers
        return numbers


_NUMBERS: Final = _Numbers()


# -- bytes that say whether they are whole -------------------------------------------------


def sealed(body: bytes) -> bytes:
    """Return a body with its checksum in front."""
    return crc32(body).to_bytes(4, "little") + body


def opened(kept: bytes) -> bytes | None:
    """Return the body of what was sealed; None if it is not whole."""
    body = kept[4:]
    return body if kept[:4] == crc32(body).to_bytes(4, "little") else None


def packed_card(card: FileCard) -> bytes:
    """Return a card as bytes."""
    symbols = [
        [one.name, one.kind, one.start_line, one.end_line, one.head, one.within]
        for one in card.symbols
    ]
    body = json.dumps([card.language, card.lines, symbols, card.chunks], ensure_ascii=False)
    return sealed(body.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=_CARDS_KEPT)
def unpacked_card(kept: bytes) -> FileCard | None:
    """Return the card, or None if the bytes are damaged."""
    body = opened(kept)
    if body is None:
        return None
    language, lines, symbols, chunks = json.loads(body.decode("utf-8", "surrogatepass"))
    return FileCard(
        language,
        lines,
        tuple(Symbol(*symbol) for symbol in symbols),
        tuple((start, end) for start, end in chunks),
    )
