"""The wire of `compozy-network/v0`: bytes in, a checked envelope or a refusal out.

It knows nothing of homes, servers or MCP, so that a conformance runner can stand on it alone.
"""

from agentstead.network.wire.canonical import canonical_bytes, canonical_sha256
from agentstead.network.wire.compose import card, compose
from agentstead.network.wire.derive import capability_digest, derive_channel, direct_id, whois_response_id
from agentstead.network.wire.envelope import Envelope
from agentstead.network.wire.examine import examine
from agentstead.network.wire.grammar import MAX_BYTES, PROTOCOL, REPLAY_WINDOW_S
from agentstead.network.wire.refusal import LOCAL_CODES, REASONS, LocalCode, Reason, Refused
from agentstead.network.wire.strict import parse

__all__ = [
    "LOCAL_CODES",
    "MAX_BYTES",
    "PROTOCOL",
    "REASONS",
    "REPLAY_WINDOW_S",
    "Envelope",
    "LocalCode",
    "Reason",
    "Refused",
    "canonical_bytes",
    "canonical_sha256",
    "capability_digest",
    "card",
    "compose",
    "derive_channel",
    "direct_id",
    "examine",
    "parse",
    "whois_response_id",
]
