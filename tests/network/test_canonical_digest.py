"""The canonical digest of messages, and the names and digests that every implementation derives alike."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.network.wire import (
    canonical_bytes,
    canonical_sha256,
    capability_digest,
    derive_channel,
    direct_id,
    parse,
    whois_response_id,
)
from agentstead.network.wire.grammar import CHANNEL, DIGEST, DIRECT_ID, WHITE_SPACE, trim

VECTORS = Path(__file__).parent / "vectors"
FUNCTIONS: dict[str, Callable[..., str]] = {
    "direct_id": direct_id,
    "derive_channel": derive_channel,
    "whois_response_id": whois_response_id,
    "capability_digest": capability_digest,
}


def vectors(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (VECTORS / name).read_text("utf-8").splitlines()]


@pytest.mark.parametrize("vector", vectors("functions.jsonl"), ids=lambda vector: vector["id"])
def test_golden_function_vectors_hold(vector: dict[str, Any]) -> None:
    assert FUNCTIONS[vector["function"]](**vector["args"]) == vector["expect"]


@pytest.mark.parametrize("vector", vectors("canonical.jsonl"), ids=lambda vector: vector["id"])
def test_golden_canonical_vectors_hold(vector: dict[str, Any]) -> None:
    canonical = canonical_bytes(vector["envelope"])
    assert len(canonical) == vector["bytes"]
    assert canonical_sha256(vector["envelope"]) == vector["expect"]["canonical_sha256"]
    assert hashlib.sha256(canonical).hexdigest() == vector["expect"]["canonical_sha256"]


# Appendix samples of RFC 8785: IEEE 754 bit patterns and their one text.
@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (-5e-324, "-5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (-1.7976931348623157e308, "-1.7976931348623157e+308"),
        (9007199254740991, "9007199254740991"),
        (295147905179352830000.0, "295147905179352830000"),
        (9.999999999999997e22, "9.999999999999997e+22"),
        (1e23, "1e+23"),
        (1.0000000000000001e23, "1.0000000000000001e+23"),
        (999999999999999700000.0, "999999999999999700000"),
        (999999999999999900000.0, "999999999999999900000"),
        (1e21, "1e+21"),
        (9.999999999999997e-7, "9.999999999999997e-7"),
        (0.000001, "0.000001"),
        (333333333.3333332, "333333333.3333332"),
        (333333333.33333325, "333333333.33333325"),
        (333333333.3333333, "333333333.3333333"),
        (333333333.3333334, "333333333.3333334"),
        (333333333.33333343, "333333333.33333343"),
        (-0.0000033333333333333333, "-0.0000033333333333333333"),
        (1424953923781206.2, "1424953923781206.2"),
    ],
)
def test_numbers_have_the_text_that_rfc_8785_lists(number: float, text: str) -> None:
    assert canonical_bytes(number) == text.encode()


def test_members_are_sorted_by_utf_16_as_rfc_8785_shows() -> None:
    raw = (
        '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",'
        '"\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control","\\u00f6":"Latin Small Letter O With Diaeresis"}'
    )
    names = [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ]
    assert list(json.loads(canonical_bytes(parse(raw.encode()))).values()) == names


def test_the_digest_tells_null_from_absent_and_spacing_from_nothing() -> None:
    assert canonical_sha256(parse(b'{"a":1,"to":null}')) != canonical_sha256(parse(b'{"a":1}'))
    assert canonical_sha256(parse(b'{ "b":2, "a":1.0 }')) == canonical_sha256(parse(b'{"a":1,"b":2}'))


NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(
    allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_encoding_and_parsing_never_move_the_digest(value: dict[str, Any]) -> None:
    spread = json.dumps(value, indent=1).encode()
    digest = canonical_sha256(value)
    assert canonical_sha256(parse(spread)) == digest
    assert canonical_sha256(parse(canonical_bytes(value))) == digest


def test_one_pair_has_one_room_in_a_channel_and_another_elsewhere() -> None:
    here = direct_id("ws", "pruning", "a", "b")
    assert DIRECT_ID.fullmatch(here)
    assert here == direct_id("ws", "pruning", " b ", "a")
    assert here != direct_id("ws", "grafting", "a", "b")
    assert here != direct_id("ws2", "pruning", "a", "b")


def test_nobody_has_a_room_with_itself() -> None:
    with pytest.raises(ValueError, match="two different peers"):
        direct_id("ws", "pruning", "a", " a ")


@given(st.sampled_from(["coord", "loop"]), st.text(max_size=100))
def test_a_derived_channel_is_always_a_channel(prefix: Any, raw_id: str) -> None:
    assert CHANNEL.fullmatch(derive_channel(prefix, raw_id))


def test_a_derived_channel_falls_back_to_a_stem() -> None:
    assert derive_channel("loop", "---").startswith("loop-id-")


def test_capability_strings_are_trimmed_and_only_requirements_sorted() -> None:
    plain = {"id": "a", "summary": "s", "outcome": "o", "requirements": ["x", "y"], "examples": ["2", "1"]}
    padded = {
        "id": " a\u00a0",
        "summary": "s\u2028",
        "outcome": "\to",
        "version": " ",
        "constraints": [],
        "digest": "?",
    }
    same = plain | padded | {"requirements": ["y ", "x"], "examples": ["2", " ", "1"]}
    assert capability_digest(same) == capability_digest(plain)
    assert capability_digest(plain | {"examples": ["1", "2"]}) != capability_digest(plain)


def test_the_capability_digest_is_not_canonical_json() -> None:
    document = {"id": "a", "summary": "<&>\u2028\u2029", "outcome": "\b\f\x01é"}
    text = '{"id":"a","summary":"\\u003c\\u0026\\u003e\\u2028\\u2029","outcome":"\\b\\f\\u0001é"}'
    # The separators are trimmed away at the ends, so they stand inside here.
    document["summary"] += "."
    text = text.replace('\\u2029"', '\\u2029."')
    assert capability_digest(document) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@given(st.text(), st.lists(st.text(), max_size=3))
def test_any_capability_text_has_a_digest(text: str, items: list[str]) -> None:
    assert DIGEST.fullmatch(capability_digest({"id": text, "summary": text, "outcome": text, "examples": items}))


def test_information_separators_are_no_white_space_on_the_wire() -> None:
    assert trim("\x1ca\x1f") == "\x1ca\x1f"
    assert trim(f"{WHITE_SPACE}a{WHITE_SPACE}") == "a"
