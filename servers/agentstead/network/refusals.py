"""A refused envelope as a caller meets it, and the record of it: codes, sizes and a digest, never content."""

from collections.abc import Mapping
from typing import Any, Final

from agentstead.network.machines import Origin
from agentstead.network.wire import Refused, parse
from agentstead.network.wire.grammar import is_peer_id
from agentstead.state import AgentsteadError, Conflict, Denied, Invalid, Tx, sha256_hex

_RECENT = "SELECT COUNT(*) FROM net_reject WHERE at > :since AND peering = :peering"
_INSERT = """
INSERT INTO net_reject (at, origin, peering, sha256, bytes, from_claim, id_claim, reason_code, local_code, pointer)
VALUES (:now, :origin, :peering, :sha256, :bytes, :from_claim, :id_claim, :reason, :local, :pointer)
"""
_PRUNE = "DELETE FROM net_reject WHERE at < :before"

KEPT_A_MINUTE: Final = 100
_MINUTE_US: Final = 60_000_000
_KEPT_US: Final = 30 * 24 * 60 * _MINUTE_US
_CLAIM_CHARS: Final = 128

_REMEDIES: Final[Mapping[str, str]] = {
    "secret_material": "Take the secret out; name it by its place in a vault instead.",
    "envelope_too_large": "Send less text, or a reference to an artifact.",
    "missing_field": "Give the named member; work needs `to`.",
    "bad_identifier": "Use an id of the protocol's grammar, as the tools return them.",
    "id_conflict": "Send changed content as a new message.",
    "work_not_found": "network_view(ref='status') lists open work; message_send(work='new', to=...) opens one.",
    "direct_room_collision": "Use room_with=<peer> instead of a room id.",
    "not_found": "peer_find lists channels and peers.",
    "not_target": "Address another peer than yourself.",
    "work_container_mismatch": "Continue the work where it was opened, or open a new one (work='new').",
    "expired": "Send it again with a later end.",
    "work_closed": "Open new work with message_send(work='new').",
}


def as_error(refused: Refused) -> AgentsteadError:
    """Return the tool error of a refusal; wire and local codes travel in its details."""
    details = {"reason_code": refused.reason, "local_code": refused.local, "pointer": refused.pointer}
    remedy = _REMEDIES.get(refused.local or "") or _REMEDIES.get(refused.reason, "Correct the message and send again.")
    if refused.reason == "work_closed":
        return Conflict("network.work_closed", refused.what, remedy=remedy, details=details)
    if refused.local == "work_actor_not_allowed":
        who = "Only the initiator and the target of a work move it, towards each other."
        return Denied("network.work_not_yours", refused.what, remedy=who, details=details)
    return Invalid("network.rejected", str(refused), remedy=remedy, details=details)


def record(tx: Tx, raw: bytes, refused: Refused, origin: Origin, peering: str = "") -> int:
    """Keep a refusal without its content; beyond a hundred a minute and peering nothing is written. Return its id."""
    if tx.value(_RECENT, since=tx.now_us - _MINUTE_US, peering=peering) >= KEPT_A_MINUTE:
        return 0
    claims = _claims(raw)
    tx.execute(_PRUNE, before=tx.now_us - _KEPT_US)
    tx.execute(
        _INSERT,
        now=tx.now_us,
        origin=origin,
        peering=peering,
        sha256=sha256_hex(raw),
        bytes=len(raw),
        from_claim=claims[0],
        id_claim=tx.redact(claims[1]),
        reason=refused.reason,
        local=refused.local or "",
        pointer=tx.redact(refused.pointer),
    )
    body = {"reason_code": refused.reason, "local_code": refused.local or "", "bytes": len(raw), "origin": origin}
    return tx.journal("network.message.rejected", subject=sha256_hex(raw), body=body)


def _claims(raw: bytes) -> tuple[str, str]:
    """Return what the bytes claim as sender and id, as far as these have the form of such."""
    try:
        fields: Mapping[str, Any] = parse(raw)
    except Refused:
        return "", ""
    sender, message_id = fields.get("from"), fields.get("id")
    return (
        sender if isinstance(sender, str) and is_peer_id(sender) else "",
        message_id if isinstance(message_id, str) and len(message_id) <= _CLAIM_CHARS else "",
    )
