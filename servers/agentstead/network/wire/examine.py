"""From bytes to a checked envelope, in the protocol's order of receipt: size, form, freshness, place, content, secrets,
trust, reserved names. Nothing here has an effect; what depends on stored state comes after.
"""

from collections.abc import Mapping
from typing import Any, Final

from agentstead.network.wire.canonical import canonical_sha256
from agentstead.network.wire.derive import capability_digest
from agentstead.network.wire.envelope import Envelope, Trust
from agentstead.network.wire.grammar import (
    LINK_BYTES,
    MAX_BYTES,
    REPLAY_WINDOW_S,
    WORK_BYTES,
    WORKSPACE_BYTES,
    is_handle,
    is_padded,
    is_reserved,
    trim,
    utf8_length,
)
from agentstead.network.wire.refusal import Refused, pointer_of
from agentstead.network.wire.schema import check
from agentstead.network.wire.secrets import IsSecret, refuse_secrets
from agentstead.network.wire.strict import parse

# The schema counts characters and cannot see padding; the protocol counts bytes and allows none.
_CAPS: Final[Mapping[str, int]] = {
    "id": LINK_BYTES,
    "workspace_id": WORKSPACE_BYTES,
    "work_id": WORK_BYTES,
    "reply_to": LINK_BYTES,
    "trace_id": LINK_BYTES,
    "causation_id": LINK_BYTES,
}


def examine(
    raw: bytes,
    *,
    now: int,
    is_secret: IsSecret,
    window_s: int = REPLAY_WINDOW_S,
    max_bytes: int = MAX_BYTES,
) -> Envelope:
    """Return the envelope in `raw` as it stands at `now` (Unix seconds).

    Raises `Refused` for the first rule that it breaks, and nothing else, whatever the bytes are.
    """
    fields = parse(raw, max_bytes=max_bytes)
    check("header", fields)
    _check_identifiers(fields)
    check_freshness(fields["ts"], fields.get("expires_at"), now=now, window_s=window_s)
    check("placement", fields)
    check("content", fields)
    _check_body(fields)
    refuse_secrets(fields, is_secret)
    trust = _judge_trust(fields)
    _refuse_reserved(fields)
    return Envelope.of(fields, raw=raw, canon_sha256=canonical_sha256(fields), trust=trust)


def check_freshness(ts: int, expires_at: int | None, *, now: int, window_s: int = REPLAY_WINDOW_S) -> None:
    """Raise `Refused` with `expired`: too far ahead, past its own end, or (without one) older than the window."""
    if ts - now > window_s:
        raise Refused("expired", what=f"ts lies {ts - now} s ahead; at most {window_s} s are allowed.", pointer="/ts")
    if expires_at is not None:
        if expires_at <= now:
            raise Refused("expired", what=f"It expired {now - expires_at} s ago.", pointer="/expires_at")
    elif now - ts > window_s:
        raise Refused("expired", what=f"It is {now - ts} s old; at most {window_s} s are allowed.", pointer="/ts")


def _check_identifiers(fields: Mapping[str, Any]) -> None:
    for name, most in _CAPS.items():
        value = fields.get(name)
        if value is not None and (utf8_length(value) > most or is_padded(value)):
            raise Refused(
                "malformed",
                "bad_identifier",
                what=f"An identifier has at most {most} bytes and no white space around it.",
                pointer=pointer_of([name]),
            )


def _check_body(fields: Mapping[str, Any]) -> None:
    body = fields["body"]
    card = body.get("peer_card") if fields["kind"] in ("greet", "whois") else None
    if card is not None and card["peer_id"] != fields["from"]:
        raise Refused(
            "malformed", "bad_body", what="The card belongs to another peer.", pointer="/body/peer_card/peer_id"
        )
    if fields["kind"] == "receipt" and is_padded(body["for_id"]):
        raise Refused("malformed", "bad_body", what="White space surrounds a message id.", pointer="/body/for_id")
    if fields["kind"] == "capability":
        _check_capability(body["capability"])


def _check_capability(capability: Mapping[str, Any]) -> None:
    at = "/body/capability"
    requirements = [trim(item) for item in capability.get("requirements", ())]
    if not all(requirements) or len(set(requirements)) != len(requirements):
        raise Refused(
            "malformed", "bad_body", what="A requirement is blank or stands twice.", pointer=f"{at}/requirements"
        )
    if capability_digest(capability) != capability["digest"]:
        raise Refused(
            "verification_failed",
            "digest_mismatch",
            what="The digest is not that of the document.",
            pointer=f"{at}/digest",
        )


def _judge_trust(fields: Mapping[str, Any]) -> Trust:
    """Treat a proof as opaque, as a receiver without the trust profile does; a handle without proof never passes."""
    if is_handle(fields["from"]):
        if fields.get("proof") is None:
            raise Refused("verification_failed", "proof_stripped", what="A handle sent no proof.", pointer="/proof")
        raise Refused("unsupported_profile", what="This home verifies no proofs yet.", pointer="/proof/profile")
    return "unverified"


def _refuse_reserved(fields: Mapping[str, Any]) -> None:
    if is_reserved(fields["from"]):
        raise Refused(
            "verification_failed", "reserved_peer", what="Only a runtime may send under this Peer ID.", pointer="/from"
        )
