"""Redaction: every form of a registered value, every known shape, and innocent text left alone."""

import base64
import json
import re
import statistics
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.policy.redact import Redactor
from agentstead.policy.redact.encodings import forms_of
from agentstead.policy.redact.needles import Needles
from agentstead.policy.redact.shapes import SHAPES

SECRET = 'p@ss/wörd "with" + odd\\bytes?'
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def redactor() -> Redactor:
    made = Redactor({})
    assert made.register("vault", SECRET)
    return made


ENCODINGS: dict[str, Callable[[str], str]] = {
    "raw": lambda text: text,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 after one byte": lambda text: base64.b64encode(b"x" + text.encode()).decode(),
    "base64 after two bytes": lambda text: base64.b64encode(b"xy" + text.encode() + b"z").decode(),
    "url-safe base64": lambda text: base64.urlsafe_b64encode(b"?>" + text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "upper hex": lambda text: text.encode().hex().upper(),
    "URL": lambda text: quote(text, safe=""),
    "URL with slashes": quote,
    "form": quote_plus,
    "lower URL": lambda text: re.sub("%..", lambda escape: escape[0].lower(), quote(text, safe="")),
    "JSON": json.dumps,
    "JSON with letters": lambda text: json.dumps(text, ensure_ascii=False),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("offset", range(9))
def test_every_encoding_is_found_at_every_place(redactor: Redactor, encoding: str, offset: int) -> None:
    encoded = ENCODINGS[encoding](SECRET)
    out = redactor.text("." * offset + f" a {encoded} z " + "." * offset)
    assert "[redacted:vault]" in out
    for length in range(12, len(SECRET)):
        assert SECRET[:length] not in out
    core = encoded.strip('"')[4:-6]
    assert core not in out


@given(st.text(st.characters(codec="utf-8"), min_size=8, max_size=60), st.text(max_size=30), st.text(max_size=30))
def test_a_registered_value_never_survives_in_any_text(value: str, before: str, after: str) -> None:
    redactor = Redactor({})
    redactor.register("x", value)
    if value in "[redacted:x]" or "[redacted:x]" in value:
        return
    out = redactor.text(f"{before}{value}{after}")
    assert value not in out.replace("[redacted:x]", "")
    assert redactor.text(f"{before}{value.encode().hex()}{after}").count(value.encode().hex()) == 0


@given(st.lists(st.text(min_size=8, max_size=30), min_size=1, max_size=8), st.text(max_size=200), st.integers(0, 7))
def test_the_pieces_find_what_a_plain_search_finds(needles: list[str], text: str, pick: int) -> None:
    planted = text[:50] + needles[pick % len(needles)] + text[50:]
    marks = {needle: f"<{n}>" for n, needle in enumerate(needles)}
    expected = planted
    for needle in sorted(marks, key=lambda each: (-len(each), each)):
        expected = expected.replace(needle, marks[needle])
    assert Needles(marks).replace(planted) == expected


def test_the_longest_of_overlapping_values_is_named() -> None:
    redactor = Redactor({})
    redactor.register("short", "abcdefghij")
    redactor.register("long", "abcdefghijklmnop")
    assert redactor.text("x abcdefghijklmnop y abcdefghij") == "x [redacted:long] y [redacted:short]"


def test_a_value_under_eight_characters_is_refused_and_words_stay() -> None:
    redactor = Redactor({})
    assert not redactor.register("pin", "secret1")
    assert redactor.text("my secret1 stays") == "my secret1 stays"


def test_the_lines_of_a_value_of_many_lines_are_found_alone() -> None:
    redactor = Redactor({})
    redactor.register("cert", "first line of it all\nsecond line of it all\n")
    assert redactor.text("  second line of it all") == "  [redacted:cert]"


def test_values_come_from_the_environment_and_from_files_that_it_names(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from-a-file-123\n")
    environ = {
        "AGENTSTEAD_SECRET_DEPLOY_KEY": "from-a-variable-456",
        "AGENTSTEAD_SECRET_CERT_FILE": str(file),
        "AGENTSTEAD_SECRET_GONE_FILE": str(tmp_path / "missing"),
        "AGENTSTEAD_SECRET_SHORT": "1234567",
        "OTHER_SECRET": "not-ours-at-all-789",
    }
    redactor = Redactor(environ)
    text = "from-a-variable-456 from-a-file-123 not-ours-at-all-789 1234567"
    assert redactor.text(text) == "[redacted:deploy-key] [redacted:cert] not-ours-at-all-789 1234567"


def test_values_may_be_registered_from_many_threads_while_text_is_read() -> None:
    redactor = Redactor({})
    values = [f"value-number-{n:04}" for n in range(40)]
    threads = [threading.Thread(target=redactor.register, args=(value, value)) for value in values]
    for thread in threads:
        thread.start()
        redactor.text("some text")
    for thread in threads:
        thread.join()
    assert all(redactor.text(value) == f"[redacted:{value}]" for value in values)


LETTERS = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA"
SAMPLES = {
    "agentstead-token": "agst_home_" + LETTERS + LETTERS[:11],
    "github-token": "ghp_" + LETTERS + "aB3d",
    "gitlab-token": "glpat-" + LETTERS[:20],
    "aws-key-id": "AKIAABCDEFGHIJ234567",
    "google-key": "AIza" + LETTERS + "abc",
    "google-token": "ya29." + LETTERS,
    "google-secret": "GOCSPX-" + LETTERS[:28],
    "slack-token": "xoxb-123456789012-" + LETTERS[:24],
    "anthropic-key": "sk-ant-api03-" + LETTERS,
    "openai-key": "sk-proj-" + LETTERS,
    "api-key": "sk-" + LETTERS + LETTERS[:16],
    "stripe-key": "sk_live_" + LETTERS[:24],
    "webhook-secret": "whsec_" + LETTERS,
    "npm-token": "npm_" + LETTERS + "aB3d",
    "pypi-token": "pypi-AgEIcHlwaS5vcmc" + LETTERS + LETTERS,
    "huggingface-token": "hf_" + LETTERS,
    "digitalocean-token": "dop_v1_" + "0123456789abcdef" * 4,
    "shopify-token": "shpat_" + "0123456789abcdef" * 2,
    "sendgrid-key": "SG." + LETTERS[:22] + "." + LETTERS + LETTERS[:11],
    "docker-token": "dckr_pat_" + LETTERS[:27],
    "vault-token": "hvs." + LETTERS,
    "linear-key": "lin_api_" + LETTERS + "aB3d5678",
    "sentry-token": "sntrys_" + LETTERS + LETTERS,
    "atlassian-token": "ATATT3x" + LETTERS + LETTERS,
    "age-key": "AGE-SECRET-KEY-1" + "QWERTYUIOP" * 6,
    "web-token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27uhbUJU1p1r",
}


def test_there_is_a_sample_of_every_kind_of_token() -> None:
    assert {shape.kind for shape in SHAPES} - {"private-key", "url-password"} == set(SAMPLES)


@pytest.mark.parametrize("kind", SAMPLES)
def test_each_token_format_is_found_in_running_text(kind: str) -> None:
    out = Redactor({}).text(f'use {SAMPLES[kind]}, or "{SAMPLES[kind]}"')
    assert out == f'use [redacted:{kind}], or "[redacted:{kind}]"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer [redacted:authorization]"),
        ("-H 'authorization: token 0123456789abcdef'", "-H 'authorization: token [redacted:authorization]'"),
        ('{"Authorization": "Basic dXNlcjpwYXNz"}', '{"Authorization": "Basic [redacted:authorization]"}'),
        ("sent bearer 0123456789abcdef0123", "sent bearer [redacted:bearer]"),
        ("postgres://app:s3cr3t!@db:5432/x", "postgres://app:[redacted:url-password]@db:5432/x"),
        ("https://:tok3n@host/x", "https://:[redacted:url-password]@host/x"),
        ("password=hunter2!", "password=[redacted:password]"),
        ("DB_PASSWORD=correcthorse", "DB_PASSWORD=[redacted:password]"),
        ("export API_KEY=abcdefgh12", "export API_KEY=[redacted:api_key]"),
        ('"client_secret": "Zm9vYmFy"', '"client_secret": "[redacted:secret]"'),
        ("api-key: 'abc123def456'", "api-key: '[redacted:api-key]'"),
        ("{'accessKey': 'abc123def456'}", "{'accessKey': '[redacted:accesskey]'}"),
        ('refresh_token = "0123456789abcdef01"', 'refresh_token = "[redacted:token]"'),
        ("passwd := 'tops3cret'", "passwd := '[redacted:passwd]'"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nrest",
            "[redacted:private-key]\nrest",
        ),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz", "[redacted:private-key]"),
    ],
)
def test_headers_addresses_members_and_keys_are_found(text: str, expected: str) -> None:
    assert Redactor({}).text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "password = get_password(user)",
        "password: str",
        "token: str | None = None",
        'token="secret://GITHUB"',
        "secret = os.environ['X']",
        "API_KEY=$API_KEY",
        "password=${DB_PASSWORD}",
        '"password": "{{ vault.password }}"',
        "token_hash=0123456789abcdef0123456789",
        "token_count = 123456789012345678",
        "secret_name = 'deploy1234567890'",
        "max_tokens=4096",
        "the secret of good tea: patience",
        '"token": "a word or two"',
        "password: <your password>",
        "-----BEGIN PUBLIC KEY-----",
        "https://example.com:8080/path@2x.png",
        "https://{user}:{password}@host",
        "see task-123 and sk-learn and hf_x",
        "0123456789abcdef0123456789abcdef01234567",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "bearer of bad news everywhere",
        "Authorization is checked first",
        "[redacted:token] and password=[redacted:password]",
    ],
)
def test_innocent_text_stays_as_it_is(text: str) -> None:
    assert Redactor({}).text(text) == text


@given(st.text(max_size=300))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    redactor = Redactor({})
    redactor.register("vault", SECRET)
    once = redactor.text(text)
    assert redactor.text(once) == once


def test_every_found_text_is_stable_when_redacted_again(redactor: Redactor) -> None:
    for sample in (*SAMPLES.values(), SECRET, "DB_PASSWORD=correcthorse", "Authorization: Bearer abcdef123456"):
        once = redactor.text(f"x {sample} y")
        assert redactor.text(once) == once


def test_the_repositorys_own_sources_stay_within_the_budget_of_false_marks() -> None:
    redactor = Redactor({})
    marks = size = 0
    for path in sorted(REPOSITORY.glob("s*/agentstead/**/*.py")):
        text = path.read_text()
        size += len(text)
        marks += redactor.text(text).count("[redacted:") - text.count("[redacted:")
    print(f"{marks} marks in {size:,} characters of our own sources")
    assert size > 100_000
    assert marks <= size / 100_000


def test_clean_text_costs_at_most_three_times_its_compression() -> None:
    redactor = Redactor({})
    for n in range(50):
        redactor.register(f"s{n}", base64.b64encode(f"secret value number {n:08}".encode()).decode())
    sources = "".join(path.read_text() for path in sorted((REPOSITORY / "shared").rglob("*.py")))
    text = (sources * 2)[:100_000]
    data = text.encode()
    ratios = [_seconds(lambda: redactor.text(text)) / _seconds(lambda: zlib.compress(data, 6)) for _ in range(15)]
    print(f"redaction of 100 KB against zlib level 6: {statistics.median(ratios):.2f} x, best {min(ratios):.2f} x")
    assert min(ratios) <= 3


@pytest.mark.parametrize(
    "unit", ["password=", "secret" * 3, "://a:", "eyJ", "authorization: ", "-----BEGIN ", "token token=", "sk-" * 4]
)
def test_hostile_text_takes_no_more_than_linear_time(unit: str) -> None:
    redactor = Redactor({})
    small, large = unit * (20_000 // len(unit)), unit * (200_000 // len(unit))
    floor_s = max(_seconds(lambda: redactor.text(small)), 0.002)
    assert _seconds(lambda: redactor.text(large)) < 40 * floor_s


def test_no_form_is_short_enough_to_hit_words() -> None:
    assert all(len(form) >= 8 for form in forms_of("12345678"))


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
