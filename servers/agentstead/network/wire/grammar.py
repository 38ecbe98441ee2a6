"""Closed sets, grammars and limits of the protocol, section 3 of its text. A grammar matches a whole string."""

import re
from typing import Final, Literal, get_args

PROTOCOL: Final = "compozy-network/v0"

MAX_BYTES: Final = 1_048_576
MAX_NESTING: Final = 64
MAX_SAFE_INTEGER: Final = 2**53 - 1
REPLAY_WINDOW_S: Final = 300

LINK_BYTES: Final = 256
WORKSPACE_BYTES: Final = 128
WORK_BYTES: Final = 128

Kind = Literal["greet", "whois", "say", "capability", "receipt", "trace"]
Surface = Literal["thread", "direct"]
ReceiptStatus = Literal["accepted", "rejected", "duplicate", "expired", "unsupported", "canceled"]
WorkState = Literal["submitted", "working", "needs_input", "completed", "failed", "canceled"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
DISCOVERY_KINDS: Final = frozenset({"greet", "whois"})
SURFACES: Final[tuple[Surface, ...]] = get_args(Surface)
RECEIPT_STATUSES: Final[tuple[ReceiptStatus, ...]] = get_args(ReceiptStatus)
WORK_STATES: Final[tuple[WorkState, ...]] = get_args(WorkState)

CHANNEL: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
PEER_ID: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")
HANDLE: Final = re.compile(r"[a-z0-9_-]{1,32}@[0-9a-f]{32}")
THREAD_ID: Final = re.compile(r"thread_[a-z0-9][a-z0-9_-]{2,95}")
DIRECT_ID: Final = re.compile(r"direct_[a-f0-9]{32}")
WORK_ID: Final = re.compile(r"[^/\\\x00-\x1f\x7f]{1,128}")
DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")

RUNTIME_PEER: Final = "compozy.runtime"
RUNTIME_SUFFIX: Final = ".runtime"

# White space as the other implementations of the protocol trim it; Python would trim U+001C to U+001F too.
WHITE_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)


def trim(text: str) -> str:
    """Return `text` without surrounding white space."""
    return text.strip(WHITE_SPACE)


def is_handle(peer_id: str) -> bool:
    """Tell whether a Peer ID is a self-certifying handle, `nickname@fingerprint`."""
    return HANDLE.fullmatch(peer_id) is not None


def is_peer_id(text: str) -> bool:
    """Tell whether `text` can stand where the protocol wants a Peer ID."""
    return PEER_ID.fullmatch(text) is not None or is_handle(text)


def is_reserved(peer_id: str) -> bool:
    """Tell whether a Peer ID belongs to runtimes alone."""
    return peer_id == RUNTIME_PEER or peer_id.endswith(RUNTIME_SUFFIX)


def is_padded(text: str) -> bool:
    """Tell whether white space surrounds `text`, which no identifier on the wire may have."""
    return trim(text) != text


def utf8_length(text: str) -> int:
    """Return how many bytes `text` has on the wire."""
    return len(text.encode())
