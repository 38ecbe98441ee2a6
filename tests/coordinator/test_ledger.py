"""What a shim remembers, and what the next coordinator and the host hear when one went away."""

import json
from typing import Any

import pytest

from agentstead.coordinator.ledger import ERROR_META, LOST, LOST_CODE, Ledger, failure, oversize

MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"


def call(key: int | str, name: str = "note_save", **params: Any) -> bytes:
    return line(id=key, method="tools/call", params={"name": name, **params})


def result(key: int | str) -> bytes:
    return line(id=key, result={})


class Talk:
    """A host and a coordinator on the two sides of one ledger."""

    def __init__(self) -> None:
        self.ledger = Ledger()

    def host(self, text: bytes, *, sent: bool = True) -> dict[str, Any] | None:
        item = self.ledger.from_host(text)
        if item is None:
            return None
        if sent:
            self.ledger.sent(item)
        return read(item.line)

    def coordinator(self, text: bytes) -> dict[str, Any] | None:
        told = self.ledger.from_coordinator(text)
        return None if told is None else read(told)

    def lost(self) -> list[dict[str, Any]]:
        return [read(each) for each in self.ledger.lost()]

    def again(self) -> list[dict[str, Any]]:
        items = self.ledger.again()
        for item in items:
            self.ledger.sent(item)
        return [read(item.line) for item in items]

    def initialize(self) -> None:
        self.host(line(id=0, method="initialize", params={"protocolVersion": "2025-11-25"}))
        self.coordinator(result(0))
        self.host(line(method="notifications/initialized"))


def read(text: bytes) -> dict[str, Any]:
    assert text.endswith(b"\n")
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.fixture
def talk() -> Talk:
    return Talk()


def test_an_answer_closes_its_request_and_a_second_one_is_dropped(talk: Talk) -> None:
    talk.host(call(1))
    assert talk.coordinator(result(1)) is not None
    assert talk.coordinator(result(1)) is None
    assert talk.lost() == []


def test_ids_as_numbers_and_as_text_are_different(talk: Talk) -> None:
    talk.host(call(1))
    talk.host(call("1"))
    assert talk.coordinator(result("1")) is not None
    assert [each["id"] for each in talk.lost()] == [1]


def test_ids_with_quotes_and_unicode_are_found(talk: Talk) -> None:
    odd = 'a"\\\u00e9\u2028'
    talk.host(call(odd))
    plain = json.dumps({"jsonrpc": "2.0", "id": odd, "result": {}}, separators=(",", ":"), ensure_ascii=False)
    assert talk.coordinator(plain.encode() + b"\n") is not None


def test_a_call_that_was_sent_is_answered_as_lost_and_never_sent_again(talk: Talk) -> None:
    talk.host(call(7, "memory_write"))
    (answer,) = talk.lost()
    assert answer["id"] == 7
    assert answer["result"]["isError"] is True
    assert "resultType" not in answer["result"]
    error = answer["result"]["_meta"][ERROR_META]
    assert (error["code"], error["retryable"]) == (LOST, True)
    text = answer["result"]["content"][0]["text"]
    assert text == f"{LOST}: {error['message']} {error['remedy']}"
    assert "memory_write" in text
    assert "idempotency_key" in text
    assert talk.again() == []
    assert talk.coordinator(result(7)) is None


def test_a_modern_clients_answer_has_the_type_that_its_revision_demands(talk: Talk) -> None:
    talk.host(call(7, _meta=MODERN))
    assert talk.lost()[0]["result"]["resultType"] == "complete"


def test_a_request_that_is_no_call_gets_a_json_rpc_error(talk: Talk) -> None:
    talk.host(line(id=3, method="tools/list"))
    (answer,) = talk.lost()
    assert answer["error"]["code"] == LOST_CODE
    assert answer["error"]["data"]["retryable"] is True


def test_a_call_that_was_not_sent_yet_stays_open_for_the_next_coordinator(talk: Talk) -> None:
    talk.host(call(1), sent=False)
    assert talk.lost() == []
    assert talk.coordinator(result(1)) is not None


def test_a_canceled_request_is_not_answered(talk: Talk) -> None:
    talk.host(call(1))
    assert talk.host(line(method="notifications/cancelled", params={"requestId": 1})) is not None
    assert talk.lost() == []
    assert talk.coordinator(result(1)) is None


def test_an_accepted_handshake_is_said_again_and_its_answer_swallowed(talk: Talk) -> None:
    talk.initialize()
    talk.lost()
    opening, initialized = talk.again()
    assert opening["method"] == "initialize"
    assert opening["params"] == {"protocolVersion": "2025-11-25"}
    assert opening["id"] != 0
    assert initialized == {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert talk.coordinator(result(opening["id"])) is None


def test_a_refused_handshake_is_not_said_again(talk: Talk) -> None:
    talk.host(line(id=0, method="initialize"))
    talk.coordinator(line(id=0, error={"code": -32602, "message": "no"}))
    talk.lost()
    assert talk.again() == []
    assert not talk.ledger.legacy


@pytest.mark.parametrize("method", ["initialize", "server/discover"])
def test_what_opens_the_connection_is_sent_again_under_its_own_id(talk: Talk, method: str) -> None:
    talk.host(line(id="a", method=method))
    assert talk.lost() == []
    assert [(each["id"], each["method"]) for each in talk.again()] == [("a", method)]
    assert talk.coordinator(result("a")) is not None


def test_a_handshake_in_flight_survives_two_losses_in_a_row(talk: Talk) -> None:
    talk.host(line(id=0, method="initialize"))
    talk.lost()
    talk.lost()
    assert len(talk.again()) == 1


def test_legacy_subscriptions_are_made_again_and_ended_ones_are_not(talk: Talk) -> None:
    talk.initialize()
    for key, uri in ((1, "a://1"), (2, "a://2"), (3, "a://3")):
        talk.host(line(id=key, method="resources/subscribe", params={"uri": uri}))
        talk.coordinator(result(key))
    talk.host(line(id=4, method="resources/unsubscribe", params={"uri": "a://2"}))
    talk.coordinator(result(4))
    talk.lost()
    again = talk.again()
    assert [each["params"]["uri"] for each in again if each["method"] == "resources/subscribe"] == ["a://1", "a://3"]
    assert all(talk.coordinator(result(each["id"])) is None for each in again if "id" in each)


def test_a_subscription_that_was_refused_is_not_made_again(talk: Talk) -> None:
    talk.initialize()
    talk.host(line(id=1, method="resources/subscribe", params={"uri": "a://1"}))
    talk.coordinator(line(id=1, error={"code": -32602, "message": "no"}))
    talk.lost()
    assert [each["method"] for each in talk.again()] == ["initialize", "notifications/initialized"]


def test_a_listener_is_sent_again_until_it_is_taken_back(talk: Talk) -> None:
    talk.host(line(id="ear", method="subscriptions/listen", params={"_meta": MODERN}))
    assert not talk.ledger.waiting
    assert talk.lost() == []
    assert [each["id"] for each in talk.again()] == ["ear"]
    talk.host(line(method="notifications/cancelled", params={"requestId": "ear"}))
    talk.lost()
    assert talk.again() == []


def test_what_is_said_again_keeps_its_order(talk: Talk) -> None:
    talk.initialize()
    talk.host(line(id=1, method="resources/subscribe", params={"uri": "a://1"}))
    talk.coordinator(result(1))
    talk.host(line(id=2, method="subscriptions/listen"))
    talk.lost()
    assert [each["method"] for each in talk.again()] == [
        "initialize",
        "notifications/initialized",
        "resources/subscribe",
        "subscriptions/listen",
    ]


def test_a_question_and_its_answer_pass_as_they_are(talk: Talk) -> None:
    assert talk.coordinator(line(id=1, method="elicitation/create", params={})) == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "elicitation/create",
        "params": {},
    }
    assert talk.host(result(1)) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert talk.host(result(1)) is None


def test_questions_of_a_lost_coordinator_are_withdrawn_and_their_answers_dropped(talk: Talk) -> None:
    talk.coordinator(line(id=1, method="elicitation/create", params={}))
    (withdrawal,) = talk.lost()
    assert withdrawal["method"] == "notifications/cancelled"
    assert withdrawal["params"]["requestId"] == 1
    talk.again()
    asked = talk.coordinator(line(id=1, method="elicitation/create", params={}))
    assert asked is not None
    assert asked["id"] != 1
    assert talk.host(line(id=1, result={"action": "accept"})) is None
    assert talk.host(line(id=asked["id"], result={"action": "decline"})) == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"action": "decline"},
    }


def test_a_withdrawal_by_a_later_coordinator_names_the_question_as_the_host_knows_it(talk: Talk) -> None:
    talk.lost()
    asked = talk.coordinator(line(id=5, method="elicitation/create", params={}))
    assert asked is not None
    taken_back = talk.coordinator(line(method="notifications/cancelled", params={"requestId": 5}))
    assert taken_back is not None
    assert taken_back["params"]["requestId"] == asked["id"]
    assert talk.host(line(id=asked["id"], result={})) is None


def test_notifications_of_both_sides_pass(talk: Talk) -> None:
    event = line(method="notifications/progress", params={"progressToken": 1})
    assert talk.ledger.from_coordinator(event) == event
    assert talk.host(event) is not None


def test_an_error_without_an_id_passes(talk: Talk) -> None:
    parse_error = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}\n'
    assert talk.ledger.from_coordinator(parse_error) == parse_error


@pytest.mark.parametrize("text", [b"nonsense\n", b"[]\n", b"7\n", b'{"id":1\n', b"[" * 100_000 + b"\n", b"\xff\xfe\n"])
def test_what_is_no_message_is_left_to_the_coordinator_to_refuse(talk: Talk, text: bytes) -> None:
    item = talk.ledger.from_host(text)
    assert item is not None
    assert item.line == text
    assert talk.lost() == []


@pytest.mark.parametrize("key", [None, True, 1.5, [], {}])
def test_a_request_with_an_impossible_id_is_not_kept(talk: Talk, key: Any) -> None:
    assert talk.host(line(id=key, method="tools/call", params={"name": "x"})) is not None
    assert talk.lost() == []


def test_a_refusal_answers_everything_that_is_open(talk: Talk) -> None:
    talk.host(call(1))
    talk.host(line(id=2, method="initialize"), sent=False)
    told = [read(each) for each in talk.ledger.refuse("home.newer", "Too new.", "Update.")]
    assert [each["id"] for each in told] == [1, 2]
    assert all(each["error"]["message"] == "home.newer: Too new. Update." for each in told)
    assert not talk.ledger.open


def test_only_what_must_be_said_again_is_kept_in_memory(talk: Talk) -> None:
    talk.host(call(1, text="x" * 100_000))
    assert talk.ledger.open[1].line == b""


def test_a_line_that_is_too_long_is_refused_under_its_id() -> None:
    assert read(oversize(b'{"jsonrpc": "2.0", "id" : "k", "method"', 10))["id"] == "k"
    assert read(oversize(b'{"method":"tools/call","params":{', 10))["id"] is None
    assert read(oversize(b"", 10))["error"]["code"] == -32600


def test_a_failure_carries_its_structure() -> None:
    data = read(failure(1, "a.b", "What.", "Do.", retryable=False))["error"]["data"]
    assert data == {"code": "a.b", "message": "What.", "remedy": "Do.", "retryable": False, "details": {}}
