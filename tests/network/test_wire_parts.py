"""The small parts of the wire: grammars, pointers, secrets, freshness, and what a sender writes."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.network.wire import Refused, card, compose, parse
from agentstead.network.wire.examine import check_freshness
from agentstead.network.wire.grammar import (
    CHANNEL,
    DIGEST,
    DIRECT_ID,
    HANDLE,
    PEER_ID,
    THREAD_ID,
    WORK_ID,
    is_handle,
    is_padded,
    is_peer_id,
    is_reserved,
    trim,
    utf8_length,
)
from agentstead.network.wire.refusal import LOCAL_CODES, REASONS, pointer_of
from agentstead.network.wire.schema import load_schema
from agentstead.network.wire.secrets import SECRET_NAMES, refuse_secrets

FINGERPRINT = "24f6ed6acbfe1009c030d7ca567c33ca"


@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        (CHANNEL, ["a", "0", "a-b_c", "a" * 64], ["", "-a", "_a", "A", "a b", "a.b", "a" * 65, "a\n", "é"]),
        (PEER_ID, ["a", "a.b-c_d", "0.", "a" * 128], ["", ".a", "-a", "A", "a@b", "a" * 129, "a\n"]),
        (HANDLE, [f"gardener@{FINGERPRINT}", f"-@{FINGERPRINT}"], ["a@b", f"@{FINGERPRINT}", f"a.b@{FINGERPRINT}"]),
        (THREAD_ID, ["thread_abc", "thread_" + "a" * 96], ["thread_ab", "thread_-bc", "thread_" + "a" * 97, "abc"]),
        (
            DIRECT_ID,
            ["direct_" + "0af" * 10 + "00"],
            ["direct_" + "0" * 31, "direct_" + "g" * 32, "direct_" + "A" * 32],
        ),
        (WORK_ID, ["w", "a b", "ü:#?", "w" * 128], ["", "a/b", "a\\b", "a\x00", "a\x7f", "a\n", "w" * 129]),
        (DIGEST, ["sha256:" + "0" * 64], ["sha256:" + "0" * 63, "md5:" + "0" * 64, "sha256:" + "A" * 64]),
    ],
)
def test_a_grammar_matches_whole_strings_of_its_language(
    grammar: re.Pattern[str], good: list[str], bad: list[str]
) -> None:
    assert [text for text in good if grammar.fullmatch(text) is None] == []
    assert [text for text in bad if grammar.fullmatch(text) is not None] == []


def compiled(path: tuple[str, ...]) -> re.Pattern[str]:
    node: Any = load_schema()
    for step in path:
        node = node[step]
    return re.compile(node["pattern"])


@pytest.mark.parametrize(
    ("grammar", "path"),
    [
        (CHANNEL, ("properties", "channel")),
        (THREAD_ID, ("properties", "thread_id")),
        (DIRECT_ID, ("properties", "direct_id")),
        (WORK_ID, ("properties", "work_id")),
        (DIGEST, ("$defs", "capability", "properties", "digest")),
    ],
)
@given(text=st.text(alphabet="abz09_-.@/\\\n A\x00sh256:ethrdic", max_size=12))
def test_the_schema_and_the_code_have_one_grammar(grammar: re.Pattern[str], path: tuple[str, ...], text: str) -> None:
    for candidate in (text, f"thread_{text}", f"direct_{text}", f"sha256:{text}"):
        assert bool(grammar.fullmatch(candidate)) == bool(compiled(path).search(candidate))


@pytest.mark.parametrize(
    ("peer_id", "peer", "handle", "reserved"),
    [
        ("ada.ses_1", True, False, False),
        (f"ada@{FINGERPRINT}", True, True, False),
        ("compozy.runtime", True, False, True),
        ("mine.runtime", True, False, True),
        ("runtime", True, False, False),
        ("mine.runtime.x", True, False, False),
        ("Ada", False, False, False),
    ],
)
def test_peer_ids_are_told_apart(peer_id: str, peer: bool, handle: bool, reserved: bool) -> None:
    assert (is_peer_id(peer_id), is_handle(peer_id), is_reserved(peer_id)) == (peer, handle, reserved)


@given(st.text(max_size=30))
def test_trimming_leaves_nothing_to_trim(text: str) -> None:
    assert not is_padded(trim(text))
    assert is_padded(f" {trim(text)}x ")
    assert utf8_length(text) == len(text.encode())


@pytest.mark.parametrize(
    ("path", "pointer"), [((), ""), (("body", "text"), "/body/text"), (("a/b", "m~n", 0, ""), "/a~1b/m~0n/0/")]
)
def test_a_pointer_is_written_as_rfc_6901_says(path: tuple[str | int, ...], pointer: str) -> None:
    assert pointer_of(path) == pointer


def test_a_refusal_reads_as_its_codes_its_place_and_what_is_wrong() -> None:
    assert str(Refused("malformed", "bad_body", what="No.", pointer="/body")) == "malformed/bad_body at /body: No."
    assert str(Refused("expired", what="Late.")) == "expired: Late."


def test_wire_and_local_codes_are_two_sets() -> None:
    assert set(REASONS) & set(LOCAL_CODES) == set()


def nothing(_: str) -> bool:
    return False


def found(fields: dict[str, Any], is_secret: Any = nothing) -> str | None:
    """Return the pointer of the first secret."""
    try:
        refuse_secrets(fields, is_secret)
    except Refused as refused:
        return refused.pointer
    return None


@pytest.mark.parametrize("name", sorted(SECRET_NAMES))
def test_each_secret_name_is_known_in_any_spelling(name: str) -> None:
    for spelling in (name, name.upper(), "-".join(name), f"_{name}.", name.title()):
        assert found({"body": {"deep": [{spelling: "x"}]}}) is not None
        assert found({"body": {"deep": [{spelling: ""}]}}) is None
    assert found({"body": {f"{name}_hash": "x", f"my{name}": "x", f"{name}s": "x"}}) is None


@pytest.mark.parametrize("value", ["x", 0, 1, False, ["x"], {"x": 1}, " "])
def test_any_value_but_an_empty_one_is_secret_under_such_a_name(value: Any) -> None:
    assert found({"ext": {"password": value}}) == "/ext/password"


@pytest.mark.parametrize("value", [None, "", [], {}])
def test_an_empty_value_is_no_secret(value: Any) -> None:
    assert found({"ext": {"password": value}}) is None


def test_secrets_are_looked_for_where_senders_write_freely() -> None:
    def is_secret(text: str) -> bool:
        return "CANARY" in text

    assert found({"id": "CANARY", "trace_id": "CANARY", "weather": "CANARY"}, is_secret) is None
    assert found({"body": {"a": ["b", {"c": "CANARY"}]}}, is_secret) == "/body/a/1/c"
    assert found({"proof": {"a": "CANARY"}}, is_secret) == "/proof/a"
    assert found({"body": {"a": {"CANARY": 1}}}, is_secret) == "/body/a"


@pytest.mark.parametrize(
    ("ts", "expires_at", "fresh"),
    [
        (1000, None, True),
        (700, None, True),
        (699, None, False),
        (1300, None, True),
        (1301, None, False),
        (1, 1001, True),
        (1, 1000, False),
        (1301, 5000, False),
        (1300, 1001, True),
    ],
)
def test_freshness_is_the_window_or_the_messages_own_end(ts: int, expires_at: int | None, fresh: bool) -> None:
    if fresh:
        check_freshness(ts, expires_at, now=1000)
        return
    with pytest.raises(Refused) as caught:
        check_freshness(ts, expires_at, now=1000)
    assert caught.value.reason == "expired"


def test_a_card_has_four_arrays_and_no_blank_name() -> None:
    assert card("ada", display_name=" ", capabilities=[" prune ", "", "prune", "graft"]) == {
        "peer_id": "ada",
        "profiles_supported": ["compozy-network/v0"],
        "capabilities": ["prune", "graft"],
        "artifacts_supported": ["capability"],
        "trust_modes_supported": ["unverified"],
    }
    assert card("ada", display_name=" Ada ", capabilities=())["display_name"] == "Ada"


OPTIONAL = ("to", "work_id", "reply_to", "trace_id", "causation_id")


@given(st.dictionaries(st.sampled_from(OPTIONAL), st.none() | st.text(max_size=10)), st.lists(st.text(max_size=5)))
def test_what_a_sender_leaves_blank_is_not_on_the_wire(links: dict[str, Any], mentions: list[str]) -> None:
    fields = parse(
        compose(
            message_id="m",
            workspace_id="w",
            kind="say",
            channel="c",
            sender="a",
            ts=1,
            body={"text": "hello"},
            mentions=mentions,
            **links,
        )
    )
    assert list(fields)[:5] == ["protocol", "id", "workspace_id", "kind", "channel"]
    for name, value in links.items():
        given_text = trim(value) if value else ""
        assert fields.get(name) == (given_text or None)
        assert (name in fields) == bool(given_text or name == "to")
    assert fields.get("mentions", []) == sorted({trim(each) for each in mentions if trim(each)})
