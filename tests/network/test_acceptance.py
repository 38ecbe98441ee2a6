"""Accepting messages from anywhere: once, whole, with unchanged bytes; or not at all."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from agentstead.network.acceptance import Arrival
from agentstead.network.refusals import KEPT_A_MINUTE, as_error, record
from agentstead.network.wire import Refused
from agentstead.state import AgentsteadError, Conflict, Denied, Invalid
from tests.network.conftest import CANARY, GRAFTER, NOW, SCOUT, STEWARD, Orchard

pytestmark = pytest.mark.anyio

EXAMPLES = {
    each["id"]: each
    for line in (Path(__file__).parent / "vectors" / "examples.jsonl").read_text("utf-8").splitlines()
    for each in [json.loads(line)]
}
SAY, RECEIPT, TRACE = EXAMPLES["msg_say_1"], EXAMPLES["msg_rcp_1"], EXAMPLES["msg_trc_1"]
ROOM, CAPABILITY = EXAMPLES["msg_dir_1"], EXAMPLES["msg_cap_1"]


async def refused(orchard: Orchard, message: dict[str, Any]) -> tuple[str, str | None]:
    """Take a message that must be refused and change nothing; return its codes."""
    before = await orchard.snapshot()
    with pytest.raises(Refused) as caught:
        await orchard.take(message)
    assert await orchard.snapshot() == before
    return caught.value.reason, caught.value.local


async def test_the_protocols_own_conversation_is_accepted_from_end_to_end(orchard: Orchard) -> None:
    for example in EXAMPLES.values():
        orchard.at(max(example["ts"], orchard.clock.now_us() // 1_000_000))
        await orchard.take(example)
    assert await orchard.work("work_row7") == "completed"
    assert await orchard.work("work_share_1") == "submitted"
    assert await orchard.delivered(STEWARD) == [
        "msg_grt_1",
        "msg-f5c797e0c8f73c053790afbaa3d32c04",
        "msg_rcp_1",
        "msg_trc_1",
        "msg_dir_1",
        "msg_cap_1",
    ]
    assert await orchard.delivered(GRAFTER) == ["msg_who_1", "msg_say_1"]
    assert await orchard.delivered(SCOUT) == ["msg_grt_1", "msg_who_1"]


async def test_bytes_digest_and_sequence_are_kept_as_they_came(orchard: Orchard) -> None:
    raw = json.dumps(SAY | {"weather": {"b": 1.0, "a": None}}, indent=3).encode()
    accepted = await orchard.take(raw)
    rows = await orchard.rows("SELECT seq, raw, canon_sha256, origin, peering, accepted_at FROM net_message")
    ((seq, stored, digest, *rest),) = rows
    assert (seq, stored) == (accepted.seq, raw)
    assert rest == ["carrier", "test", NOW * 1_000_000]
    canonical = json.dumps(json.loads(raw), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert digest == hashlib.sha256(canonical.replace('"b":1.0', '"b":1').encode()).hexdigest()


async def test_the_same_content_again_is_a_duplicate_with_the_first_result(orchard: Orchard) -> None:
    first = await orchard.take(SAY)
    before = await orchard.snapshot()
    again = await orchard.take(json.dumps(SAY, indent=2, sort_keys=True).encode())
    assert again.duplicate
    assert not first.duplicate
    assert (again.seq, again.delivered, again.work_state) == (first.seq, first.delivered, "submitted")
    assert await orchard.snapshot() == before


@pytest.mark.parametrize(
    "change",
    [
        {"body": {"text": "Something else."}},
        {"ts": SAY["ts"] + 1},
        {"ext": None},
        {"weather": "fair"},
        {"to": SCOUT},
        {"proof": {"profile": "x"}},
    ],
)
async def test_the_same_id_with_other_content_is_a_conflict(orchard: Orchard, change: dict[str, Any]) -> None:
    await orchard.take(SAY)
    assert await refused(orchard, SAY | change) == ("duplicate", "id_conflict")


async def test_another_sender_may_use_the_same_id(orchard: Orchard) -> None:
    await orchard.take(SAY)
    assert not (await orchard.take(ROOM | {"id": SAY["id"], "ts": NOW})).duplicate


async def test_a_duplicate_is_known_until_the_window_closes_and_a_conflict_after_more(orchard: Orchard) -> None:
    message = SAY | {"ts": NOW, "expires_at": None, "work_id": None}
    await orchard.take(message)
    orchard.at(NOW + 299)
    assert (await orchard.take(message)).duplicate
    orchard.at(NOW + 301)
    with pytest.raises(Refused) as caught:
        await orchard.take(message)
    assert caught.value.reason == "expired"


async def test_a_refused_id_stays_free(orchard: Orchard) -> None:
    assert await refused(orchard, SAY | {"to": "nobody.here"}) == ("not_found", None)
    assert not (await orchard.take(SAY)).duplicate


async def test_a_forged_copy_does_not_poison_the_real_message(orchard: Orchard) -> None:
    assert await refused(orchard, SAY | {"from": "stranger.sess-x"}) == ("not_found", None)
    assert not (await orchard.take(SAY)).duplicate


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        ({"channel": "nowhere"}, ("not_found", None)),
        ({"workspace_id": "ws_other"}, ("not_found", None)),
        ({"from": "stranger.sess-x"}, ("not_found", None)),
        ({"to": "stranger.sess-x"}, ("not_found", None)),
        ({"to": STEWARD}, ("not_target", None)),
        ({"to": "Grafter"}, ("malformed", "bad_identifier")),
        ({"body": {}}, ("malformed", "bad_body")),
        ({"body": {"text": CANARY}}, ("malformed", "secret_material")),
        ({"expires_at": NOW}, ("expired", None)),
        ({"from": "x.runtime"}, ("verification_failed", "reserved_peer")),
    ],
)
async def test_a_refusal_leaves_every_table_as_it_was(
    orchard: Orchard, change: dict[str, Any], codes: tuple[str, str | None]
) -> None:
    assert await refused(orchard, SAY | change) == codes


async def test_a_sender_that_left_is_unknown(orchard: Orchard) -> None:
    await orchard.home.state.write(
        lambda tx: tx.execute("UPDATE net_peer SET presence = 'left', left_at = 5 WHERE peer_id = :p", p=STEWARD)
    )
    assert await refused(orchard, SAY) == ("not_found", None)


async def test_an_archived_channel_takes_nothing(orchard: Orchard) -> None:
    await orchard.home.state.write(lambda tx: tx.execute("UPDATE net_channel SET state = 'archived'"))
    assert await refused(orchard, SAY) == ("not_found", None)


async def test_causation_gives_root_and_depth_and_cannot_be_forgotten_for_unknown_causes(orchard: Orchard) -> None:
    plain = {"work_id": None, "to": None, "ts": NOW, "expires_at": None}
    root = await orchard.take(SAY | plain)
    answer = SAY | plain | {"id": "msg_2", "from": GRAFTER, "causation_id": "msg_say_1"}
    await orchard.take(answer)
    await orchard.take(answer | {"id": "msg_3", "causation_id": "msg_2"})
    stray = await orchard.take(answer | {"id": "msg_4", "causation_id": "elsewhere"})
    rows = await orchard.rows("SELECT root_seq, depth FROM net_message ORDER BY seq")
    assert rows == [(root.seq, 0), (root.seq, 1), (root.seq, 2), (stray.seq, 1)]


async def test_the_journal_tells_of_a_message_without_its_content(orchard: Orchard) -> None:
    accepted = await orchard.take(SAY)
    entries = await orchard.home.state.wait(0, kinds=("network.*",), timeout_s=0)
    assert [entry.kind for entry in entries] == [
        "network.thread.opened",
        "network.message.accepted",
        "network.work.opened",
    ]
    body = entries[1].body
    assert body is not None
    assert (body["seq"], body["from"], body["to"]) == (accepted.seq, STEWARD, [GRAFTER])
    assert "Graft row 7" not in json.dumps([dict(entry.body or {}) for entry in entries])


async def test_large_messages_lie_in_the_blob_store(orchard: Orchard) -> None:
    message = SAY | {"body": {"text": "x" * 100_000}}
    blob = await orchard.home.blobs.put(json.dumps(message).encode())
    accepted = await orchard.take(message, arrival=Arrival(raw_blob=blob))
    rows = await orchard.rows("SELECT raw, raw_blob FROM net_message WHERE seq = :seq", seq=accepted.seq)
    assert rows == [(None, blob)]
    await orchard.home.blobs.put(b"nobody refers to this")
    collected = await orchard.home.blobs.collect(orchard.home.state, dry_run=True)
    assert (collected.stored, collected.reached, collected.missing) == (2, 1, ())


async def test_a_record_of_a_refusal_holds_codes_and_no_content(orchard: Orchard) -> None:
    raw = json.dumps(SAY | {"id": f"msg {CANARY}", "body": {"text": CANARY}}).encode()
    fault = Refused("malformed", "secret_material", what="A secret.", pointer="/body/text")
    await orchard.home.state.write(record, raw, fault, "carrier", "test")
    ((kept),) = await orchard.rows(
        "SELECT origin, peering, sha256, bytes, from_claim, reason_code, local_code, pointer FROM net_reject"
    )
    digest = hashlib.sha256(raw).hexdigest()
    assert kept == ("carrier", "test", digest, len(raw), STEWARD, "malformed", "secret_material", "/body/text")


async def test_a_flood_of_refusals_is_counted_a_minute_and_old_records_go(orchard: Orchard) -> None:
    fault = Refused("malformed", "not_json", what="x")
    for _ in range(KEPT_A_MINUTE + 5):
        await orchard.home.state.write(record, b"{", fault, "carrier", "test")
    count = "SELECT COUNT(*) FROM net_reject"
    assert await orchard.rows(count) == [(KEPT_A_MINUTE,)]
    await orchard.home.state.write(record, b"{", fault, "carrier", "other")
    assert await orchard.rows(count) == [(KEPT_A_MINUTE + 1,)]
    orchard.at(NOW + 31 * 24 * 3600)
    await orchard.home.state.write(record, b"\xff", fault, "carrier", "test")
    assert await orchard.rows(count) == [(1,)]


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        (Refused("work_closed", what="x"), Conflict, "network.work_closed"),
        (Refused("not_target", "work_actor_not_allowed", what="x"), Denied, "network.work_not_yours"),
        (Refused("not_target", what="x"), Invalid, "network.rejected"),
        (Refused("expired", what="x", pointer="/ts"), Invalid, "network.rejected"),
    ],
)
def test_a_refusal_becomes_an_error_with_codes_and_a_remedy(
    fault: Refused, kind: type[AgentsteadError], code: str
) -> None:
    error = as_error(fault)
    assert isinstance(error, kind)
    assert error.code == code
    assert error.remedy
    assert error.details == {"reason_code": fault.reason, "local_code": fault.local, "pointer": fault.pointer}
