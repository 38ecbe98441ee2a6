"""The parser of untrusted bytes: what it lets through is I-JSON, and whatever it refuses, it refuses by a code."""

import json
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentstead.network.wire import MAX_BYTES, Refused, parse

LARGEST = 2**53 - 1


def judged(raw: bytes) -> dict[str, Any] | Refused:
    try:
        return parse(raw)
    except Refused as refused:
        return refused


def refusal(raw: bytes) -> str | None:
    with pytest.raises(Refused) as caught:
        parse(raw)
    assert caught.value.reason == "malformed"
    return caught.value.local


@pytest.mark.parametrize(
    ("raw", "local"),
    [
        (b"", "not_json"),
        (b"{", "not_json"),
        (b'{"a":1}{', "not_json"),
        (b"{'a':1}", "not_json"),
        (b'{"a":01}', "not_json"),
        (b'{"a":+1}', "not_json"),
        (b'{"a":1.}', "not_json"),
        (b'{"a":"tab\there"}', "not_json"),
        (b'{"a":NaN}', "not_json"),
        (b'{"a":-Infinity}', "not_json"),
        (b'\xef\xbb\xbf{"a":1}', "not_json"),
        (b'{"a":"\xff"}', "not_json"),
        (b'{"a":"\xed\xa0\x80"}', "not_json"),
        (b'{"a":"\\ud800"}', "not_json"),
        (b'{"\\udc00":1}', "not_json"),
        (b'{"a":["\\ud83d \\ude00"]}', "not_json"),
        (b"[]", "not_object"),
        (b'"text"', "not_object"),
        (b"7", "not_object"),
        (b"null", "not_object"),
        (b"true", "not_object"),
        (b'{"a":1,"a":1}', "duplicate_key"),
        (b'{"a":{"b":1,"\\u0062":2}}', "duplicate_key"),
        (b'{"a":9007199254740992}', "integer_range"),
        (b'{"a":-9007199254740992}', "integer_range"),
        (b'{"a":1e400}', "integer_range"),
        (b'{"a":' + b"9" * 5000 + b"}", "integer_range"),
    ],
)
def test_what_is_no_strict_json_is_malformed_by_its_local_code(raw: bytes, local: str) -> None:
    assert refusal(raw) == local


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a":9007199254740991,"b":-9007199254740991}', {"a": LARGEST, "b": -LARGEST}),
        (b' {"a" : [1.5, 1e3, -0, null, true]}\n', {"a": [1.5, 1000.0, 0, None, True]}),
        (b'{"a":"\\ud83d\\ude00"}', {"a": "\U0001f600"}),
        (b'{"a":"\\u0000 \xf0\x9f\x98\x80"}', {"a": "\0 \U0001f600"}),
        (b'{"a":1e-400}', {"a": 0.0}),
    ],
)
def test_strict_json_is_read_as_it_stands(raw: bytes, value: object) -> None:
    assert parse(raw) == value


def test_nesting_is_allowed_to_64_levels_and_no_further() -> None:
    assert parse(b'{"a":' + b"[" * 63 + b"]" * 63 + b"}")
    assert refusal(b'{"a":' + b"[" * 64 + b"]" * 64 + b"}") == "too_deep"


def test_brackets_inside_of_strings_do_not_nest() -> None:
    text = "[" * 500 + '\\"{' * 500
    assert parse(json.dumps({"a": text, "b": [text]}).encode())["a"] == text


def test_the_limit_counts_raw_bytes() -> None:
    empty = len(b'{"a":""}')
    assert parse(b'{"a":"' + b"x" * (MAX_BYTES - empty) + b'"}')
    assert refusal(b'{"a":"' + b"x" * (MAX_BYTES - empty + 1) + b'"}') == "envelope_too_large"


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * MAX_BYTES,
        b'{"a":' * (MAX_BYTES // 5),
        b'{"' + b'\\"' * (MAX_BYTES // 2 - 10),
        b'{"a":[' + b"[],[" * (MAX_BYTES // 5),
        b'{"a":"' + b"\\ud800" * (MAX_BYTES // 7) + b'"}',
        b'{"a":' + b"9" * (MAX_BYTES - 10) + b"}",
    ],
    ids=["brackets", "objects", "quotes", "arrays", "surrogates", "digits"],
)
def test_one_hostile_megabyte_costs_no_more_than_a_moment(raw: bytes) -> None:
    started = time.perf_counter()
    with pytest.raises(Refused):
        parse(raw)
    assert time.perf_counter() - started < 5


@given(st.binary(max_size=400))
@example(b'{"a":{"b":[')
@settings(max_examples=300, deadline=None)
def test_any_bytes_give_an_object_or_a_refusal(raw: bytes) -> None:
    outcome = judged(raw)
    assert isinstance(outcome, dict) or outcome.reason == "malformed"


@given(st.text(alphabet='{}[]",:\\u0123456789eE+-. dabcfnulltrueNaI\ud800', max_size=60))
@settings(max_examples=500, deadline=None)
def test_text_that_looks_like_json_gives_an_object_or_a_refusal(text: str) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    outcome = judged(raw)
    assert isinstance(outcome, Refused) or outcome == json.loads(raw)
