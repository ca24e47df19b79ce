"""Secrets leave a text before anything keeps it.

Recognised are shapes, never meanings: the key formats of providers, credentials in headers and
URLs, private keys, and values that stand behind a name such as `api_key=` or `"password":`.
In prose a plain word behind `token:` is left alone (`Unexpected token: identifier`), and behind
`password:` a short word or one that such messages are made of (`password: required`).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

REDACTED: Final = "[redacted]"
#: Longer texts are cut before they are searched, so that a huge message cannot stall the caller.
SEARCHED_CHARS_MAX: Final = 65_536

# What a token looks like behind its prefix: a digit soon, or letters that no word would have.
_BLOB: Final = r"(?:(?=[\w.~+/-]{0,64}\d)[\w.~+/-]{8,}|[\w.~+/-]{24,})=*"
# Names whose value is a secret; `max_tokens` and `token_count` are not among them.
_PLAIN_NAME: Final = (
    r"(?:(?:api|account|private|auth)[ _-]?key|access[ _-]?key(?:[ _-]?id)?"
    r"|secret(?:[ _-]?key)?|passw(?:or)?d|pwd|passphrase)"
)
_NAME: Final = rf"(?:{_PLAIN_NAME}|token|credentials?)"
_EMPTY: Final = r"(?!(?:none|null|true|false|undefined)\b)"
# What messages and type hints say behind a name, and a placeholder, a folder.
_NO_VALUE: Final = (
    r"(?!(?:required|incorrect|expected|mismatch(?:ed)?|forbidden|rejected|unexpected|unsupported"
    r"|provided|optional|secretstr|undefined)(?![\w-])|/|\$?\{)"
)
# A quote that opens a text of JSON or Python, escaped up to four times over.
_OPEN: Final = r"[bru]{0,2}(?P<open>\\{0,15}[\"'])"


class _Shape(NamedTuple):
    """One kind of secret: the lower-case marks a text must hold before the pattern is tried."""

    marks: tuple[str, ...]
    pattern: re.Pattern[str]
    replacement: str = REDACTED


def _shape(*marks: str, pattern: str, replacement: str = REDACTED) -> _Shape:
    return _Shape(marks, re.compile(pattern, re.IGNORECASE | re.DOTALL), replacement)


_PREFIXED: Final = (
    ("sk-", "sk_", r"\bsk[-_](?:(?=[\w-]{0,64}\d)[\w-]{16,}|[a-z]{20,})"),
    ("aiza", "ya29.", r"\b(?:aiza[\w-]{20,}|ya29\.[\w-]{16,})"),
    ("akia", "asia", r"\ba(?:kia|sia)[a-z0-9]{12,}"),
    ("gh", "github_pat_", r"\b(?:gh[pousr]_[a-z0-9]{16,}|github_pat_\w{16,})"),
    ("xox", "xapp-", r"\b(?:xox[a-z]|xapp)-[\w-]{8,}"),
    ("gsk_", "hf_", r"\b(?:gsk|hf)_[a-z0-9]{16,}"),
    ("glpat-", "npm_", r"\b(?:glpat-|npm_)[\w-]{16,}"),
    ("xai-", "pplx-", r"\b(?:xai|pplx)-[a-z0-9]{16,}"),
    ("eyj", r"\beyj[\w-]{8,1024}\.[\w-]{4,}(?:\.[\w-]*)?"),
)

_SHAPES: Final = (
    _shape(
        "private key",
        pattern=r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)",
    ),
    _shape("cookie", pattern=r"(\bcookie\\*[\"']?\s*:\s*)[^\r\n]+", replacement=rf"\1{REDACTED}"),
    _shape(
        "authorization",
        pattern=r"(authorization\\*[\"']?\s*[:=]\s*\\*[\"']?(?:(?:bearer|basic|token|digest)\s+)?)"
        r"[^\s\"',;\[\]]+",
        replacement=rf"\1{REDACTED}",
    ),
    _shape(
        "bearer", "basic", pattern=rf"\b(bearer|basic)\s+{_BLOB}", replacement=rf"\1 {REDACTED}"
    ),
    # user:password@ keeps neither; a name alone (git@) is no secret unless it is long.
    # A password with a slash is one only if it cannot be a port and a path; it is bounded, because
    # unlike the others it may run over the next `://`.
    _shape(
        "://",
        pattern=r"(://)(?:[^/\s:@\[\]]*:"
        r"(?:[^/\s@\[\]]+|(?!/|\d{1,5}[/?#])[^\s@\[\]\"'<>]{1,256})(?:@[^/\s@\[\]]+)*"
        r"|[^/\s:@\[\]]{16,})(?=@)",
        replacement=rf"\1{REDACTED}",
    ),
    _shape(
        "key=",
        "sig=",
        "signature=",
        pattern=r"([?&;](?:x-goog-|x-amz-)?(?:key|sig|signature)=)[^&\s\"'\[\]]+",
        replacement=rf"\1{REDACTED}",
    ),
    *(_shape(*marks, pattern=pattern) for *marks, pattern in _PREFIXED),
)

_NAMED_MARKS: Final = (
    *("key", "secret", "token", "passw", "pwd", "passphrase", "credential"),
    *("authorization", "cookie"),
)
_NAMED: Final = (
    # name="value", "name": "value", \"name\": \"value\", name='value', 'name': b'value'
    re.compile(
        rf"({_NAME}\\*[\"']?\s*[:=]\s*{_OPEN}){_EMPTY}(?!\[redacted\])(?:(?!(?P=open)).)+",
        re.IGNORECASE | re.DOTALL,
    ),
    # ('name', 'value') and ["name", "value"], as headers are shown; bounded, because it must close
    re.compile(
        rf"([(\[]\s*[bru]{{0,2}}\\*[\"'][\w.-]{{0,64}}(?:{_NAME}|authorization|cookie)\\*[\"']\s*,\s*"
        rf"{_OPEN}){_EMPTY}(?!\[redacted\])(?:(?!(?P=open)).){{1,4096}}(?=(?P=open)\s*[)\]])",
        re.IGNORECASE | re.DOTALL,
    ),
    # name=value, in text and in a URL, up to what closes the sentence; `PWD=/srv` is a folder
    re.compile(
        rf"({_NAME}\s*=\s*){_EMPTY}(?!/|\[redacted\])[^\s\"'`&]*[^\s\"'`&,;<>(){{}}\[\]]",
        re.IGNORECASE,
    ),
    # "name": value and name: value, where the value looks like a token
    re.compile(
        rf"({_NAME}\\*[\"']?\s*:\s*){_EMPTY}(?:(?=\S{{0,64}}\d)[^\s\"'`,;<>\[\]]{{6,}}|{_BLOB})",
        re.IGNORECASE,
    ),
    # password: value, where a long word is enough
    re.compile(
        rf"({_PLAIN_NAME}\\*[\"']?\s*:\s*){_EMPTY}{_NO_VALUE}[^\s\"'`,;<>\[\]]{{8,}}",
        re.IGNORECASE,
    ),
)

# Most texts hold no mark at all: one search tells.
_ANY_MARK: Final = re.compile(
    "|".join(map(re.escape, {*_NAMED_MARKS, *(mark for shape in _SHAPES for mark in shape.marks)}))
)


def redact(text: str) -> str:
    """Return the text with every recognised secret replaced; redacting twice changes nothing."""
    if len(text) > SEARCHED_CHARS_MAX:
        # The last word may be half a secret, too short to be recognised: it goes too.
        head_and_last = text[:SEARCHED_CHARS_MAX].rsplit(maxsplit=1)
        text = head_and_last[0] if len(head_and_last) == 2 else REDACTED
    marks = text.lower()
    if _ANY_MARK.search(marks) is None:
        return text
    for shape in _SHAPES:
        if any(mark in marks for mark in shape.marks):
            text = shape.pattern.sub(shape.replacement, text)
    if any(mark in marks for mark in _NAMED_MARKS):
        for pattern in _NAMED:
            text = pattern.sub(rf"\1{REDACTED}", text)
    return text


def redact_to(text: str, chars_max: int) -> str:
    """Redact first, then cut: half a secret would not be recognised."""
    clean = redact(text)
    return clean if len(clean) <= chars_max else clean[: chars_max - 1] + "…"
