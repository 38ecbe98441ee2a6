"""Names and digests that every implementation computes alike: rooms, derived channels, whois answers, capabilities."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from agentstead.network.wire.grammar import trim

_ROOM_DOMAIN: Final = "compozy-network/direct-room/v1"
_WHOIS_DOMAIN: Final = "network-whois-response-v1"
_CHANNEL_LENGTH: Final = 64
_SUFFIX_LENGTH: Final = 12

CAPABILITY_STRINGS: Final = ("id", "summary", "outcome", "version")
CAPABILITY_LISTS: Final = (
    "context_needed",
    "artifacts_expected",
    "execution_outline",
    "constraints",
    "examples",
    "requirements",
)
# Other encoders write these characters as escapes; the digest covers the escapes.
_ESCAPED: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


def direct_id(workspace_id: str, channel: str, one: str, other: str) -> str:
    """Return the id of the room of two stable ids, the same in either order.

    Raises `ValueError` where both are the same: nobody has a room with itself.
    """
    first, second = sorted((trim(one), trim(other)), key=str.encode)
    if first == second:
        raise ValueError("a room needs two different peers")
    return "direct_" + _digest(_ROOM_DOMAIN, workspace_id, channel, first, second)[:32]


def whois_response_id(workspace_id: str, channel: str, request_id: str, responder: str) -> str:
    """Return the message id of a responder's answer, so that a repeated answer is a duplicate."""
    return "msg-" + _digest(_WHOIS_DOMAIN, workspace_id, channel, request_id, responder)[:32]


def derive_channel(prefix: Literal["coord", "loop"], raw_id: str) -> str:
    """Return the channel that belongs to a run (`coord`) or a loop run (`loop`)."""
    identity = trim(raw_id)
    stem = re.sub(r"[^a-z0-9_]+", "-", identity.lower()).lstrip("-")
    stem = stem[: _CHANNEL_LENGTH - len(prefix) - _SUFFIX_LENGTH - 2].strip("-_") or "id"
    return f"{prefix}-{stem}-{hashlib.sha256(identity.encode()).hexdigest()[:_SUFFIX_LENGTH]}"


def capability_digest(capability: Mapping[str, Any]) -> str:
    """Return `sha256:` and the digest of a capability document, whose own `digest` is left out.

    Not RFC 8785: members keep the protocol's order, strings are trimmed, only `requirements` is sorted.
    """
    document: dict[str, Any] = {}
    for name in CAPABILITY_STRINGS:
        if text := trim(capability.get(name, "")):
            document[name] = text
    for name in CAPABILITY_LISTS:
        if items := _items(name, capability.get(name, ())):
            document[name] = items
    encoded = json.dumps(document, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPED)
    return "sha256:" + hashlib.sha256(encoded.encode()).hexdigest()


def _items(name: str, values: list[str]) -> list[str]:
    trimmed = [trim(value) for value in values]
    if name == "requirements":
        return sorted(trimmed, key=str.encode)
    return [value for value in trimmed if value]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
