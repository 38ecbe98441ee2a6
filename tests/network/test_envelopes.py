"""Examining an envelope: every clause of the protocol's form has a vector, and the first broken rule gives the code."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agentstead.network.wire import LOCAL_CODES, PROTOCOL, REASONS, Envelope, Refused, compose, examine, parse
from agentstead.network.wire.schema import check, is_valid, load_schema

VECTORS = Path(__file__).parent / "vectors"
CANARY = "CANARY-0123"


def lines(name: str) -> list[Any]:
    return [json.loads(line) for line in (VECTORS / name).read_text("utf-8").splitlines()]


EXAMPLES: dict[str, dict[str, Any]] = {each["id"]: each for each in lines("examples.jsonl")}
PUBLISHED = json.loads((VECTORS / "published_schema.json").read_text("utf-8"))


def is_secret(text: str) -> bool:
    return CANARY in text


def look(raw: bytes, *, now: int) -> Envelope:
    return examine(raw, now=now, is_secret=is_secret)


def judged(raw: bytes, *, now: int) -> Envelope | Refused:
    try:
        return look(raw, now=now)
    except Refused as refused:
        return refused


def written(vector: dict[str, Any]) -> tuple[bytes, int]:
    """Return the bytes that a vector describes, and its clock."""
    base = EXAMPLES[vector["base"]]
    fields = {key: value for key, value in base.items() if key not in vector.get("drop", ())} | vector.get("set", {})
    if "body" in vector:
        fields["body"] = fields["body"] | vector["body"]
    if "capability" in vector:
        fields["body"] = {"capability": fields["body"]["capability"] | vector["capability"]}
    text = json.dumps(fields, ensure_ascii=False)
    for name, token in vector.get("text", {}).items():
        text = text.replace(f'"{name}": {base[name]}', f'"{name}": {token}')
    return text.encode(), vector.get("clock", base["ts"])


def named(vector: dict[str, Any]) -> str:
    return f"{vector['clause']} {vector['why']}"


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_every_example_of_the_protocol_is_a_valid_envelope(example: dict[str, Any]) -> None:
    raw = json.dumps(example).encode()
    envelope = look(raw, now=example["ts"])
    assert envelope.raw == raw
    assert (envelope.id, envelope.kind, envelope.sender) == (example["id"], example["kind"], example["from"])
    assert envelope.trust == "unverified"
    assert envelope.container_id == example.get("thread_id", example.get("direct_id"))
    assert envelope.in_container == (example["kind"] not in ("greet", "whois"))


@pytest.mark.parametrize("vector", lines("refusals.jsonl"), ids=named)
def test_a_broken_envelope_is_refused_with_the_code_of_its_first_fault(vector: dict[str, Any]) -> None:
    raw, now = written(vector)
    with pytest.raises(Refused) as caught:
        look(raw, now=now)
    assert [caught.value.reason, caught.value.local] == vector["expect"]
    if "pointer" in vector:
        assert caught.value.pointer == vector["pointer"]


@pytest.mark.parametrize("vector", lines("accepted.jsonl"), ids=named)
def test_what_the_protocol_allows_is_not_refused(vector: dict[str, Any]) -> None:
    raw, now = written(vector)
    assert look(raw, now=now).raw == raw


def test_refusals_speak_only_codes_of_the_closed_sets() -> None:
    for vector in lines("refusals.jsonl"):
        reason, local = vector["expect"]
        assert reason in REASONS
        assert local is None or local in LOCAL_CODES
    assert len(REASONS) == 15


def test_size_comes_before_anything_else() -> None:
    with pytest.raises(Refused) as caught:
        examine(b"\xff" * 101, now=1, is_secret=is_secret, max_bytes=100)
    assert caught.value.local == "envelope_too_large"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"protocol": "x", "channel": "-"}, "unsupported_profile"),
        ({"channel": "-", "kind": "shout"}, "malformed"),
        ({"kind": "shout", "ts": "soon"}, "unsupported_kind"),
        ({"expires_at": 1, "surface": "wall"}, "expired"),
        ({"surface": "wall", "body": {}}, "invalid_surface"),
        ({"to": None, "body": {}}, "malformed"),
        ({"body": {"text": CANARY, "intent": 1}, "from": "mine.runtime"}, "malformed"),
        ({"from": "mine.runtime", "body": {"text": "x"}}, "verification_failed"),
    ],
)
def test_the_order_of_receipt_decides_between_two_faults(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused) as caught:
        look(json.dumps(EXAMPLES["msg_say_1"] | changes).encode(), now=1790000020)
    assert caught.value.reason == reason


def test_a_refusal_repeats_nothing_of_the_message() -> None:
    for place in ({"body": {"text": CANARY}}, {"ext": {CANARY: 1}}, {"id": CANARY + "\n"}, {CANARY: 1, "ts": 0}):
        with pytest.raises(Refused) as caught:
            look(json.dumps(EXAMPLES["msg_say_1"] | place).encode(), now=1790000020)
        assert CANARY not in str(caught.value)
        assert CANARY not in repr(caught.value)


def test_mentions_are_deduplicated_for_evaluation_only() -> None:
    fields = EXAMPLES["msg_say_1"] | {"mentions": ["b", "a", "b"]}
    raw = json.dumps(fields).encode()
    envelope = look(raw, now=1790000020)
    assert envelope.mentions == ("b", "a")
    assert envelope.raw == raw


def test_the_digest_covers_null_proof_and_unknown_members() -> None:
    base = EXAMPLES["msg_say_1"]
    without = {key: value for key, value in base.items() if key != "proof"}
    digests = {
        look(json.dumps(fields).encode(), now=1790000020).canon_sha256
        for fields in (base, without, base | {"weather": "fair"}, base | {"ext": {"orchard.priority": 3}})
    }
    assert len(digests) == 4


def test_a_megabyte_of_mixed_requirements_is_refused_in_a_moment() -> None:
    capability = EXAMPLES["msg_cap_1"]["body"]["capability"] | {"requirements": [1, "a"] * 100_000}
    raw = json.dumps(EXAMPLES["msg_cap_1"] | {"body": {"capability": capability}}, separators=(",", ":")).encode()
    with pytest.raises(Refused) as caught:
        look(raw, now=1790000300)
    assert caught.value.local == "bad_body"


def test_the_schema_is_a_schema_of_2020_12() -> None:
    Draft202012Validator.check_schema(load_schema())
    assert load_schema()["$id"] == PUBLISHED["$id"]


ANYTHING: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-5, 2**40) | st.text(max_size=8) | st.just([]) | st.just({})
)
CARD = EXAMPLES["msg_grt_1"]["body"]["peer_card"]
PIECES = st.sampled_from(
    [
        *("thread", "direct", "say", "greet", "whois", "receipt", "trace", "capability", "request", "response"),
        *("accepted", "rejected", "busy", "completed", "submitted", "thread_spring_2026", "grafter.sess-pear"),
        "direct_34e0a8dbdfb71e43f6b2347e98e082c1",
        CARD,
        {"peer_card": CARD},
        {"text": "hello"},
        {"type": "request"},
        {"for_id": "a", "status": "expired", "reason_code": "expired"},
        {"capability": EXAMPLES["msg_cap_1"]["body"]["capability"]},
    ]
)
FIELDS = sorted({name for example in EXAMPLES.values() for name in example} | {"mentions", "interaction_id"})
BODY_FIELDS = sorted({name for example in EXAMPLES.values() for name in example["body"]} | {"peer_card", "reason_code"})


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    envelope = dict(draw(st.sampled_from(list(EXAMPLES.values()))))
    for name in draw(st.lists(st.sampled_from(FIELDS), max_size=3)):
        if draw(st.booleans()):
            envelope.pop(name, None)
        else:
            envelope[name] = draw(PIECES | ANYTHING)
    if isinstance(envelope.get("body"), dict) and draw(st.booleans()):
        envelope["body"] = dict(envelope["body"]) | {draw(st.sampled_from(BODY_FIELDS)): draw(PIECES | ANYTHING)}
    return envelope


@given(mutated())
@settings(max_examples=600, deadline=None)
def test_our_schema_judges_as_the_published_one(envelope: dict[str, Any]) -> None:
    assert is_valid(envelope) == Draft202012Validator(PUBLISHED).is_valid(envelope)


def passes(envelope: dict[str, Any]) -> bool:
    """Tell whether an envelope passes every stage, in their order."""
    try:
        for stage in ("header", "placement", "content"):
            check(stage, envelope)
    except Refused:
        return False
    return True


@given(mutated())
@settings(max_examples=600, deadline=None)
def test_the_stages_together_are_the_whole_schema(envelope: dict[str, Any]) -> None:
    assert passes(envelope) == is_valid(envelope)


@given(mutated(), st.integers(1789999000, 1790001000))
@settings(max_examples=600, deadline=None)
def test_a_mutated_envelope_is_accepted_or_refused_and_never_anything_else(envelope: dict[str, Any], now: int) -> None:
    outcome = judged(json.dumps(envelope).encode(), now=now)
    if isinstance(outcome, Refused):
        assert outcome.reason in REASONS
        assert outcome.local is None or outcome.local in LOCAL_CODES
    else:
        assert is_valid(parse(outcome.raw))


JSON = st.recursive(
    ANYTHING | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), inner),
    max_leaves=15,
)


@given(JSON)
@settings(max_examples=300, deadline=None)
def test_any_json_is_refused_and_never_an_exception(value: Any) -> None:
    with pytest.raises(Refused):
        look(json.dumps(value).encode(), now=1790000020)


def test_a_composed_message_writes_to_and_proof_as_null() -> None:
    raw = compose(
        message_id="msg_1",
        workspace_id="wsp_1",
        kind="say",
        channel=" pruning ",
        sender="human.ada",
        ts=1790000000,
        body={"text": " as given "},
        surface="thread",
        container_id="thread_abc",
        mentions=["b", " a ", "", "b"],
        reply_to="  ",
    )
    fields = parse(raw)
    assert (fields["protocol"], fields["to"], fields["proof"]) == (PROTOCOL, None, None)
    assert fields["channel"] == "pruning"
    assert fields["mentions"] == ["a", "b"]
    assert "reply_to" not in fields
    assert fields["body"] == {"text": " as given "}
    assert look(raw, now=1790000000).container_id == "thread_abc"


def test_half_of_a_surrogate_pair_in_a_text_is_refused_as_bytes_would_be() -> None:
    raw = compose(
        message_id="msg_1",
        workspace_id="wsp_1",
        kind="say",
        channel="pruning",
        sender="human.ada",
        ts=1,
        body={"text": "\ud800"},
        surface="thread",
        container_id="thread_abc",
    )
    with pytest.raises(Refused) as caught:
        look(raw, now=1)
    assert caught.value.local == "not_json"
