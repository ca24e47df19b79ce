"""Planted secrets never survive; ordinary text does."""

from __future__ import annotations

import base64
import json
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain.redaction import REDACTED, SEARCHED_CHARS_MAX, redact, redact_to

pytestmark = pytest.mark.long

ALNUM = string.ascii_letters + string.digits


def blob(size_min: int, alphabet: str = ALNUM) -> st.SearchStrategy[str]:
    """A token that has a digit, as every real key of that length has."""
    return st.text(alphabet, min_size=size_min, max_size=size_min + 20).map(lambda t: t[:-1] + "7")


SHAPES = {
    "openai": blob(24).map("sk-{}".format),
    "openai-project": blob(40, ALNUM + "_-").map("sk-proj-{}".format),
    "anthropic": blob(40, ALNUM + "_-").map("sk-ant-api03-{}".format),
    "google": blob(33, ALNUM + "_-").map("AIza{}".format),
    "aws": blob(16, string.ascii_uppercase + string.digits).map("AKIA{}".format),
    "github": blob(36).map("ghp_{}".format),
    "github-fine": blob(40, ALNUM + "_").map("github_pat_{}".format),
    "slack": blob(24, ALNUM + "-").map("xoxb-{}".format),
    "groq": blob(40).map("gsk_{}".format),
    "hugging-face": blob(34).map("hf_{}".format),
    "jwt": st.tuples(blob(12), blob(20), blob(20)).map(lambda t: f"eyJ{t[0]}.eyJ{t[1]}.{t[2]}"),
}
NAMES = ("api_key", "apiKey", "api-key", "token", "access_token", "password", "client_secret")
PLACES = {
    "alone": "{}",
    "sentence": "Incorrect key provided: {}. Check it",
    "repr": "AuthenticationError('{}')",
    "json": '{{"error": {{"key": "{}"}}}}',
    "url": "GET https://example.com/v1?a=1&key={}&b=2 gave 401",
    "header": "headers: {{'Authorization': 'Bearer {}'}}",
    "lines": "first line\n{}\nlast line",
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_a_providers_key_never_survives(shape, place):
    @given(shape)
    def check(secret):
        clean = redact(place.format(secret))
        assert secret not in clean
        assert REDACTED in clean

    check()


@given(st.sampled_from(NAMES), blob(8), st.sampled_from(["{}={}", "{}='{}'", '{}="{}"', "{}: {}"]))
def test_a_named_value_never_survives_in_text(name, value, form):
    assert value not in redact("call failed with " + form.format(name, value) + " at line 3")


@given(st.sampled_from(NAMES), st.text(min_size=4, max_size=40).filter(lambda t: t.strip()))
def test_a_named_value_never_survives_in_json(name, value):
    value = "Z9" + value
    text = json.dumps({"config": {name: value, "model": "small"}})
    for nested in (text, json.dumps(text)):
        clean = redact(nested)
        assert json.dumps(value)[1:-1] not in clean
        assert "model" in clean


@given(blob(6), blob(6))
def test_credentials_in_a_url_never_survive(user, password):
    clean = redact(f"cannot clone https://{user}:{password}@git.example.com/team/repo.git")
    assert password not in clean
    assert "git.example.com/team/repo.git" in clean


@given(blob(8), blob(8))
def test_basic_credentials_never_survive(user, password):
    secret = base64.b64encode(f"{user}:{password}".encode()).decode()
    assert secret not in redact(f"sent Authorization: Basic {secret}")
    assert secret not in redact(f"Basic {secret}")


@pytest.mark.parametrize("end", ["-----END RSA PRIVATE KEY-----\nafter", ""], ids=["whole", "cut"])
def test_a_private_key_never_survives(end):
    clean = redact(f"bad key:\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n{end}")
    assert "MIIEow" not in clean
    assert "IBAAKC" not in clean
    assert clean.startswith("bad key:")
    assert clean.endswith("after") == bool(end)


@pytest.mark.parametrize(
    "text",
    [
        "Set-Cookie: session=abc; Path=/",
        "https://storage.example.com/f?X-Amz-Signature=abcdef&part=1",
        "https://ghs0123456789abcdef@example.com/x",
        'password = "correct horse battery staple"',
        '{\\"token\\": \\"abc def\\"}',
        "DATABASE_PASSWORD=hunter",
        "connect(host=db, password=(hunter,abc);horse)",
        "password: p@hunter!1abc",
        "password: correcthorsebattery",
        "Login failed (Passwd: hunterhunter)",
        "passphrase: ***horse***",
        "client secret: abcabcabc",
        "postgres://user:hun/ter@db.example.com/abs",
        "postgres://user:hun/t@er@db.example.com/abs",
        "postgres://user:hun@ter@db.example.com/abs",
        "'secret': b'abc123'",
        "password=rb'hunter'",
        "[('x-api-key', 'abcdef1234567890')]",
        "[(b'x-api-key', b'horse')]",
        '[["Authorization", "abc def"], ["Set-Cookie", "hunter=1; path=/"]]',
        "('proxy-authorization', 'Digest hunter')",
        "api key: 9f8e7d6c5b4a39281706abc",
        "Secret Key = abc",
    ],
)
def test_other_carriers_of_secrets_are_known(text):
    clean = redact(text)
    assert REDACTED in clean
    for secret in ("abc", "hun", "ter@", "horse", "1234567890", "281706", "ghs0123456789abcdef"):
        assert secret not in clean.replace("abc; Path", "")


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=4096 exceeds the limit, input_tokens=12, token_count: 99",
        "Unexpected token: identifier at line 3",
        "SyntaxError: unexpected token '<' in JSON at position 0",
        "The password must have 8 characters",
        "Basic authentication is required; Bearer tokens are refused",
        "token=None, password=null, secret=False",
        "clone git@example.com:team/repo.git or ssh://git@example.com/repo",
        "File '/srv/user/task-list/sk-learn/model.py', line 12, in fit",
        "PWD=/srv/app KEY=value monkey=banana keyword=if",
        "HTTP 429 from https://api.example.com/v1/chat?model=small at 12:30:01",
        "ghost eyJ basic xox sk- key= ://",
        "password: required. Password: incorrect, API key: missing; secret: not found",
        "password: must have 8 characters; api_key: Field required, pwd: /srv/app/folder",
        "def login(user: str, password: str, api_key: Optional[str], secret: SecretStr) -> None",
        "token: identifier, credentials: ApplicationDefault",
        "one of ['api_key', 'password', 'base_url'] is missing",
        "GET http://localhost:8080/users/me@example.com gave 404",
        "npm https://registry.example.com:443/@scope/pkg@1.2 and file://C:/Users/me@corp/x",
        "see https://example.com/a:b/c@d, mail me@example.com",
        "url='http://db:main/x',mail='me@example.com'",
    ],
)
def test_ordinary_text_is_unharmed(text):
    assert redact(text) == text


@given(st.text(alphabet=string.ascii_lowercase + " .,\n", max_size=300))
def test_plain_words_are_unharmed(text):
    assert redact(text) == text


@given(st.lists(st.one_of(*SHAPES.values(), st.text(max_size=30)), max_size=6).map(" ".join))
def test_redacting_twice_changes_nothing(text):
    assert redact(redact(text)) == redact(text)


def test_a_text_is_redacted_before_it_is_cut():
    secret = "sk-" + "a1" * 20
    assert redact_to("x" * 90 + " " + secret, 100) == "x" * 90 + " [redacte…"
    assert redact_to("short", 100) == "short"


def test_half_a_secret_at_the_search_limit_goes_too():
    text = "x " * (SEARCHED_CHARS_MAX // 2 - 3) + "sk-" + "a1" * 20
    assert "sk-" not in redact(text)
    assert redact("x" * (SEARCHED_CHARS_MAX + 1)) == REDACTED


@pytest.mark.parametrize(
    "piece",
    [
        *("sk-", "sk-a", "eyJ", "eyJ-", "token=", 'token "', "token=(", "bearer ", "://", "://a:"),
        *("a", "\\", "cookie:", "-----BEGIN PRIVATE KEY-----"),
        *(
            "://a:b/",
            "://a:b@",
            "@a",
            "://a:@",
            "password:",
            "password: a",
            "api key ",
            "secret:b'",
        ),
        *("('token','", "('token',\"", "('token', 'a", "['a-token', b\\'", "(((", "('", "-token-"),
        *("token" + "\\" * n + "'," for n in (0, 50)),
    ],
)
def test_a_hostile_text_is_searched_in_linear_time(piece):
    text = piece * (SEARCHED_CHARS_MAX // len(piece))
    started_s = time.thread_time()
    redact(text)
    assert time.thread_time() - started_s < 2.0


def test_quotes_that_never_close_are_searched_in_linear_time():
    text = "".join("('token'," + "\\" * count + "'" for count in range(350, 0, -1))
    started_s = time.thread_time()
    redact(text)
    assert time.thread_time() - started_s < 1.0
